"""Arithmetic of sizes that need not stay whole: `size / 2`, `0.5 * size`, `size ** 0.5`."""

from __future__ import annotations

from typing import Any

from .errors import GraphTypeError
from .provenance import current_line, public_call


class Number:
    """The base of all operands of formulas: sizes known only at the call, and formulas."""

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

    def __floordiv__(self, other: Any) -> Any:
        return formula("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return formula("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return formula("remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return formula("remainder", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return formula("power", self, other)

    def __rpow__(self, other: Any) -> Any:
        return formula("power", other, self)

    def __neg__(self) -> Any:
        return formula("negative", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return formula("absolute", self)

    def __lt__(self, other: Any) -> Any:
        return refuse_comparison("less", self, other)

    def __le__(self, other: Any) -> Any:
        return refuse_comparison("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return refuse_comparison("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return refuse_comparison("greater_equal", self, other)

    def __bool__(self) -> bool:
        raise refusal("bool", self, "choose at the call: gc.where, gc.cond(gc.less(n, 3), f, g)")

    def __float__(self) -> float:
        raise refusal("float", self, COMPUTE)

    def __int__(self) -> int:
        raise refusal("int", self, COMPUTE)

    def __index__(self) -> int:
        raise refusal("index", self, f"loop at the call: gc.fori_loop(0, {self}, body, init)")


COMPUTE = "where a tensor may stand, this may stand as well; of it, compute n**0.5, gc.log(n), ..."


def refusal(function: str, x: Number, cure: str) -> GraphTypeError:
    """The error for asking for the value of `x` before the call."""
    reason = f"{public_call(function)}: {x} is known only at the call"
    return GraphTypeError(f"{reason}\n  built at {current_line()}\n  cure: {cure}")


def refuse_comparison(comparison: str, x: Number, other: Any) -> Any:
    """The refusal to compare numbers before the call; NotImplemented if `other` is no number."""
    if not isinstance(other, (int, float, Number)):
        return NotImplemented
    cure = f"compare at the call: gc.{comparison}({x}, {other}); gc.minimum and gc.maximum choose"
    raise refusal(comparison, x, cure)


class Formula(Number):
    """An elementwise op of sizes and Python numbers: a weak number, as Python's are."""

    __slots__ = ("operands", "operator")

    def __init__(self, operator: str, operands: tuple[Any, ...]) -> None:
        self.operator, self.operands = operator, operands

    def __repr__(self) -> str:
        return f"{self.operator}({', '.join(map(repr, self.operands))})"


def formula(operator: str, *operands: Any) -> Any:
    """A formula; NotImplemented if an operand is no number, so that Python asks that operand.

    >>> from graphcore.ir.sizes import unknown
    >>> 0.5 * unknown("batch")
    multiply(batch, 0.5)
    """
    known = all(isinstance(x, (int, float, complex, Number)) for x in operands)
    return Formula(operator, operands) if known else NotImplemented


def unary(operator: str) -> Any:
    """The method that NumPy's function of that name calls on an object that is no array."""

    def method(x: Number, *more: Any, **options: Any) -> Any:
        if more or options:
            raise refusal(operator, x, f"it has one operand: write gc.{operator}({x})")
        return formula(operator, x)

    return method


for _name in ("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rint"):
    setattr(Number, _name, unary(_name))
for _name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arcsinh"):
    setattr(Number, _name, unary(_name))
for _name in ("floor", "ceil", "trunc"):
    setattr(Number, f"__{_name}__", unary(_name))
