"""Arithmetic of sizes that need not stay whole: `size / 2`, `0.5 * size`, `size ** 0.5`."""

from __future__ import annotations

from typing import Any


class Number:
    """What takes part in formulas: a size known only at the call, or a formula of some."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return formula("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return formula("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return formula("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return formula("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return formula("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return formula("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return formula("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return formula("divide", other, self)

    def __pow__(self, other: Any) -> Any:
        return formula("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return formula("power", other, self)

    def __neg__(self) -> Any:
        return formula("negative", self)

    def __bool__(self) -> bool:
        raise TypeError(f"{self} is known only at the call")


class Formula(Number):
    """An elementwise op of sizes and Python numbers, as weak a float as these."""

    __slots__ = ("operands", "operator")

    def __init__(self, operator: str, operands: tuple[Any, ...]) -> None:
        self.operator, self.operands = operator, operands

    def __repr__(self) -> str:
        return f"{self.operator}({', '.join(map(repr, self.operands))})"


def formula(operator: str, *operands: Any) -> Any:
    """A formula; of what is no real number NotImplemented, so that the other operand has its say.

    >>> from graphcore.ir.sizes import unknown
    >>> 0.5 * unknown("batch")
    multiply(batch, 0.5)
    """
    known = all(isinstance(x, (int, float, Number)) for x in operands)
    return Formula(operator, operands) if known else NotImplemented
