"""Reductions along axes, in the lanes of the result or in lanes along the last axis.

Several folds of equal axes are done in one walk. Sums of floats are compensated: the values of a
block are added up plainly, but what rounding adds when the sum of a block joins the total is
subtracted from the next one (Kahan's summation of blocks). So the error does not grow with the
number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

from graphcore.ir import Shape
from graphcore.ops import elementwise as e

from .addressing import BYTES, Index
from .arena import LINE
from .arithmetic import literal, rule_of
from .builder import PARTS, TRUE, WIDTH, Builder, Value, integer
from .places import WRITTEN_OUT, At, Places

Totals = Sequence[Value]
"""What a fold keeps of the values so far: a sum, or an extreme and its position."""
Combine = Callable[[Totals, Totals], Totals]

BLOCK = 32
"""How many values are added up, one after the other, before their sum joins the total."""

STEPS = 8
"""How many steps with several vectors at once are worth the addition of their totals."""


class Fold(NamedTuple):
    """The values along `axes` of a space, to be combined; the other axes are at `place`.

    `value` has the totals of a single value: combined with `start` they stay as they are. `append`
    combines totals with those of one value that comes later. `adds` says whether the fold is a sum,
    `picks` whether the totals are found among the values, so that no order of these rounds.
    """

    shape: Shape
    axes: Sequence[int]
    place: At
    mask: Value
    combine: Combine
    start: Totals
    value: Callable[[At, Value], Totals]
    append: Combine
    adds: bool = False
    picks: bool = False

    @property
    def over(self) -> Shape:
        """The sizes of the axes that vanish."""
        return tuple([self.shape[axis] for axis in self.axes])

    @property
    def is_wide(self) -> bool:
        """Whether lanes of the result stand side by side."""
        return any(i.is_wide for i in self.place)

    @property
    def rounds(self) -> bool:
        """Whether this is a sum of floats."""
        return self.adds and self.start[0].kind[0] in "fc"

    @property
    def is_exact(self) -> bool:
        """Whether the totals are the same in whatever order values are combined."""
        return self.picks or all(x.kind[0] not in "fc" for x in self.start)

    def at(self, inner: Sequence[Index], mask: Value) -> Totals:
        """The totals of the value at a place of the axes that vanish."""
        rest, others = dict(zip(self.axes, inner, strict=True)), iter(self.place)
        whole = [rest[i] if i in rest else next(others) for i in range(len(self.shape))]
        return self.value(tuple(whole), mask)


def single(
    shape: Shape,
    axes: Sequence[int],
    place: At,
    mask: Value,
    combine: Callable[[Value, Value], Value],
    start: Value,
    value: Callable[[At, Value], Value],
    adds: bool = True,
) -> Fold:
    """A fold of one total."""

    def both(x: Totals, y: Totals) -> Totals:
        return [combine(x[0], y[0])]

    each = lambda at, m: [value(at, m)]
    return Fold(shape, axes, place, mask, both, [start], each, both, adds)


def folded(p: Places, *folds: Fold) -> list[Totals]:
    """The totals of some folds of equal axes; the lanes of all results, or of none, are wide."""
    sizes = [p.size(n) for n in folds[0].over]
    if prod([WIDTH + 1 if n.number is None else n.number for n in sizes]) <= WIDTH:
        return [written_out(p, fold, sizes) for fold in folds]
    return Walk(p, folds, sizes).totals()


def written_out(p: Places, fold: Fold, sizes: Sequence[Value]) -> Totals:
    """A few values combined, one after the other."""
    places: list[tuple[Index, ...]] = [()]
    for size in sizes:
        places = [(*at, Index(integer(i))) for at in places for i in range(size.number or 0)]
    values = [fold.at(inner, fold.mask) for inner in places]
    if not values:
        return fold.start
    total = values[0]
    for x in values[1:]:
        total = fold.append(total, x)
    return total


class Walk:
    """The loops over the axes that vanish in some folds.

    `blocks` has the size of the blocks of each axis, 0 for an axis that is not cut into blocks.
    """

    def __init__(self, p: Places, folds: Sequence[Fold], sizes: Sequence[Value]) -> None:
        self.p, self.b, self.folds, self.sizes = p, p.b, folds, sizes
        self.wide = folds[0].is_wide
        self.starts = [p.b.widen(x) for fold in folds for x in fold.start]
        owners = [fold for fold in folds for _ in fold.start]
        self.sums = [k for k, fold in enumerate(owners) if fold.rounds]
        last, lanes = sizes[-1].number, 1 if self.wide else p.b.width
        short = last is not None and last < STEPS * p.vectors * lanes
        self.vectors = 1 if self.wide or short else p.vectors
        exact = all(fold.is_exact for fold in folds)
        in_blocks = self.sums or (exact and p.shared is not None)
        self.blocks = blocks_of(sizes, lanes, self.vectors) if in_blocks else [0] * len(sizes)

    def totals(self) -> list[Totals]:
        """The totals of all folds."""
        found = self.of_each(self.along(0, (), self.starts))
        if self.wide:
            return found
        return [across(self.b, f.combine, x) for f, x in zip(self.folds, found, strict=True)]

    def of_each(self, totals: Totals) -> list[Totals]:
        """The totals of each fold among those of all."""
        ends = [*accumulate([len(fold.start) for fold in self.folds], initial=0)]
        return [totals[start:end] for start, end in pairwise(ends)]

    def along(self, n: int, inner: tuple[Index, ...], now: Sequence[Value]) -> Sequence[Value]:
        """The totals with all values at the places `inner` of the first n axes."""
        p, b, size, most = self.p, self.b, self.sizes[n], self.blocks[n]

        def block(first: Value, *now: Value) -> Sequence[Value]:
            end = b.call("smin", b.add(first, integer(most)), size)
            return self.joined(size, most, now, self.block(n, inner, first, end, most))

        if most:
            carried = [*now, *self.nothing_added(now)]

            def alone() -> Sequence[Value]:
                return p.looped(integer(0), size, most, carried, block, looks=b.signals.in_nests)

            if p.shared is None:
                return alone()[: len(now)]
            shared = partial(self.in_memory, n, inner, carried, p.shared.memory)
            return p.shared.where_long(self.work, shared, alone)[: len(now)]
        if n == len(self.sizes) - 1 and not self.wide:
            return self.run(integer(0), size, now, partial(self.one, n, inner))
        each = lambda i, *now: self.one(n, inner, i, TRUE, *now)
        return p.each(size, now, each, self.few(n))

    def work(self) -> Value:
        """How many values there are, of all folds."""
        return reduce(self.b.mul, self.sizes, integer(len(self.folds)))

    def in_memory(
        self,
        n: int,
        inner: tuple[Index, ...],
        carried: Sequence[Value],
        taken: Callable[[Value], Value],
    ) -> Sequence[Value]:
        """The same as one block after the other: all blocks, by several threads, then their sum.

        The totals of the blocks are kept in memory, and joined in order.
        """
        p, b, size, most = self.p, self.b, self.sizes[n], self.blocks[n]
        starts = [*accumulate([bytes_of(x) for x in self.starts], initial=0)]
        blocks = b.op("sdiv", b.add(size, integer(most - 1)), integer(most))
        memory = taken(b.mul(blocks, integer(starts[-1])))

        def places(first: Value) -> list[Value]:
            block = b.mul(b.op("sdiv", first, integer(most)), integer(starts[-1]))
            ends = [b.add(block, integer(start)) for start in starts[:-1]]
            texts = [f"getelementptr i8, {memory.typed}, {end.typed}" for end in ends]
            return [b.emit("ptr", 0, text, memory, end) for text, end in zip(texts, ends)]

        def put(first: Value) -> Sequence[Value]:
            end = b.call("smin", b.add(first, integer(most)), size)
            parts = self.block(n, inner, first, end, most)
            for x, place in zip(parts, places(first), strict=True):
                b.do(f"store {x.typed}, {place.typed}, align 1", x, place)
            return ()

        def join(first: Value, *now: Value) -> Sequence[Value]:
            parts = []
            for x, place in zip(self.starts, places(first), strict=True):
                text = f"load {x.type}, {place.typed}, align 1"
                parts.append(b.now(x.kind, text, x.wide, place))
            return self.joined(size, most, now, parts)

        p.looped(integer(0), size, most, (), put)
        return p.looped(integer(0), size, most, carried, join)

    def few(self, n: int) -> int:
        """The most places of axis n that are written out, so that few are with all axes after it.

        The windows of a convolution would take LLVM seconds otherwise.
        """
        after = [size.number or 1 for size in self.sizes[n + 1 : None if self.wide else -1]]
        return WRITTEN_OUT // max(prod([many for many in after if many <= WRITTEN_OUT]), 1)

    def block(
        self,
        n: int,
        inner: tuple[Index, ...],
        first: Value,
        end: Value,
        most: int,
        now: Sequence[Value] | None = None,
    ) -> Sequence[Value]:
        """The totals of at most so many places of axis n, with all of the axes after it.

        They go on from `now`, if that is given.
        """
        b, one, now = self.b, partial(self.one, n, inner), self.starts if now is None else now
        if n == len(self.sizes) - 1 and not self.wide:
            parts = self.run(first, end, now, one, most)
        else:
            each = lambda i, *now: one(Index(i), TRUE, *now)
            parts = b.loop(first, end, 1, now, each, most)
        if b.signals.in_nests:
            b.spend(integer(most))
        return parts

    def one(
        self, n: int, inner: tuple[Index, ...], i: Index, mask: Value, *now: Value
    ) -> Sequence[Value]:
        """The totals with the values at a place of axis n."""
        at = (*inner, i)
        if n < len(self.sizes) - 1:
            return self.along(n + 1, at, now)
        given = [fold.at(at, self.b.both(mask, fold.mask)) for fold in self.folds]
        values = [self.b.widen(x) for each in given for x in each]
        kept = zip(values, self.starts, strict=True)
        added = self.of_each([self.b.select(mask, x, start) for x, start in kept])
        pairs = zip(self.folds, self.of_each(now), added, strict=True)
        return [x for fold, total, value in pairs for x in fold.append(total, value)]

    def nothing_added(self, totals: Sequence[Value]) -> list[Value]:
        """What rounding has added to the sums among totals at first."""
        return [self.b.widen(literal(0, totals[k].kind)) for k in self.sums]

    def run(
        self,
        start: Value,
        stop: Value,
        now: Sequence[Value],
        one: Callable[..., Sequence[Value]],
        most: int | None = None,
    ) -> Sequence[Value]:
        """The totals with all values from `start` to `stop`.

        So many `vectors` have totals of their own, so that none waits for the last addition. Whole
        vectors need no masks: AMD's processors read ahead less where lanes are loaded under a mask.
        """
        p, b, several, width = self.p, self.b, len(now), self.b.width
        step = self.vectors * width
        size = b.sub(stop, start)
        if self.vectors == 1 and size.number is not None and size.number <= 2 * width:
            return p.run(start, stop, now, one, most)  # written out
        whole = b.op("and", size, integer(-step)) if size.number is None else None
        middle = b.add(start, whole or integer((size.number or 0) & -step))
        places = range(self.vectors)

        def group(i: Value, *now: Value) -> Sequence[Value]:
            found: list[Value] = []
            for k in places:
                at = Index(b.add(i, integer(k * width)), integer(1))
                found += one(at, TRUE, *now[k * several : (k + 1) * several])
            return found

        carried = [*now, *self.starts * (self.vectors - 1)]
        with p.within(start, stop):
            found = p.looped(start, middle, step, carried, group, most)
        parts = [found[k * several : (k + 1) * several] for k in places]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.combined(x, y) for x, y in pairs]
        if middle.text == stop.text:
            return parts[0]
        with p.within(start, stop):
            return p.run(middle, stop, parts[0], one, step)

    def combined(self, now: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """The totals with others."""
        pairs = zip(self.folds, self.of_each(now), self.of_each(values), strict=True)
        return [x for fold, total, other in pairs for x in fold.combine(total, other)]

    def joined(
        self, size: Value, most: int, now: Sequence[Value], parts: Sequence[Value]
    ) -> list[Value]:
        """The totals with those of a block, and what rounding has added to the sums among them."""
        many = TRUE if size.number is not None else self.b.op("icmp sgt", size, integer(most))
        totals, added = now[: len(parts)], now[len(parts) :]
        return self.b.branch(
            many,
            lambda: self.exactly(totals, added, parts),
            lambda: [*self.combined(totals, parts), *added],
        )

    def exactly(
        self, totals: Sequence[Value], added: Sequence[Value], parts: Sequence[Value]
    ) -> list[Value]:
        """The totals with those of a block less the errors `added`, then the errors of these."""
        b, others = self.b, [*parts]
        for k, x in zip(self.sums, added, strict=True):
            others[k] = rule_of(e.subtract, x.kind)(b, parts[k], x)
        found = self.combined(totals, others)
        return [*found, *[rounding(b, totals[k], others[k], found[k]) for k in self.sums]]


def bytes_of(x: Value) -> int:
    """How much memory a value takes, in whole lines of the cache."""
    return -(-BYTES[x.kind] * max(x.wide, 1) // LINE) * LINE


def blocks_of(sizes: Sequence[Value], lanes: int, vectors: int) -> list[int]:
    """The sizes of the blocks of axes, 0 for those that are not cut.

    A block has at most BLOCK values for each of the lanes of all `vectors` along the last axis.
    """
    found: list[int] = []
    inside, joins = 1, 2 * vectors - 3 if vectors > 1 else 0
    lanes *= vectors
    for size in reversed(sizes):
        block = max(BLOCK // inside, 1) * lanes
        if size.number is None or size.number > block:
            found, inside = [block, *found], 1
        else:
            found, inside = [0, *found], inside * (max(-(-size.number // lanes), 1) + joins)
        lanes, joins = 1, 0
    return found


def rounding(b: Builder, x: Value, y: Value, total: Value) -> Value:
    """How much rounding has added to a total of x and y; 0.0 if that is not finite."""
    return if_finite(b, error(b, x, y, total))


def error(b: Builder, x: Value, y: Value, total: Value) -> Value:
    """(total - x) - y, which is what rounding has added to a total of x and y."""
    if x.kind in PARTS:
        parts = zip(*map(b.parts, (x, y, total)), strict=True)
        return b.complex(*[error(b, *each) for each in parts])
    return b.op("fsub", b.op("fsub", total, x), y)


def if_finite(b: Builder, x: Value) -> Value:
    """`x`, and 0.0 in place of nan and infinity."""
    if x.kind in PARTS:
        return b.complex(*[if_finite(b, part) for part in b.parts(x)])
    finite = b.op("fcmp olt", b.call("fabs", x), literal(float("inf"), x.kind))
    return b.select(finite, x, literal(0.0, x.kind))


def across(b: Builder, combine: Combine, totals: Totals) -> Totals:
    """All lanes combined, as a tree."""
    while (wide := totals[0].wide) > 2:
        # By halves: when lanes were rotated LLVM 22 added one to itself.
        halves = range(wide // 2), range(wide // 2, wide)
        totals = combine(*[[b.shuffle(x, half) for x in totals] for half in halves])
    return combine(*[[b.lane(x, i) for x in totals] for i in range(2)])
