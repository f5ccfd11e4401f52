"""Products of matrices by a routine of our own.

It takes about as long as OpenBLAS's, and gives the same bits on every CPU. The method is that of
Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), section 4, but x
is read as it lies where values of a row lie side by side: a strip of columns of y is copied to the
stack, where it stays in the fastest cache, and read for several rows of x at once, whose sums are
in registers.

Where registers are few, `packed` computes products of many rows: it copies x as well. `remove`
calls it; who calls `dense` asks `is_packed` before.

Blocks of the inner axis are added up one after the other. They are shorter where few rows read a
large y along its rows, but not so short that there are many; otherwise the bits of a sum do not
depend on how the matrices lie, nor on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from graphcore.backends.rounding import ADDITIONS, GROUP
from graphcore.ir import Size

from . import packed
from .addressing import Buffer, Index
from .arithmetic import literal
from .builder import FALSE, TRUE, WIDTH, Builder, Value, integer
from .elementary import compiled, module
from .entrance import Address
from .machine import Code, cached, levels
from .product_sums import CHUNK, IN_CACHE, INNER, POINTERS, SUMS, Joins, ProductSums
from .storing import reaches
from .writer import Writer

KINDS = "f64", "f32"
ROWS = {"x86-64-v4": 8, "x86-64-v3": 4}
"""How many rows of the result are computed at once."""
VECTORS = 3
"""The vectors of a row of a strip: with AVX-512 sums are in 24 of 32 registers, else 12 of 16."""
ROWS_PER_STRIP = {"x86-64-v4": 512, "x86-64-v3": 256}
"""How many rows read a strip before the next one is copied: so much of x fits the cache L2."""
FEW_ROWS = 16
"""So few rows that a strip is read where it lies, if values of a row lie side by side."""
SOME_ROWS = 2 * FEW_ROWS, 8 * FEW_ROWS
"""Of few and of many rows a thread takes so many at least: with `FEW_ROWS` the bits would differ,
and a strip is copied for the rows of each piece."""
ROWS_OF_PIECE = 96
"""The fewest rows of a piece that a thread takes where `packed` copies y for each of them."""
SOME_COLUMNS = 192
"""The fewest columns of a piece where threads share columns: x is copied for each of them."""
MULTIPLE = 8
"""Pieces of rows or columns but the last have a multiple of so many."""
ROWS_IN_PLACE = 32
"""How many rows read such strips, so that the result is written along its rows."""
INNER_OF_FEW_ROWS = 16
"""How much of the inner axis few rows walk if y is larger: so many rows of y are read along."""
LONGEST_OF_FEW_ROWS = INNER_OF_FEW_ROWS * SUMS * (ADDITIONS - INNER_OF_FEW_ROWS - SUMS)
"""How long an inner axis may be that is walked so."""

PRODUCTS_PER_VALUE = 16
"""How many products of numbers take as long as a simple value that is read and written."""
PACKS = ("x86-64-v3",)
"""The levels of x86-64 with so few registers that `packed` copies both operands of many rows."""
STRIPS_OF_COPY = 4
"""More strips read rows of x that have been copied."""


def rows_at_once(b: Builder, rows: Value) -> Value:
    """How many rows of a product one thread takes at least."""
    if may_pack():
        return at_once(b, rows, ROWS_OF_PIECE)
    least, most = map(integer, SOME_ROWS)
    return b.call("smax", least, b.call("smin", most, b.op("sdiv", rows, integer(FEW_ROWS))))


def at_once(b: Builder, size: Value, least: int) -> Value:
    """How many rows or columns are in a piece: equally many, and at least `least`."""
    parts = integer(1)
    for power in (2, 4, 8, 16, 32, 64):
        parts = b.select(reaches(b, size, power * least), integer(power), parts)
    return b.call(
        "smax", b.op("and", b.op("sdiv", size, parts), integer(-MULTIPLE)), integer(least)
    )


def is_wide(b: Builder, rows: Value, columns: Value) -> Value:
    """Whether threads share the columns of a product and not the rows, which are fewer.

    Each piece of columns copies x, and each of rows y.
    """
    is_few = b.op("icmp slt", rows, b.call("smax", columns, integer(SOME_ROWS[1])))
    return b.both(is_few, b.op("icmp sge", columns, integer(2 * SOME_COLUMNS)))


def is_deep(b: Builder, rows: Value, inner: Value, columns: Value) -> Value:
    """Whether threads share the inner axis of a product, which is long beside a small result."""
    few = b.op("icmp slt", rows, integer(2 * SOME_ROWS[0]))
    narrow = b.op("icmp slt", columns, integer(2 * SOME_COLUMNS))
    least = max(2 * CHUNK, LONGEST_OF_FEW_ROWS + 1)
    return b.both(b.both(few, narrow), b.op("icmp sge", inner, integer(least)))


def is_copied(rows: Size | None, is_transposed: bool) -> bool:
    """Whether `dense` may copy so many rows of x, if they are known: it needs memory then."""
    few = isinstance(rows, int) and rows <= FEW_ROWS
    return is_transposed or (may_pack() and not few)


def is_packed(b: Builder, rows: Value) -> Value:
    """Whether a product of so many rows is computed by `packed`."""
    return reaches(b, rows, FEW_ROWS + 1) if may_pack() else FALSE


def may_pack() -> bool:
    """Whether `packed` is quicker here for products of many rows."""
    return levels()[0] in PACKS


def scratch_for(level: str) -> tuple[int, int]:
    """The shape of memory for copies of operands, by the level of x86-64."""
    return packed.SCRATCH if level in PACKS else ROWS_PER_STRIP[level], INNER


def call(w: Writer, kind: str, rows: Size, given: Sequence[Value]) -> Sequence[Value]:
    """Call the routine for a product of so many rows, or for a block of them: of many it has many.

    A routine takes long to make: each is made only for sizes that need it.
    """
    program = w.program

    def many_rows() -> Sequence[Value]:
        def make() -> int:
            return packed.code(kind)["packed"]

        w.call(program.routine("packed", kind, make, rows, FEW_ROWS), *given)
        return ()

    def few_rows() -> Sequence[Value]:
        def make() -> int:
            return code(kind)["dense"]

        if may_pack():  # of at most FEW_ROWS
            w.call(program.routine("dense", kind, make, -rows, -FEW_ROWS - 1), *given)
        else:
            w.call(program.shared(("dense", kind), Address(make())), *given)
        return ()

    w.b.branch(is_packed(w.b, w.size(rows)), many_rows, few_rows)
    return ()


@cached
def code(kind: str) -> Code:
    """The machine code of `dense` for values of a kind."""
    return compiled(Dense(kind, levels()[0]).text(), "dense")


@cached
def code_that_removes(kind: str) -> Code:
    """The machine code of `remove` for floats of a kind."""
    return compiled(Dense(kind, levels()[0], "remove").text(), "remove")


class Rows(NamedTuple):
    """Rows of x, from one on, whose values lie `down` and `right` of each other."""

    first: Value
    values: Buffer
    down: Value
    right: Value


class Strip(NamedTuple):
    """Values of y that are read for several rows of x.

    Attributes
    ----------
    first, many
        Where on the inner axis they begin, and how many there are.
    joins
        What their sums join.
    top, left
        The first row of x that reads them, and their first column.
    values, apart
        Where they lie, and how many values there are from one row to the next.
    x
        The rows of x, as they lie or copied.
    masks
        Which columns there are, for each vector of a row.
    """

    first: Value
    many: Value
    joins: Joins
    top: Value
    left: Value
    values: Buffer
    apart: Value
    x: Rows
    masks: Sequence[Value]


class Dense(ProductSums):
    """The IR of `dense`: a product whose operands are read where they lie, if that is no slower.

    `scratch` is memory of the shape `scratch_for`. Some columns of a product are one too, with the
    same bits; so are more than FEW_ROWS rows. So are the sums of CHUNK places of a `whole` inner
    axis that is longer.
    """

    def __init__(self, kind: str, level: str, name: str = "dense") -> None:
        super().__init__(kind, level, name)
        self.several, self.most_rows = ROWS[level], ROWS_PER_STRIP[level]
        self.scratch = Buffer(
            Value("%scratch", "ptr"), (integer(self.most_rows), integer(INNER)), kind
        )
        width = integer(VECTORS * self.b.width)
        self.strip = Buffer(Value("%strip", "ptr"), (integer(INNER), width), kind)
        self.packed = packed.Packed(kind, level, name) if level in PACKS and self.removes else None

    def text(self) -> str:
        """The module."""
        b = self.b
        wide = b.widen(literal(0.0, self.kind)).type
        b.lines[0].append(f"  %strip = alloca [{INNER * VECTORS} x {wide}], align 64")
        is_few = b.op("icmp sle", self.rows, integer(FEW_ROWS))
        is_small = b.op("icmp sle", b.mul(self.whole, self.apart), integer(IN_CACHE))
        is_near = b.op("icmp sle", b.mul(self.rows, self.apart), integer(IN_CACHE))
        self.is_near = b.both(is_small, is_near)
        is_run = b.op("icmp eq", self.beside, integer(1))
        far = b.both(is_run, b.both(is_few, b.neither(is_small)))
        far = b.both(far, b.op("icmp sle", self.whole, integer(LONGEST_OF_FEW_ROWS)))
        self.step = b.select(far, integer(INNER_OF_FEW_ROWS), integer(INNER))
        tall = b.select(b.both(is_run, is_small), integer(ROWS_IN_PLACE), integer(self.most_rows))
        stays = b.both(is_run, b.op("or", is_few, is_small))
        walk = partial(self.walk, self.step, partial(self.block, tall, is_run, stays))
        b.branch(b.neither(is_few) if self.packed else FALSE, self.by_copies, walk)
        b.do("ret void")
        return module(self.head(self.name), b)

    def by_copies(self) -> Sequence[Value]:
        """Call the routine that copies both operands, which is in this module."""
        b, packed = self.b, self.packed
        assert packed is not None
        b.outlined += packed.lines("packed")
        b.declared |= packed.b.declared
        pointers = [Value(f"%{name}", "ptr") for name in POINTERS]
        given = ", ".join([x.typed for x in (*pointers, *self.sizes, self.upper)])
        b.do(f"call void @packed({given})")
        return ()

    def block(self, tall: Value, is_run: Value, stays: Value, k: Value, many: Value) -> None:
        """The products of a block of the inner axis."""
        b, p = self.b, self.p
        joins = self.joins(k, many, self.step)
        many = b.call("smin", many, self.inner)

        def rows_from(i: Value, high: Value) -> None:
            rows = self.rows_of_block(i, high, k, many)

            def columns_from(j: Value) -> Sequence[Value]:
                width = b.sub(self.columns, j)
                masks = [p.left(width, integer(n * b.width)) for n in range(VECTORS)]
                y = p.after(self.y, b.add(b.mul(k, self.below), b.mul(j, self.beside)))
                whole = b.op("icmp sge", width, self.strip.shape[1])
                in_place = b.both(stays, whole)
                in_full = partial(self.copy_rows, y, many, [TRUE] * VECTORS)
                in_part = partial(self.copy_rows, y, many, masks)
                by_rows = partial(b.branch, whole, in_full, in_part)
                by_columns = partial(
                    self.copy_columns, y, self.beside, many, width, self.strip, many
                )
                b.branch(in_place, tuple, partial(b.branch, is_run, by_rows, by_columns))
                apart = b.select(in_place, self.below, self.strip.shape[1])
                pointer = b.select(in_place, y.pointer, self.strip.pointer)
                many_there = b.select(in_place, y.shape[0], integer(INNER * VECTORS * b.width))
                values = Buffer(pointer, (many_there,), self.kind, b.level, b.names)
                end = b.add(i, high)
                last = b.call("smin", end, b.add(j, self.strip.shape[1]))
                stop = b.select(self.upper, last, end)

                def tiles(vectors: int) -> Sequence[Value]:
                    strip = Strip(k, many, joins, i, j, values, apart, rows, masks[:vectors])
                    tile = partial(self.tile, strip)
                    alone = FALSE
                    # With AVX2, LLVM spills the sums of both ways.
                    if self.several == WIDTH and not self.removes:
                        alone = b.op("icmp eq", self.rows, integer(1))  # as for one sample
                    several = partial(
                        p.looped, i, stop, self.several, (), partial(tile, self.several)
                    )
                    b.branch(alone, partial(tile, 1, i), several)
                    return ()

                number = b.op("udiv", b.sub(width, integer(1)), integer(b.width))
                b.choose(number, *[partial(tiles, n + 1) for n in range(VECTORS)])
                return ()

            p.looped(integer(0), self.columns, VECTORS * b.width, (), columns_from)

        self.in_blocks(self.rows, tall, rows_from)

    def rows_of_block(self, i: Value, high: Value, k: Value, many: Value) -> Rows:
        """So many rows of x for a block of the inner axis: copied if many strips read them."""
        b, (_, length) = self.b, self.scratch.shape
        x = self.p.after(self.x, b.add(b.mul(i, self.down), b.mul(k, self.right)))
        often = b.op("icmp sgt", self.columns, integer(STRIPS_OF_COPY * VECTORS * b.width))
        is_copied = b.both(b.op("icmp ne", self.right, integer(1)), often)
        b.branch(
            is_copied, partial(self.copy_columns, x, self.right, high, many, self.scratch, high)
        )
        pairs = (self.scratch.pointer, x.pointer), (length, self.down), (integer(1), self.right)
        pointer, down, right = [b.select(is_copied, *pair) for pair in pairs]
        return Rows(i, Buffer(pointer, x.shape, self.kind, b.level, b.names), down, right)

    def copy_rows(self, y: Buffer, many: Value, masks: Sequence[Value]) -> Sequence[Value]:
        """Copy a strip of y whose rows lie side by side."""
        b, p = self.b, self.p

        def row(k: Value) -> Sequence[Value]:
            for n, mask in enumerate(masks):
                at = Index(integer(n * b.width), integer(1))
                value = p.load(y, (p.sum(Index(b.mul(k, self.below)), at),), mask)
                p.store(self.strip, (Index(k), at), TRUE, value)
            return ()

        return p.looped(integer(0), many, 1, (), row)

    def tile(self, strip: Strip, several: int, i: Value) -> Sequence[Value]:
        """Products of so many rows with a strip, added to those of the blocks before.

        Behind the last row it is computed again: all are read before the first one is written.
        """
        b, p, masks = self.b, self.p, strip.masks
        lanes = [Index(integer(n * b.width), integer(1)) for n in range(len(masks))]
        last = b.sub(self.rows, integer(1))
        places = [b.call("smin", b.add(i, integer(n)), last) for n in range(several)]
        starts = [b.mul(b.sub(place, strip.x.first), strip.x.down) for place in places]
        rows = [p.after(strip.x.values, start) for start in starts]
        zero = b.widen(literal(0.0, self.kind))
        b.branch(self.is_near, tuple, partial(self.fetch_tile, strip, places, b.sub(i, strip.top)))

        def term(_: Value, right: Value, below: Value, *sums: Value) -> Sequence[Value]:
            values = [p.load(strip.values, (p.plus(lane, below),), TRUE) for lane in lanes]
            factors, new = [p.load(row, (Index(right),), TRUE) for row in rows], list[Value]()
            for n, sum in enumerate(sums):
                factor = b.widen(factors[n // len(values)])
                new.append(b.call("fma", factor, values[n % len(values)], sum))
            return b.add(right, strip.x.right), b.add(below, strip.apart), *new

        zeros = [zero] * (several * len(lanes))

        def group(first: Value, right: Value, below: Value, *totals: Value) -> Sequence[Value]:
            end = b.call("smin", b.add(first, integer(GROUP)), strip.many)
            right, below, *sums = p.looped(first, end, 1, [right, below, *zeros], term)
            return right, below, *self.sums(totals, sums)

        begin = [integer(0), integer(0), *zeros]
        _, _, *found = p.looped(integer(0), strip.many, GROUP, begin, group)
        there = [(Index(place), p.plus(lane, strip.left)) for place in places for lane in lanes]
        every = [(at, masks[n % len(masks)]) for n, at in enumerate(there)]

        return self.add(strip.joins, every, found)

    def fetch_tile(self, strip: Strip, places: Sequence[Value], row: Value) -> Sequence[Value]:
        """Have memory brought near while a tile is computed: its sums, and rows of the next strip.

        Each tile asks for as many rows of y as it has of x, so that a block of x asks for all.
        """
        b, vectors = self.b, len(strip.masks)
        into = self.sums_of(strip.joins)
        right = b.mul(b.add(strip.left, self.strip.shape[1]), self.beside)
        for m, place in enumerate(places):
            below = b.mul(b.add(b.add(strip.first, row), integer(m)), self.below)
            sums, values = b.add(b.mul(place, self.apart), strip.left), b.add(below, right)
            self.fetch(into, sums, vectors, "i32 1, i32 3")
            self.fetch(self.y, values, vectors, "i32 0, i32 2")
        return ()
