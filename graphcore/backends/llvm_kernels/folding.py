"""Values over axes that vanish, combined: by lanes of the result, or by lanes along the last axis.

Several folds of equal axes are done in one walk. Sums add up blocks, so that rounding grows with
the number of blocks and not with that of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from graphcore.ir.sizes import Shape

from .builder import TRUE, WIDTH, Builder, Value, integer
from .places import At, Places
from .rooms import Index

Combine = Callable[[Value, Value], Value]

BLOCK = 1024
"""How many values are added up before their sum joins the total."""


class Fold(NamedTuple):
    """Values over `axes` of a space that are combined, the other axes being at `place`.

    A `block` of 0 is for what rounds nothing.
    """

    shape: Shape
    axes: Sequence[int]
    place: At
    mask: Value
    combine: Combine
    start: Value
    value: Callable[[At, Value], Value]
    block: int = BLOCK

    @property
    def over(self) -> Shape:
        """The sizes of the axes that vanish."""
        return tuple([self.shape[axis] for axis in self.axes])

    @property
    def is_wide(self) -> bool:
        """Whether lanes of the result stand side by side."""
        return any(i.is_wide for i in self.place)

    def at(self, inner: Sequence[Index], mask: Value) -> Value:
        """The value at a place of the axes that vanish."""
        rest, others = dict(zip(self.axes, inner, strict=True)), iter(self.place)
        whole = [rest[i] if i in rest else next(others) for i in range(len(self.shape))]
        return self.value(tuple(whole), mask)


def folded(p: Places, *folds: Fold) -> list[Value]:
    """What some folds of equal axes come to; the lanes of all results, or of none, are wide."""
    b, first = p.b, folds[0]
    sizes = [p.size(n) for n in first.over]
    wide, rank = first.is_wide, len(sizes)
    block = max(fold.block for fold in folds)
    wide_starts = [b.widen(fold.start) for fold in folds]
    starts = wide_starts if wide else [fold.start for fold in folds]

    if prod([WIDTH + 1 if n.number is None else n.number for n in sizes]) <= WIDTH:
        return [written_out(p, fold, sizes) for fold in folds]

    def combined(now: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        return [fold.combine(x, y) for fold, x, y in zip(folds, now, values, strict=True)]

    def outer(
        n: int, inner: tuple[Index, ...], acc: Sequence[Value], body: Callable[..., Sequence[Value]]
    ) -> Sequence[Value]:
        """body(inner, *acc) at the places of all axes from n to the last but one."""
        if n == rank - 1:
            return body(inner, *acc)

        def one(i: Index, m: Value, *now: Value) -> Sequence[Value]:
            return outer(n + 1, (*inner, i), now, body)

        return in_blocks(p, sizes[n], 1, acc, wide_starts, combined, one, block)

    def side_by_side(inner: tuple[Index, ...], *now: Value) -> Sequence[Value]:
        def lane(i: Index, m: Value, *now: Value) -> Sequence[Value]:
            values = [b.widen(fold.at((*inner, i), b.both(m, fold.mask))) for fold in folds]
            kept = zip(values, [fold.start for fold in folds], strict=True)
            return combined(now, [b.select(m, x, start) for x, start in kept])

        return in_blocks(p, sizes[-1], b.width, now, wide_starts, combined, lane, block)

    def last_in_turn(inner: tuple[Index, ...], *now: Value) -> Sequence[Value]:
        def one(i: Index, m: Value, *now: Value) -> Sequence[Value]:
            return combined(now, [fold.at((*inner, i), fold.mask) for fold in folds])

        return in_blocks(p, sizes[-1], 1, now, starts, combined, one, block)

    if wide:
        return [*outer(0, (), wide_starts, last_in_turn)]
    totals = outer(0, (), wide_starts, side_by_side)
    return [across(b, fold.combine, x) for fold, x in zip(folds, totals, strict=True)]


def written_out(p: Places, fold: Fold, sizes: Sequence[Value]) -> Value:
    """A few values combined, one after the other."""
    places: list[tuple[Index, ...]] = [()]
    for size in sizes:
        places = [(*at, Index(integer(i))) for at in places for i in range(size.number or 0)]
    values = [fold.at(inner, fold.mask) for inner in places]
    if not values:
        return fold.start
    total = values[0]
    for x in values[1:]:
        total = fold.combine(total, x)
    return total


def in_blocks(
    p: Places,
    size: Value,
    step: int,
    acc: Sequence[Value],
    start: Sequence[Value],
    combined: Callable[[Sequence[Value], Sequence[Value]], Sequence[Value]],
    body: Callable[..., Sequence[Value]],
    size_of_block: int,
) -> Sequence[Value]:
    """body(index, mask, *acc) over an axis in steps of 1, or side by side, the blocks apart."""
    b = p.b

    def along(first: Value, last: Value, acc: Sequence[Value]) -> Sequence[Value]:
        if step != 1:
            return p.run(first, last, acc, body, size_of_block or None)
        if first.number == 0:
            return p.each(last, acc, lambda i, *now: body(i, TRUE, *now))
        one = lambda i, *now: body(Index(i), TRUE, *now)
        return b.loop(first, last, 1, acc, one, size_of_block)

    if not size_of_block or (size.number is not None and size.number <= size_of_block):
        return along(integer(0), size, acc)

    def block(first: Value, *now: Value) -> Sequence[Value]:
        last = b.call("smin", b.add(first, integer(size_of_block)), size)
        parts = along(first, last, start)
        if b.signals.in_nests:
            b.spend(integer(size_of_block))
        return combined(now, parts)

    return p.looped(integer(0), size, size_of_block, acc, block, looks=b.signals.in_nests)


def across(b: Builder, combine: Combine, x: Value) -> Value:
    """All lanes combined, as a tree."""
    width = x.wide
    while width > 1:
        width //= 2
        # Only the lanes that count: of lanes turned around LLVM 22 has added one to itself.
        x = combine(x, b.shuffle(x, [i + width if i < width else -1 for i in range(x.wide)]))
    return b.lane(x, 0)
