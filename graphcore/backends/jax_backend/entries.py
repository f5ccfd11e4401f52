"""How JAX computes each plain op: one table, whose entries stand in the files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from graphcore.ir import Node, Op, Size, TensorType

Value: TypeAlias = Any
"""An array of JAX, or a tuple of them for a node with several values."""


class Emission(Protocol):
    """A graph while JAX traces it: what an entry asks of it."""

    meshed: bool
    """Whether the program runs on a mesh, where a gather of a whole axis costs messages."""

    def size(self, size: Size) -> int:
        """The size of an axis, as a number."""

    def shape(self, type: TensorType) -> tuple[int, ...]:
        """The shape of a value, in numbers."""

    def sizes(self, shape: Sequence[Size]) -> tuple[int, ...]:
        """Several sizes, in numbers."""

    def value(self, node: Node) -> Value:
        """The value of a node of this graph that is computed by now."""

    def fail_where(self, node: Node, flag: Value, reason: str, number: Value = 0) -> None:
        """Let the call fail in a node where a flag holds; `number` goes to the error's words."""

    def fail_outside(self, node: Node, axis: int, positions: Value, size: Value) -> None:
        """Let the call fail where a position lies outside of an axis: not in -size to size - 1."""

    def fail_in_batch(self, node: Node, failed: Value, reason: str) -> None:
        """Let the call fail where a matrix of a batch has no result, by the first of these."""


Entry: TypeAlias = Callable[..., Value]
"""From the emission, a node and its operands, of the dtypes that they have there, to its value."""

TABLE: dict[Op, Entry] = {}
"""The entry of each plain op. Results are cast to the dtypes of the node where they differ."""

E = TypeVar("E", bound=Entry)


def entry(*ops: Op) -> Callable[[E], E]:
    """Enter the decorated function for these ops."""

    def enter(function: E) -> E:
        TABLE.update(dict.fromkeys(ops, function))
        return function

    return enter
