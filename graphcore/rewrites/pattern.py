"""Left-hand sides: patterns written in the notation of the expressions they match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from graphcore.ir import Node, Op, Trait
from graphcore.ir.node import OPS
from graphcore.ops import elementwise, leaf


class Pattern:
    """Matches a node of `op`; without one anything, bound to `name`, or one `value` throughout."""

    __slots__ = ("inputs", "name", "op", "value")

    def __init__(
        self,
        op: Op | None = None,
        inputs: tuple[Pattern, ...] = (),
        name: str = "",
        value: complex | None = None,
    ) -> None:
        self.op, self.inputs, self.name, self.value = op, inputs, name, value

    def root(self) -> Op | None:
        """The op a match must start at, if it can be only one."""
        return leaf.full if self.value is not None else self.op

    def names(self) -> set[str]:
        """The variables in it."""
        return {self.name}.union(*(x.names() for x in self.inputs)) - {""}

    def match(self, node: Node, bound: dict[str, Node]) -> Iterator[dict[str, Node]]:
        """Every way to match `node`, as the node that each variable is bound to."""
        if self.name:
            if bound.get(self.name, node) is node:
                yield bound | {self.name: node}
        elif self.value is not None:
            if node.op is leaf.full and node.attrs["value"].is_(self.value):
                yield bound
        elif node.op is self.op:
            yield from match_all(self.inputs, node.inputs, bound)
            if Trait.COMMUTATIVE in node.op.traits:
                yield from match_all(self.inputs, node.inputs[::-1], bound)

    def __add__(self, other: PatternOperand) -> Pattern:
        return pattern(elementwise.add, self, other)

    def __radd__(self, other: complex) -> Pattern:
        return pattern(elementwise.add, other, self)

    def __sub__(self, other: PatternOperand) -> Pattern:
        return pattern(elementwise.subtract, self, other)

    def __rsub__(self, other: complex) -> Pattern:
        return pattern(elementwise.subtract, other, self)

    def __mul__(self, other: PatternOperand) -> Pattern:
        return pattern(elementwise.multiply, self, other)

    def __rmul__(self, other: complex) -> Pattern:
        return pattern(elementwise.multiply, other, self)

    def __truediv__(self, other: PatternOperand) -> Pattern:
        return pattern(elementwise.divide, self, other)

    def __rtruediv__(self, other: complex) -> Pattern:
        return pattern(elementwise.divide, other, self)

    def __neg__(self) -> Pattern:
        return pattern(elementwise.negative, self)

    def __repr__(self) -> str:
        if self.op is None:
            return self.name or repr(self.value)
        return f"{self.op.name}({', '.join(map(repr, self.inputs))})"


def match_all(
    patterns: Sequence[Pattern], nodes: Sequence[Node], bound: dict[str, Node]
) -> Iterator[dict[str, Node]]:
    """Every way to match each pattern to its node at once."""
    if not patterns:
        yield bound
    else:
        for found in patterns[0].match(nodes[0], bound):
            yield from match_all(patterns[1:], nodes[1:], found)


def pattern(op: Op, *inputs: PatternOperand) -> Pattern:
    """The pattern of `op` applied to whatever the inputs match; a number matches itself."""
    return Pattern(op, tuple(x if isinstance(x, Pattern) else Pattern(value=x) for x in inputs))


class Namespace:
    """`P.exp(x)` is the pattern of `exp` applied to whatever `x` matches."""

    def __getattr__(self, name: str) -> Callable[..., Pattern]:
        if (op := OPS.get(f"elementwise.{name}")) is None:
            raise AttributeError(f"there is no elementwise op {name!r}")
        return partial(pattern, op)


P = Namespace()
PatternOperand: TypeAlias = Pattern | complex


def variables(names: str) -> list[Pattern]:
    """A pattern that matches anything for each name."""
    return [Pattern(name=name) for name in names.split()]
