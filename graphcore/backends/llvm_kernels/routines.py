"""ALONE: ops that are steps of their own, written as loops or as calls of routines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.types import TupleType
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .arithmetic import cast, kind_of, literal, rule_of
from .builder import TRUE, Value, integer
from .places import At, counted, position
from .rooms import ZERO, Index, Room

if TYPE_CHECKING:
    from .writer import Homes, Writer

Routine = Callable[["Writer", Node, "Homes"], None]


def operands_in_rooms(node: Node) -> Sequence[Node]:
    """The operands of a loop, branch or routine that have to lie in memory, or in registers."""
    if isinstance(node.type, TupleType):
        return node.inputs
    return ()


def scattered(w: Writer, node: Node, homes: Homes) -> None:
    """Updates added one after the other at their positions, to zeros or to a tensor."""
    p, b, axes, kind = w.places, w.b, node.attrs["axes"], kind_of(node)
    updates, *indices = node.inputs[-len(axes) - 1 :]
    room = w.home(node)
    rank = indices[0].type.ndim
    w.check(node, node)

    def clear(index: At, mask: Value) -> None:
        value = p.at(node.inputs[0], index, mask) if node.op is t.scatter_add else literal(0, kind)
        p.store(room, index, mask, value)

    p.everywhere(node.type.shape, clear)
    shape = updates.type.shape

    def inner(index: At) -> Sequence[Value]:
        n = len(index)
        if n < len(shape):
            p.each(w.size(shape[n]), (), lambda i: inner((*index, i)))
            return ()
        rest = iter(index[rank:])
        at = [ZERO if axis in axes else next(rest) for axis in range(node.type.ndim)]
        for axis, positions in zip(axes, indices, strict=True):
            i, wrong = counted(p, position(p, positions, index[:rank], TRUE), node.type.shape[axis])
            at[axis] = Index(b.select(wrong, integer(0), i))
        b.names += 1
        changing = room._replace(level=b.level, version=b.names)
        old = p.load(changing, at, TRUE)
        p.store(room, at, TRUE, rule_of(e.add, kind)(b, old, p.at(updates, index)))
        return ()

    inner(())
    finished(w, node, homes, room)


def running_sum(w: Writer, node: Node, homes: Homes) -> None:
    """The places of one axis in turn, the others around it."""
    p, b, axis, kind = w.places, w.b, node.attrs["axis"], kind_of(node)
    (x,), room = node.inputs, w.home(node)

    def inner(n: int, index: dict[int, Index]) -> Sequence[Value]:
        n += n == axis
        if n < node.type.ndim:
            p.each(w.size(node.type.shape[n]), (), lambda i: inner(n + 1, index | {n: i}))
            return ()

        def one(i: Index, total: Value) -> Sequence[Value]:
            at = tuple([(index | {axis: i})[k] for k in range(node.type.ndim)])
            total = rule_of(e.add, kind)(b, total, cast(b, p.at(x, at), kind))
            p.store(room, at, TRUE, total)
            return [total]

        start = literal(-0.0 if kind[0] == "f" else 0, kind)
        p.each(w.size(node.type.shape[axis]), [start], one)
        return ()

    inner(0, {})
    finished(w, node, homes, room)


def finished(w: Writer, node: Node, homes: Homes, room: Room) -> None:
    """Make the room of a node known, and copy it to where else the result goes."""
    w.b.names += 1
    w.places.rooms[node] = room._replace(level=w.b.level, version=w.b.names)
    w.copy(node, homes.get(node, ())[1:])


ALONE: dict[Op, Routine] = {
    t.scatter: scattered,
    t.scatter_add: scattered,
    t.cumsum: running_sum,
}
