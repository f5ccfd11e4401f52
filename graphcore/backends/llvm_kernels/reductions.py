"""Values over axes that vanish: sums, extremes, products of matrices, norms.

Where the lanes of a result stand side by side, they walk the vanishing axes together; one value
alone is found from lanes that walk along the last of them. Sums add up blocks, so that rounding
grows with the number of blocks and not with that of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import Shape, count, lower_bound
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .arithmetic import cast, kind_of, literal, rule_of
from .builder import FALSE, PARTS, TRUE, WIDTH, Builder, Value, integer
from .matrices import is_for_routines
from .places import PLACES, At, Places, Rule, inside
from .rooms import Index

Combine = Callable[[Value, Value], Value]

BLOCK = 1024
"""How many values are added up before their sum joins the total."""


def folded(
    p: Places,
    shape: Shape,
    axes: Sequence[int],
    index: At,
    mask: Value,
    combine: Combine,
    start: Value,
    value: Callable[[At, Value], Value],
    block: int = BLOCK,
) -> Value:
    """Values over `axes` of a space combined, the other axes being at `index`.

    A `block` of 0 is for what rounds nothing.
    """
    b = p.b
    sizes = [p.size(shape[axis]) for axis in axes]
    wide = any(i.is_wide for i in index)
    numbers = [size.number for size in sizes]
    few = prod([WIDTH + 1 if n is None else n for n in numbers]) <= WIDTH

    def place(inner: Sequence[Index]) -> At:
        rest, others = dict(zip(axes, inner, strict=True)), iter(index)
        return tuple([rest[i] if i in rest else next(others) for i in range(len(shape))])

    def outer(
        n: int,
        last: int,
        inner: tuple[Index, ...],
        acc: Sequence[Value],
        body: Callable[..., Sequence[Value]],
    ) -> Sequence[Value]:
        """body(inner, *acc) at the places of all axes from n to `last`."""
        if n == last:
            return body(inner, *acc)

        def one(i: Index, m: Value, *now: Value) -> Sequence[Value]:
            return outer(n + 1, last, (*inner, i), now, body)

        first = b.widen(start) if wide or last < len(axes) else start
        return in_blocks(p, sizes[n], 1, acc, first, combine, one, block if acc else 0)

    if few:
        values: list[Value] = []

        def take(inner: tuple[Index, ...]) -> Sequence[Value]:
            values.append(value(place(inner), mask))
            return ()

        outer(0, len(axes), (), (), take)
        if not values:
            return start
        total = values[0]
        for x in values[1:]:
            total = combine(total, x)
        return total

    def in_turn(inner: tuple[Index, ...], *now: Value) -> Sequence[Value]:
        return [combine(now[0], value(place(inner), mask))]

    def side_by_side(inner: tuple[Index, ...], *now: Value) -> Sequence[Value]:
        def lane(i: Index, m: Value, *now: Value) -> Sequence[Value]:
            x = b.select(m, b.widen(value(place((*inner, i)), b.both(m, mask))), start)
            return [combine(now[0], x)]

        return in_blocks(p, sizes[-1], b.width, now, b.widen(start), combine, lane, block)

    def last_in_turn(inner: tuple[Index, ...], *now: Value) -> Sequence[Value]:
        def one(i: Index, m: Value, *now: Value) -> Sequence[Value]:
            return in_turn((*inner, i), *now)

        first = b.widen(start) if wide else start
        return in_blocks(p, sizes[-1], 1, now, first, combine, one, block)

    if wide:
        (total,) = outer(0, len(axes) - 1, (), [b.widen(start)], last_in_turn)
        return total
    (total,) = outer(0, len(axes) - 1, (), [b.widen(start)], side_by_side)
    return across(b, combine, total)


def in_blocks(
    p: Places,
    size: Value,
    step: int,
    acc: Sequence[Value],
    start: Value,
    combine: Combine,
    body: Callable[..., Sequence[Value]],
    size_of_block: int,
) -> Sequence[Value]:
    """body(index, mask, *acc) over an axis in steps of 1, or side by side, the blocks apart."""
    b = p.b

    def along(first: Value, last: Value, acc: Sequence[Value]) -> Sequence[Value]:
        if step != 1:
            return p.run(first, last, acc, body)
        if first.number == 0:
            return p.each(last, acc, lambda i, *now: body(i, TRUE, *now))
        return b.loop(first, last, 1, acc, lambda i, *now: body(Index(i), TRUE, *now))

    if not size_of_block or (size.number is not None and size.number <= size_of_block):
        return along(integer(0), size, acc)

    def block(first: Value, *now: Value) -> Sequence[Value]:
        last = b.call("smin", b.add(first, integer(size_of_block)), size)
        (part,) = along(first, last, [start])
        return [combine(now[0], part)]

    return p.looped(integer(0), size, size_of_block, acc, block)


def across(b: Builder, combine: Combine, x: Value) -> Value:
    """All lanes combined, as a tree."""
    width = x.wide
    while width > 1:
        width //= 2
        # Only the lanes that count: of lanes turned around LLVM 22 has added one to itself.
        x = combine(x, b.shuffle(x, [i + width if i < width else -1 for i in range(x.wide)]))
    return b.lane(x, 0)


def axes_of(node: Node) -> tuple[int, ...]:
    """The axes of the operand that vanish."""
    if "axes" in node.attrs:
        axes: tuple[int, ...] = node.attrs["axes"]
        return axes
    return (node.attrs["axis"],)


def nonempty(p: Places, shape: Shape, axes: Sequence[int]) -> Value:
    """Whether there is anything over some axes."""
    holds = TRUE
    for axis in axes:
        if (lower_bound(shape[axis]) or 0) < 1:
            n = p.size(shape[axis])
            if n.number == 0:
                return FALSE
            holds = p.b.both(holds, p.b.op("icmp sgt", n, integer(0)))
    return holds


def by(op: Op, start: Callable[[Node], Value]) -> Rule:
    """Values combined by an elementwise op."""

    def rule(p: Places, node: Node, index: At, mask: Value) -> Value:
        (x,), b, kind = node.inputs, p.b, kind_of(node)

        def combine(a: Value, c: Value) -> Value:
            return rule_of(op, kind)(b, a, c)

        def value(at: At, m: Value) -> Value:
            return cast(b, p.at(x, at, m), kind)

        axes = axes_of(node)
        block, shape = BLOCK if op is e.add and kind[0] in "fc" else 0, x.type.shape
        if len(axes) == len(shape) > 1 and p.is_flat(x):
            shape, axes = (count(shape),), (0,)
        total = folded(p, shape, axes, index, mask, combine, start(node), value, block)
        if node.attrs.get("initial") is not None:
            total = combine(total, start(node))
        if op is e.add and kind[0] in "fc":  # begun with -0.0, which of nothing is no sum
            total = b.select(nonempty(p, shape, axes), total, literal(0.0, kind))
        return total

    return rule


def zero(node: Node) -> Value:
    """What changes no sum, not even its sign."""
    kind = kind_of(node)
    return literal(complex(-0.0, -0.0) if kind in PARTS else -0.0 if kind[0] == "f" else 0, kind)


def extreme(largest: bool) -> Callable[[Node], Value]:
    """What every value exceeds, or what the op says."""

    def start(node: Node) -> Value:
        if (initial := node.attrs.get("initial")) is not None:
            return literal(initial.item(), kind_of(node))
        dtype, far = node.type.dtype, -np.inf if largest else np.inf
        if dtype.kind == "c":
            return literal(complex(far, far), kind_of(node))
        if dtype.kind == "f":
            return literal(far, kind_of(node))
        if dtype.kind == "b":
            return literal(not largest, "i1")
        limits = np.iinfo(dtype)
        return literal(int(limits.min if largest else limits.max), kind_of(node))

    return start


def position_of(largest: bool) -> Rule:
    """The first position of the largest or smallest value, or of the first nan."""

    def rule(p: Places, node: Node, index: At, mask: Value) -> Value:
        (x,), b, axis = node.inputs, p.b, node.attrs["axis"]
        kind, wide = kind_of(x), any(i.is_wide for i in index)
        spread = b.widen if wide else lambda x: x

        def step(i: Index, best: Value, where: Value) -> Sequence[Value]:
            value = p.at(x, (*index[:axis], i, *index[axis:]), mask)
            better = rule_of(e.greater if largest else e.less, kind)(b, value, best)
            if kind[0] in "fc":
                isnan = rule_of(e.isnan, kind)
                fresh = b.neither(isnan(b, best))
                better = b.op("or", better, b.both(isnan(b, value), fresh))
            better = b.op("or", better, b.op("icmp eq", i.base, integer(0)))
            chosen = b.select(better, value, best), b.select(better, i.base, where)
            return [spread(y) for y in chosen]

        first = [spread(literal(0, kind)), spread(integer(0))]
        return p.each(p.size(x.type.shape[axis]), first, step)[1]

    return rule


def products(free_x: int, free_y: int) -> Rule:
    """Sums of products over the last axis of x and the first of y after the batch."""

    def rule(p: Places, node: Node, index: At, mask: Value) -> Value:
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
        return folded(p, shape, last, index, mask, combine, literal(0, kind), value)

    return rule


def norm(p: Places, node: Node, index: At, mask: Value) -> Value:
    """The root of the sum of squares; values whose squares leave the range are scaled."""
    (x,), b, kind = node.inputs, p.b, kind_of(node)
    axes, limits = node.attrs["axes"], np.finfo(node.type.dtype)

    def add(a: Value, c: Value) -> Value:
        return rule_of(e.add, kind)(b, a, c)

    def total(combine: Combine, value: Callable[[Value], Value]) -> Value:
        each = lambda at, m: value(p.at(x, at, m))
        return folded(p, x.type.shape, axes, index, mask, combine, literal(0.0, kind), each)

    def root(scale: Value | None = None) -> Value:
        def square(v: Value) -> Value:
            v = v if scale is None else b.op("fmul", v, scale)
            return b.multiply(v, v)

        return b.call("sqrt", total(add, square))

    plain = root()
    least = literal(float(np.sqrt(limits.tiny / limits.eps)), kind)
    sound = b.op("and", b.op("fcmp ogt", plain, least),
                 b.op("fcmp olt", plain, literal(np.inf, kind)))  # fmt: skip

    def scaled() -> Sequence[Value]:
        largest = total(lambda a, c: rule_of(e.maximum, kind)(b, a, c), lambda v: b.call("fabs", v))
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
    """The sum of what each place of a window has for this place."""
    (x,), attrs, b, kind = node.inputs, node.attrs, p.b, kind_of(node)
    axes, shape = attrs["axes"], x.type.shape
    first, several = axes[0], len(axes)
    own = shape[first : first + several]

    def value(at: At, m: Value) -> Value:
        """Of the window's place at the end of `at`, for the place of the result before it."""
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
    return folded(p, space, inner, index, mask, combine, literal(0, kind), value)


def is_small_product(node: Node) -> bool:
    """Whether a matrix product is of so few numbers that calling a routine costs more."""
    if node.op is not t.matmul:
        return False
    if not is_for_routines(node):
        return True
    (*_, i, k), j = node.inputs[0].type.shape, node.type.shape[-1]
    places = count((i, j, k))
    return isinstance(places, int) and places <= SMALL and isinstance(k, int) and k <= WIDTH


SMALL = 256
"""How many products of numbers a matrix product may have that calls no routine."""

REDUCTIONS: dict[Op, Rule] = {
    t.sum_: by(e.add, zero),
    t.prod: by(e.multiply, lambda node: literal(1, kind_of(node))),
    t.max_: by(e.maximum, extreme(True)),
    t.min_: by(e.minimum, extreme(False)),
    t.any_: by(e.logical_or, lambda node: FALSE),
    t.all_: by(e.logical_and, lambda node: TRUE),
    t.argmax: position_of(True),
    t.argmin: position_of(False),
    t.matvec: products(1, 0),
    t.vecdot: products(0, 0),
    t.matmul: products(1, 1),
    t.norm: norm,
    t.overlap_add: overlap_add,
}
PLACES.update(REDUCTIONS)
