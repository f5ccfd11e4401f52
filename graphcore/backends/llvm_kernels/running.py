"""Cumulative reductions and recurrences: the elements of one axis in turn.

Along the last axis a value is carried from place to place, along others whole rows follow each
other. Running extremes are found several at a time, as no order of steps rounds differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .arithmetic import cast, kind_of, literal, rule_of
from .builder import PARTS, TRUE, Value, integer
from .places import At
from .reductions import no_extreme
from .results import changed, finished
from .rooms import ZERO, Index

if TYPE_CHECKING:
    from .writer import Homes, Writer

COMBINED: dict[Op, Op] = {
    t.cumsum: e.add,
    t.cumprod: e.multiply,
    t.cummax: e.maximum,
    t.cummin: e.minimum,
    t.logcumsumexp: e.logaddexp,
}


def running(w: Writer, node: Node, homes: Homes) -> None:
    """y[0] = x[0], y[i] = y[i - 1] + x[i]"""
    kind, (x,) = kind_of(node), node.inputs
    combine = rule_of(COMBINED[node.op], kind)

    def value(at: At, mask: Value) -> Value:
        return cast(w.b, w.places.at(x, at, mask), kind)

    def step(before: Value, at: At, mask: Value) -> Value:
        return combine(w.b, before, value(at, mask))

    last = node.attrs["axis"] == node.type.ndim - 1
    if node.op in (t.cummax, t.cummin) and last and kind not in PARTS:
        extremes_at_once(w, node, homes, value)
    else:
        in_turn(w, node, homes, value, step)


def extremes_at_once(
    w: Writer, node: Node, homes: Homes, value: Callable[[At, Value], Value]
) -> None:
    """Extremes along the last axis: within a vector, then with the last one before it."""
    p, b, kind, room = w.places, w.b, kind_of(node), w.home(node)
    *front, length = node.type.shape
    combine = partial(rule_of(COMBINED[node.op], kind), b)
    start = no_extreme(node.op is t.cummax)(node)

    def vector(at: At, i: Index, mask: Value, before: Value) -> Sequence[Value]:
        found, near = b.widen(value((*at, i), mask)), 1
        while near < b.width:  # lanes combined with those `near` before them, or with themselves
            places = [lane - near if lane >= near else lane for lane in range(b.width)]
            found = combine(b.shuffle(found, places), found)
            near *= 2
        found = combine(before, found)
        p.store(room, (*at, i), mask, found)
        return [b.shuffle(found, [b.width - 1] * b.width)]

    def row(at: At) -> Sequence[Value]:
        if len(at) == len(front):
            first = b.widen(start)
            p.lanes(w.size(length), [first], lambda i, mask, now: vector(at, i, mask, now))
            return ()
        return p.each(w.size(front[len(at)]), (), lambda i: row((*at, i)))

    with w.abreast(node):
        row(())
    finished(w, node, homes, room)


def recurrence(w: Writer, node: Node, homes: Homes) -> None:
    """h[0] = b[0], h[i] = a[i] h[i - 1] + b[i], where a factor of 0 forgets even an infinity."""
    a, x = node.inputs
    kind = kind_of(node)
    times, plus, equal = (rule_of(op, kind) for op in (e.multiply, e.add, e.equal))
    zero = literal(0, kind)

    def start(at: At, mask: Value) -> Value:
        return cast(w.b, w.places.at(x, at, mask), kind)

    def step(before: Value, at: At, mask: Value) -> Value:
        b, factor = w.b, cast(w.b, w.places.at(a, at, mask), kind)
        kept = b.select(equal(b, factor, zero), zero, times(b, factor, before))
        return plus(b, kept, start(at, mask))

    in_turn(w, node, homes, start, step)


def in_turn(
    w: Writer,
    node: Node,
    homes: Homes,
    start: Callable[[At, Value], Value],
    step: Callable[[Value, At, Value], Value],
) -> None:
    """The first place of an axis, then each from the one before."""
    p, b, axis, shape = w.places, w.b, node.attrs["axis"], node.type.shape
    room, last = w.home(node), axis == node.type.ndim - 1
    length = w.size(shape[axis])

    def rows(index: At) -> Sequence[Value]:
        """All places at one place of the axes up to and with `axis`."""
        first = index[axis].base.number == 0

        def place(index: At, mask: Value) -> Sequence[Value]:
            if first:
                value = start(index, mask)
            else:
                before = Index(b.sub(index[axis].base, integer(1)))
                at = (*index[:axis], before, *index[axis + 1 :])
                value = step(p.load(changed(w, room), at, mask), index, mask)
            p.store(room, index, mask, value)
            return ()

        def inner(index: At) -> Sequence[Value]:
            n = len(index)
            if n < len(shape) - 1:
                return p.each(w.size(shape[n]), (), lambda i: inner((*index, i)))
            return p.lanes(w.size(shape[n]), (), lambda i, mask: place((*index, i), mask))

        return inner(index)

    def along(index: At) -> Sequence[Value]:
        """All places of the axis at one place of those before it."""

        def begin() -> Sequence[Value]:
            if not last:
                rows((*index, ZERO))
                p.looped(integer(1), length, 1, (), lambda i: rows((*index, Index(i))))
                return ()
            value = start((*index, ZERO), TRUE)
            p.store(room, (*index, ZERO), TRUE, value)

            def one(i: Value, before: Value) -> Sequence[Value]:
                value = step(before, (*index, Index(i)), TRUE)
                p.store(room, (*index, Index(i)), TRUE, value)
                return [value]

            b.loop(integer(1), length, 1, [value], one)
            return ()

        if length.number is None:
            b.branch(b.op("icmp sgt", length, integer(0)), begin)
        elif length.number > 0:
            begin()
        return ()

    def outer(index: At) -> Sequence[Value]:
        if len(index) == axis:
            return along(index)
        return p.each(w.size(shape[len(index)]), (), lambda i: outer((*index, i)))

    with w.abreast(node):
        outer(())
    finished(w, node, homes, room)


RUNNING = {**dict.fromkeys(COMBINED, running), t.recurrence: recurrence}
