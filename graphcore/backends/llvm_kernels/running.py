"""Cumulative reductions and recurrences: the elements of one axis in turn.

Along the last axis a value is carried from place to place, along others whole rows follow each
other. Running extremes are found several at a time, as no order of steps rounds differently. What
rounding adds to a running sum is added up beside it, and subtracted from each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from graphcore.ir import Node, Op, TensorType
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .addressing import ZERO, Buffer, Index
from .arithmetic import cast, kind_of, literal, rule_of
from .batches import each_shared, in_ranges
from .builder import PARTS, TRUE, Value, integer
from .conversions import DOUBLE, DTYPES
from .extremes import farthest
from .folds import rounding
from .places import At
from .results import changed, finished
from .storing import reaches
from .writer import Homes, Writer

COLUMNS = 64
"""How many places side by side threads get at least."""

COMBINED: dict[Op, Op] = {
    t.cumsum: e.add,
    t.cumprod: e.multiply,
    t.cummax: e.maximum,
    t.cummin: e.minimum,
}


def running(w: Writer, node: Node, homes: Homes) -> None:
    """y[0] = x[0], y[i] = y[i - 1] + x[i]"""
    kind, (x,) = kind_of(node), node.inputs
    combine = rule_of(COMBINED[node.op], kind)

    def value(at: At, mask: Value) -> Value:
        return cast(w.b, w.places.at(x, at, mask), kind)

    def step(before: Sequence[Value], at: At, mask: Value) -> list[Value]:
        return [combine(w.b, before[0], value(at, mask))]

    last = node.attrs["axis"] == node.type.ndim - 1
    if node.op in (t.cummax, t.cummin) and last and kind not in PARTS:
        extremes_at_once(w, node, homes, value)
    elif node.op is t.cumsum and kind[0] in "fc":
        running_sum(w, node, homes)
    else:
        in_turn(w, node, homes, lambda at, mask: [value(at, mask)], step)


def running_sum(w: Writer, node: Node, homes: Homes) -> None:
    """s[i] = s[i - 1] + x[i], which rounds by r[i] = s[i] - s[i - 1] - x[i]; y[i] = s[i] - sum r"""
    b, kind, (x,) = w.b, kind_of(node), node.inputs
    wide = DOUBLE.get(kind, kind)
    plus, minus = rule_of(e.add, kind), rule_of(e.subtract, wide)

    def start(at: At, mask: Value) -> list[Value]:
        first = cast(b, w.places.at(x, at, mask), kind)
        return [first, first, literal(0, wide)]

    def step(before: Sequence[Value], at: At, mask: Value) -> list[Value]:
        _, total, added = before
        value = cast(b, w.places.at(x, at, mask), kind)
        found = plus(b, total, value)
        more = cast(b, rounding(b, total, value, found), wide)
        added = rule_of(e.add, wide)(b, added, more)
        return [cast(b, minus(b, cast(b, found, wide), added), kind), found, added]

    in_turn(w, node, homes, start, step, (kind, wide))


def log_of_running_sum(w: Writer, node: Node, homes: Homes) -> None:
    """y = r + log(s), where s is the running sum of e^(x - r), and r follows the largest x.

    As r rises only where x is larger by more than 1, s is seldom scaled. What rounding adds to s is
    subtracted from the next term.
    """
    b, (x,), kind = w.b, node.inputs, "f64" if kind_of(node) == "f64" else "f32"
    exp, log, less = (rule_of(op, kind) for op in (e.exp, e.log, e.less))
    most = float(np.finfo(DTYPES[kind]).max)
    zero, one, inf = (literal(number, kind) for number in (0.0, 1.0, np.inf))

    def start(at: At, mask: Value) -> list[Value]:
        value = cast(b, w.places.at(x, at, mask), kind)
        below = b.select(less(b, value, literal(most, kind)), value, literal(most, kind))
        far = b.select(less(b, literal(-most, kind), below), below, literal(-most, kind))
        return [cast(b, value, kind_of(node)), far, exp(b, b.op("fsub", value, far)), zero]

    def step(before: Sequence[Value], at: At, mask: Value) -> list[Value]:
        _, far, total, added = before
        value = cast(b, w.places.at(x, at, mask), kind)
        apart = b.op("fsub", value, far)
        rises = b.both(less(b, one, apart), less(b, far, literal(most, kind)))
        is_end = b.op("fcmp oeq", value, inf)
        part = exp(b, b.select(rises, b.op("fneg", apart), apart))
        term = b.select(rises, b.select(is_end, inf, one), part)
        scale = b.select(rises, part, one)
        total, added = b.op("fmul", total, scale), b.op("fmul", added, scale)
        far = b.select(rises, b.select(is_end, literal(most, kind), value), far)
        term = b.op("fsub", term, added)
        found = b.op("fadd", total, term)
        lost = rounding(b, total, term, found)
        log_of_all = b.op("fadd", far, log(b, found))
        return [cast(b, log_of_all, kind_of(node)), far, found, lost]

    in_turn(w, node, homes, start, step, (kind, kind, kind))


def extremes_at_once(
    w: Writer, node: Node, homes: Homes, value: Callable[[At, Value], Value]
) -> None:
    """Extremes along the last axis: within a vector, then with the last one before it."""
    p, b, kind, buffer = w.places, w.b, kind_of(node), w.home(node)
    *front, length = node.type.shape
    combine = partial(rule_of(COMBINED[node.op], kind), b)
    start = farthest(node.type.dtype, node.op is t.cummax)

    def vector(at: At, i: Index, mask: Value, before: Value) -> Sequence[Value]:
        found, near = b.widen(value((*at, i), mask)), 1
        while near < b.width:  # lanes combined with those `near` before them, or with themselves
            places = [lane - near if lane >= near else lane for lane in range(b.width)]
            found = combine(b.shuffle(found, places), found)
            near *= 2
        found = combine(before, found)
        p.store(buffer, (*at, i), mask, found)
        return [b.shuffle(found, [b.width - 1] * b.width)]

    def row(_: Value, index: tuple[Value, ...]) -> None:
        at, first = tuple(map(Index, index)), b.widen(start)
        p.lanes(w.size(length), [first], lambda i, mask, now: vector(at, i, mask, now))

    with w.vectorised(node):
        work = partial(w.program.count, node.type.shape)
        each_shared(w, tuple(front), work, lambda: row)
    finished(w, node, homes, buffer)


def recurrence(w: Writer, node: Node, homes: Homes) -> None:
    """h[0] = b[0], h[i] = a[i] h[i - 1] + b[i], where a factor of 0 forgets even an infinity."""
    a, x = node.inputs
    kind = kind_of(node)
    times, plus, equal = (rule_of(op, kind) for op in (e.multiply, e.add, e.equal))
    zero = literal(0, kind)

    def start(at: At, mask: Value) -> list[Value]:
        return [cast(w.b, w.places.at(x, at, mask), kind)]

    def step(before: Sequence[Value], at: At, mask: Value) -> list[Value]:
        b, factor = w.b, cast(w.b, w.places.at(a, at, mask), kind)
        kept = b.select(equal(b, factor, zero), zero, times(b, factor, before[0]))
        return [plus(b, kept, start(at, mask)[0])]

    in_turn(w, node, homes, start, step)


def in_turn(
    w: Writer,
    node: Node,
    homes: Homes,
    start: Callable[[At, Value], list[Value]],
    step: Callable[[Sequence[Value], At, Value], list[Value]],
    more: Sequence[str] = (),
) -> None:
    """The first place of an axis, then each from the one before: its value, and what else it has.

    Rows that follow each other have buffers for that of the last one, of these kinds.
    """
    p, b, axis, shape = w.places, w.b, node.attrs["axis"], node.type.shape
    buffer, last = w.home(node), axis == node.type.ndim - 1
    length = w.size(shape[axis])
    kept = [] if last else [TensorType(DTYPES[kind], shape[axis + 1 :]) for kind in more]
    taken = [w.new(node, type) for type in kept]

    def rows(others: Sequence[Buffer], ends: tuple[Value, Value], index: At) -> Sequence[Value]:
        """Places at one place of the axes up to and with `axis`, of the last axis between ends."""
        first = index[axis].base.number == 0

        def place(index: At, mask: Value) -> Sequence[Value]:
            inner = index[axis + 1 :]
            if first:
                value, *rest = start(index, mask)
            else:
                at = (*index[:axis], Index(b.sub(index[axis].base, integer(1))), *inner)
                before = [p.load(changed(w, buffer), at, mask)]
                before += [p.load(changed(w, other), inner, mask) for other in others]
                value, *rest = step(before, index, mask)
            p.store(buffer, index, mask, value)
            for other, x in zip(others, rest, strict=True):
                p.store(other, inner, mask, x)
            return ()

        def inner(index: At) -> Sequence[Value]:
            n = len(index)
            if n < len(shape) - 1:
                return p.each(w.size(shape[n]), (), lambda i: inner((*index, i)))
            return p.run(*ends, (), lambda i, mask: place((*index, i), mask))

        return inner(index)

    def along(
        others: Sequence[Buffer], before: tuple[Value, ...], begin: Value, many: Value
    ) -> None:
        """Places of the axis at one place of those before it, for some of the last axis."""
        index, ends = tuple(map(Index, before)), (begin, b.add(begin, many))

        def whole() -> Sequence[Value]:
            if not last:
                further = lambda i: rows(others, ends, (*index, Index(i)))
                rows(others, ends, (*index, ZERO))
                p.looped(integer(1), length, 1, (), further)
                return ()
            begun = start((*index, ZERO), TRUE)
            p.store(buffer, (*index, ZERO), TRUE, begun[0])

            def one(i: Value, *before: Value) -> Sequence[Value]:
                found = step(before, (*index, Index(i)), TRUE)
                p.store(buffer, (*index, Index(i)), TRUE, found[0])
                return found

            b.loop(integer(1), length, 1, begun, one)
            return ()

        b.branch(reaches(b, length, 1), whole)

    def ranges() -> None:
        size, group = (1, 1) if last else (shape[-1], COLUMNS)
        some = partial(along, [w.own(each) for each in taken])
        in_ranges(w, shape[:axis], w.size(size), integer(group), some)

    with w.vectorised(node):
        if node.type.ndim > 1:
            w.sharing.over(partial(w.program.count, shape), ranges)
        else:
            ranges()
    finished(w, node, homes, buffer)


RUNNING = {
    **dict.fromkeys(COMBINED, running),
    t.logcumsumexp: log_of_running_sum,
    t.recurrence: recurrence,
}
