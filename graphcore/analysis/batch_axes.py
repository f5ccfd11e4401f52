"""Which axes of the values of some nodes are one batch axis, through the bodies of loops.

Two axes are one where element i along one is computed from element i along the other: so says the
kind of each op. An axis of a param of a loop is that of its operand, an axis of a carry is that of
all its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from graphcore.ir import Node, TupleType, toposort
from graphcore.ir.axes import How, Source
from graphcore.ops import leaf
from graphcore.ops.control import LOOPS, Loop

Place: TypeAlias = "Node | None"
"""The loop in whose body a node stands; None outside of loops."""
Value: TypeAlias = "Node | tuple[Node, int]"
"""A node, or one of the several values of a loop."""
Slot: TypeAlias = tuple[Place, Value, int]
"""An axis of a value."""


def value_of(node: Node) -> Value:
    """The value of a node that may be one result of a loop."""
    if node.op is leaf.project:
        return node.inputs[0], node.attrs["index"]
    return node


class BatchAxes:
    """The axes of the values of some nodes, those that are one joined."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.parents: dict[Slot, Slot] = {}
        self.enter(nodes, None)

    def find(self, slot: Slot) -> Slot:
        """The axis that stands for all that are one with this."""
        while (parent := self.parents.get(slot, slot)) != slot:
            self.parents[slot] = self.parents.get(parent, parent)
            slot = parent
        return slot

    def axis(self, node: Node, place: Place, batch: Slot) -> int | None:
        """The axis of a value that is the batch axis."""
        if isinstance(node.type, TupleType):
            return None
        found = [p for p in range(node.type.ndim) if self.is_one((place, value_of(node), p), batch)]
        return found[0] if len(found) == 1 else None

    def is_one(self, a: Slot, b: Slot) -> bool:
        """Whether two axes are one."""
        return self.find(a) == self.find(b)

    def join(self, place: Place, x: Node, other: Place, y: Value, more: int = 0) -> None:
        """Make the axes of a value and those of another one, which has `more` before these."""
        for axis in range(x.type.ndim):
            self.parents[self.find((place, value_of(x), axis))] = self.find((other, y, axis + more))

    def enter(self, nodes: Iterable[Node], place: Place) -> None:
        """Join the axes of nodes to those of their operands."""
        for node in nodes:
            if node.op in LOOPS:
                self.enter_loop(node, place)
            elif node.op is not leaf.project and not isinstance(node.type, TupleType):
                for x, sources in zip(node.inputs, sources_of(node), strict=True):
                    if x.op is leaf.full:  # as many places as whoever reads it needs
                        continue
                    for axis, source in enumerate(sources):
                        if source is not None and source.how is How.EACH and len(source.axes) == 1:
                            a = self.find((place, value_of(x), source.axes[0]))
                            self.parents[a] = self.find((place, node, axis))

    def enter_loop(self, node: Node, place: Place) -> None:
        """Join the axes of a loop's operands and results to those of its body."""
        loop = Loop.of(node)
        n = len(loop.carries)
        for i, (param, start, update) in enumerate(loop.carries):
            for other, value in ((place, value_of(start)), (node, update), (place, (node, i))):
                self.join(node, param, other, value)
        for param, x in loop.sequences:
            self.join(node, param, place, value_of(x), 1)
        for param, x in loop.captured:
            self.join(node, param, place, value_of(x))
        for i, y in enumerate(loop.results, n):
            self.join(node, y, place, (node, i), 1)
        self.enter(toposort(loop.roots), node)

    def is_apart(self, node: Node, place: Place, batch: Slot) -> bool:
        """Whether a node computes each member of the batch from this member alone.

        Values without the batch axis are the same for all members.
        """
        own = self.axis(node, place, batch)
        for x, sources in zip(node.inputs, sources_of(node), strict=True):
            axis = self.axis(x, place, batch)
            if axis is None:
                continue
            if own is None or sources[own] != Source((axis,), How.EACH):
                return False
            others = [s for i, s in enumerate(sources) if i != own and s is not None]
            if any(axis in s.axes for s in others):
                return False
        return True


def sources_of(node: Node) -> Sequence[Sequence[Source | None]]:
    """The sources of the axes of a result in each operand."""
    (found,) = node.op.axes.sources(node)
    return found
