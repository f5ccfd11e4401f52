"""Values over axes that vanish: sums, extremes, products of matrices, norms.

Most are folds, and several folds of equal axes are done in one walk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from graphcore.ir import Node, Op, Shape
from graphcore.ir.sizes import count, lower_bound
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from . import extremes
from .arithmetic import cast, kind_of, literal, rule_of
from .builder import FALSE, PARTS, TRUE, WIDTH, Builder, Value, integer
from .folds import Fold, Totals, folded, single
from .joins import inside
from .lapack import is_for_routines
from .places import PLACES, At, Places, Rule


def axes_of(node: Node) -> tuple[int, ...]:
    """The axes of the operand that vanish."""
    if "axes" in node.attrs:
        axes: tuple[int, ...] = node.attrs["axes"]
        return axes
    return (node.attrs["axis"],)


def totals(node: Node) -> int:
    """How many totals a reduction has for each of its places."""
    extreme = node.op in (t.max_, t.min_) and node.type.dtype.kind == "f"
    return 2 if extreme or node.op in (t.argmax, t.argmin) else 1


def nonempty(p: Places, shape: Shape, axes: Sequence[int]) -> Value:
    """Whether some axes have any elements."""
    holds = TRUE
    for axis in axes:
        if (lower_bound(shape[axis]) or 0) < 1:
            n = p.size(shape[axis])
            if n.number == 0:
                return FALSE
            holds = p.b.both(holds, p.b.op("icmp sgt", n, integer(0)))
    return holds


class Folding(NamedTuple):
    """A reduction at a place: the fold, and its value when the fold is done."""

    fold: Fold
    finish: Callable[[Totals], Value] = lambda totals: totals[0]


Begin = Callable[[Places, Node, At, Value], Folding]


def alone(begin: Begin) -> Rule:
    """A reduction that is done by itself."""

    def rule(p: Places, node: Node, index: At, mask: Value) -> Value:
        fold, finish = begin(p, node, index, mask)
        return finish(folded(p, fold)[0])

    return rule


def together(p: Places, wanted: Sequence[tuple[Node, At]], mask: Value) -> None:
    """Reductions at their places that are then known, those of equal axes found in one walk."""
    groups: dict[object, list[tuple[Node, At, Folding]]] = {}
    for node, index in wanted:
        if node.op in FOLDS:
            begun = FOLDS[node.op](p, node, index, mask)
            key = begun.fold.over, begun.fold.is_wide
            groups.setdefault(key, []).append((node, index, begun))
    for group in groups.values():
        totals = folded(p, *[begun.fold for *_, begun in group])
        for (node, index, begun), total in zip(group, totals, strict=True):
            p.remember(node, index, mask, begun.finish(total))


def by(op: Op, start: Callable[[Node], Value]) -> Begin:
    """Values combined by an elementwise op."""

    def begin(p: Places, node: Node, index: At, mask: Value) -> Folding:
        (x,), b, kind = node.inputs, p.b, kind_of(node)

        def combine(a: Value, c: Value) -> Value:
            return rule_of(op, kind)(b, a, c)

        def value(at: At, m: Value) -> Value:
            return cast(b, p.at(x, at, m), kind)

        shape, axes = walked(p, node)

        def finish(totals: Totals) -> Value:
            (total,) = totals
            if node.attrs.get("initial") is not None:
                total = combine(total, start(node))
            if fold.rounds:  # the total begins with -0.0, but a sum of no values is 0.0
                total = b.select(nonempty(p, shape, axes), total, literal(0.0, kind))
            return total

        fold = single(shape, axes, index, mask, combine, start(node), value, op is e.add)
        return Folding(fold, finish)

    return begin


def walked(p: Places, node: Node) -> tuple[Shape, tuple[int, ...]]:
    """The space that a reduction walks through, and its axes that vanish: one if all do."""
    (x,), axes = node.inputs, axes_of(node)
    if len(axes) == x.type.ndim > 1 and p.is_flat(x):
        return (count(x.type.shape),), (0,)
    return x.type.shape, axes


def extreme(largest: bool) -> Begin:
    """The largest or smallest value, or nan; of zeros, 0.0 is larger than -0.0."""
    others = by(e.maximum if largest else e.minimum, no_extreme(largest))

    def begin(p: Places, node: Node, index: At, mask: Value) -> Folding:
        (x,), b, kind = node.inputs, p.b, kind_of(node)
        if kind[0] != "f":
            return others(p, node, index, mask)
        combine = partial(extremes.of_floats, b, largest)
        start = extremes.float_alone(b, no_extreme(largest)(node))

        def value(at: At, m: Value) -> Totals:
            return extremes.float_alone(b, cast(b, p.at(x, at, m), kind))

        def finish(totals: Totals) -> Value:
            if node.attrs.get("initial") is not None:
                totals = combine(totals, start)
            return extremes.float_of(b, totals, kind)

        shape, axes = walked(p, node)
        fold = Fold(shape, axes, index, mask, combine, start, value, combine, picks=True)
        return Folding(fold, finish)

    return begin


def zero(node: Node) -> Value:
    """A zero that changes no sum, not even its sign."""
    kind = kind_of(node)
    return literal(complex(-0.0, -0.0) if kind in PARTS else -0.0 if kind[0] == "f" else 0, kind)


def no_extreme(largest: bool) -> Callable[[Node], Value]:
    """The initial value of the op, or one that changes no extreme."""

    def start(node: Node) -> Value:
        if (initial := node.attrs.get("initial")) is not None:
            return literal(initial.item(), kind_of(node))
        return extremes.farthest(node.type.dtype, largest)

    return start


def position_of(largest: bool) -> Begin:
    """The first position of the largest or smallest value, or of the first nan."""

    def begin(p: Places, node: Node, index: At, mask: Value) -> Folding:
        (x,), b, axis = node.inputs, p.b, node.attrs["axis"]

        def value(at: At, m: Value) -> Totals:
            return [extremes.in_lanes(b, p.at(x, at, m)), p.spelled(at[axis])]

        # Where no value is better than this one, all are equal to it: the first one is at 0.
        start = [extremes.in_lanes(b, extremes.farthest(x.type.dtype, largest)), integer(0)]
        combine, append = [partial(f, b, largest) for f in (extremes.of_positions, extremes.later)]
        fold = Fold(x.type.shape, (axis,), index, mask, combine, start, value, append, picks=True)
        return Folding(fold, lambda totals: totals[1])

    return begin


def products(free_x: int, free_y: int) -> Begin:
    """Sums of products over the last axis of x and the first of y after the batch."""

    def begin(p: Places, node: Node, index: At, mask: Value) -> Folding:
        (x, y), b, kind = node.inputs, p.b, kind_of(node)
        batch = len(index) - free_x - free_y
        lead, row, column = index[:batch], index[batch : batch + free_x], index[batch + free_x :]

        def value(at: At, m: Value) -> Value:
            i = at[-1]
            left, right = p.at(x, (*lead, *row, i), m), p.at(y, (*lead, i, *column), m)
            return rule_of(e.multiply, kind)(b, cast(b, left, kind), cast(b, right, kind))

        def combine(a: Value, c: Value) -> Value:
            return b.plus(a, c) if kind in ("f64", "f32") else rule_of(e.add, kind)(b, a, c)

        shape = (*node.type.shape, x.type.shape[-1])
        last = (len(shape) - 1,)
        return Folding(single(shape, last, index, mask, combine, literal(0, kind), value))

    return begin


def norm(p: Places, node: Node, index: At, mask: Value) -> Value:
    """The root of the sum of squares; values whose squares leave the range are scaled."""
    (x,), b, kind = node.inputs, p.b, kind_of(node)
    axes, limits = node.attrs["axes"], np.finfo(node.type.dtype)

    def total(op: Op, value: Callable[[Value], Value]) -> Value:
        combine = lambda a, c: rule_of(op, kind)(b, a, c)
        each = lambda at, m: value(p.at(x, at, m))
        start, adds = literal(0.0, kind), op is e.add
        fold = single(x.type.shape, axes, index, mask, combine, start, each, adds)
        return folded(p, fold)[0][0]

    def root(scale: Value | None = None) -> Value:
        def square(v: Value) -> Value:
            v = v if scale is None else b.op("fmul", v, scale)
            return b.multiply(v, v)

        return b.call("sqrt", total(e.add, square))

    plain = root()
    least = literal(float(np.sqrt(limits.tiny / limits.eps)), kind)
    sound = b.op("and", b.op("fcmp ogt", plain, least),
                 b.op("fcmp olt", plain, literal(np.inf, kind)))  # fmt: skip

    def scaled() -> Sequence[Value]:
        largest = total(e.maximum, lambda v: b.call("fabs", v))
        # A power of two near the largest value: it rounds nothing.
        bits, mantissa = ("i64", 52) if kind == "f64" else ("i32", 23)
        bias = 2 ** (10 if kind == "f64" else 7) - 1
        power = b.op("lshr", b.convert("bitcast", largest, bits), integer(mantissa, bits))
        least_power, most = integer(2, bits), integer(2 * bias - 2, bits)
        power = b.call("smin", b.call("smax", power, least_power), most)
        up = b.op("shl", power, integer(mantissa, bits))
        down = b.op("shl", b.op("sub", integer(2 * bias, bits), power), integer(mantissa, bits))
        back, scale = b.convert("bitcast", up, kind), b.convert("bitcast", down, kind)
        found = b.op("fmul", root(scale), back)
        return [b.select(sound, plain, found)]

    if kind not in ("f64", "f32"):
        return plain
    return b.branch(b.any_lane(sound_everywhere(b, sound, mask)), scaled, lambda: [plain])[0]


def sound_everywhere(b: Builder, sound: Value, mask: Value) -> Value:
    """In which of the lanes that count the plain formula has failed."""
    return b.both(b.neither(sound), mask)


def overlap_add(p: Places, node: Node, index: At, mask: Value) -> Value:
    """The sum of the values at all places of the windows that lie on this place."""
    (x,), attrs, b, kind = node.inputs, node.attrs, p.b, kind_of(node)
    axes, shape = attrs["axes"], x.type.shape
    first, several = axes[0], len(axes)
    own = shape[first : first + several]

    def value(at: At, m: Value) -> Value:
        """The value at a place in a window if that lies on the result's place, both in `at`."""
        place, window = list(at[:-several]), at[-several:]
        holds = TRUE
        settings = zip(axes, window, attrs["strides"], attrs["dilations"], strict=True)
        for axis, j, stride, dilation in settings:
            far = p.times(j, integer(-dilation))
            reach = shape[axis + several]
            (place[axis],), fits = inside(
                p, (p.sum(place[axis], far),), (0,), (reach,), (stride,), (-1,)
            )
            holds = b.both(holds, fits)
        whole = (*place[:first], *window, *place[first:])
        found = p.at(x, whole, b.both(m, holds))
        return b.select(holds, found, literal(0, kind))

    def combine(a: Value, c: Value) -> Value:
        return rule_of(e.add, kind)(b, a, c)

    space = (*node.type.shape, *own)
    inner = [*range(node.type.ndim, len(space))]
    fold = single(space, inner, index, mask, combine, literal(0, kind), value)
    return folded(p, fold)[0][0]


def is_small_product(node: Node) -> bool:
    """Whether a matrix product is of so few numbers that calling a routine costs more."""
    if node.op is not t.matmul:
        return False
    if not is_for_routines(node):
        return True
    (*_, i, k), j = node.inputs[0].type.shape, node.type.shape[-1]
    if k == 1:
        return True
    known = isinstance(k, int) and k <= WIDTH
    return known and any(is_at_most(places, SMALL_PRODUCT) for places in ((i, j, k), (i, WIDTH, k)))


def is_at_most(shape: Shape, most: int) -> bool:
    """Whether a shape has so few places."""
    places = count(shape)
    return isinstance(places, int) and places <= most


SMALL_PRODUCT = 256
"""How many products of numbers a matrix product may have that calls no routine, for eight columns
where there may be any number of columns.
"""

FOLDS: dict[Op, Begin] = {
    t.sum_: by(e.add, zero),
    t.prod: by(e.multiply, lambda node: literal(1, kind_of(node))),
    t.max_: extreme(True),
    t.min_: extreme(False),
    t.any_: by(e.logical_or, lambda node: FALSE),
    t.all_: by(e.logical_and, lambda node: TRUE),
    t.argmax: position_of(True),
    t.argmin: position_of(False),
    t.matvec: products(1, 0),
    t.vecdot: products(0, 0),
    t.matmul: products(1, 1),
}
"""Reductions that can be done together with others of equal axes."""

REDUCTIONS: dict[Op, Rule] = {
    **{op: alone(begin) for op, begin in FOLDS.items()},
    t.norm: norm,
    t.overlap_add: overlap_add,
}
PLACES.update(REDUCTIONS)
