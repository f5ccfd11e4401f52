"""Products of matrices by a routine of our own.

It takes about as long as OpenBLAS's, and gives the same bits on every CPU. The method is that of
Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), section 4, but x
is read as it lies where values of a row lie side by side: a strip of columns of y is copied to the
stack, where it stays in the fastest cache, and read for several rows of x at once, whose sums are
in registers.

Blocks of the inner axis are added up one after the other. They are shorter where few rows read a
large y along its rows, but not so short that there are many; otherwise the bits of a sum do not
depend on how the matrices lie, nor on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from graphcore.backends.rounding import ADDITIONS, GROUP

from .addressing import Buffer, Index
from .arithmetic import literal
from .builder import BITS, FALSE, TRUE, WIDTH, Builder, Value, integer
from .elementary import compiled, module
from .folds import rounding
from .machine import Code, cached, levels
from .places import Places
from .squares import transposed

KINDS = "f64", "f32"
LANES = {"x86-64-v4": {"f64": 8, "f32": 16}, "x86-64-v3": {"f64": 4, "f32": 8}}
"""How many values one register holds, by the level of x86-64."""
ROWS = {"x86-64-v4": 8, "x86-64-v3": 4}
"""How many rows of the result are computed at once."""
VECTORS = 3
"""The vectors of a row of a strip: with AVX-512 sums are in 24 of 32 registers, else 12 of 16."""
INNER = 256
"""How much of the inner axis is walked before a sum goes to memory: a strip fits the cache L1."""
SUMS = 12
"""How many sums of such blocks are added up before their sum joins the result."""
CHUNK = INNER * SUMS
"""How much of the inner axis is walked before a sum joins the result."""
LONGEST_INNER = INNER * SUMS * (ADDITIONS - GROUP - INNER // GROUP - SUMS)
"""How long an inner axis may be without looking at what rounding adds to the result."""
ROWS_PER_STRIP = {"x86-64-v4": 512, "x86-64-v3": 256}
"""How many rows read a strip before the next one is copied: so much of x fits the cache L2."""
FEW_ROWS = 16
"""So few rows that a strip is read where it lies, if values of a row lie side by side."""
SOME_ROWS = 2 * FEW_ROWS, 8 * FEW_ROWS
"""Of few and of many rows a thread takes so many at least: with `FEW_ROWS` the bits would differ,
and a strip is copied for the rows of each piece."""
SOME_COLUMNS = 192
"""Of fewer rows than the latter a thread takes so many columns at least: whole strips."""
IN_CACHE = 2**15
"""So many values of y stay in the cache L2, and are read where they lie in the same way."""
ROWS_IN_PLACE = 32
"""How many rows read such strips, so that the result is written along its rows."""
INNER_OF_FEW_ROWS = 16
"""How much of the inner axis few rows walk if y is larger: so many rows of y are read along."""
LONGEST_OF_FEW_ROWS = INNER_OF_FEW_ROWS * SUMS * (ADDITIONS - INNER_OF_FEW_ROWS - SUMS)
"""How long an inner axis may be that is walked so."""

PRODUCTS_PER_VALUE = 16
"""How many products of numbers take as long as a simple value that is read and written."""
STRIPS_OF_COPY = 4
"""More strips read rows of x that have been copied."""

PAGE_BY_PAGE = '"probe-stack"="inline-asm"'
"""How the stack is taken: a full one ends at the page that guards it, and not behind that."""


def rows_at_once(b: Builder, rows: Value) -> Value:
    """How many rows of a product one thread takes at least."""
    least, most = map(integer, SOME_ROWS)
    return b.call("smax", least, b.call("smin", most, b.op("sdiv", rows, integer(FEW_ROWS))))


def is_wide(b: Builder, rows: Value, columns: Value) -> Value:
    """Whether threads share the columns of a product, which has few rows, and not the rows."""
    is_few = b.op("icmp slt", rows, integer(SOME_ROWS[1]))
    return b.both(is_few, b.op("icmp sge", columns, integer(2 * SOME_COLUMNS)))


def is_deep(b: Builder, rows: Value, inner: Value, columns: Value) -> Value:
    """Whether threads share the inner axis of a product, which is long beside a small result."""
    few = b.op("icmp slt", rows, integer(2 * SOME_ROWS[0]))
    narrow = b.op("icmp slt", columns, integer(2 * SOME_COLUMNS))
    least = max(2 * CHUNK, LONGEST_OF_FEW_ROWS + 1)
    return b.both(b.both(few, narrow), b.op("icmp sge", inner, integer(least)))


def room_for(level: str) -> tuple[int, int]:
    """The shape of memory for rows of x that are copied, by the level of x86-64."""
    return ROWS_PER_STRIP[level], INNER


@cached
def code(kind: str) -> Code:
    """The machine code of `dense` for values of a kind."""
    return compiled(Dense(kind, levels()[0]).text(), "dense")


@cached
def code_that_removes(kind: str) -> Code:
    """The machine code of `remove` for values of a kind."""
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
    begins, ends, later
        Whether their sums are the first, or the last, of `SUMS` that are added up; and whether
        those of other blocks have joined the result before.
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
    begins: Value
    ends: Value
    later: Value
    top: Value
    left: Value
    values: Buffer
    apart: Value
    x: Rows
    masks: Sequence[Value]


class Dense:
    """The IR of `dense`: z = x y, where rows of z lie `apart`.

    Values of x lie `down` and `right` of each other, those of y `below` and `beside`, of which one
    is 1. If `upper` holds, values below the diagonal of z need not be computed. Sums of several
    blocks of the inner axis lie in `part`, and behind it what rounding has added to z, if this axis
    is longer than LONGEST_INNER: two matrices as the whole of z. `room` is memory of the type
    `room_for` for rows of x whose values do not lie side by side; nobody else writes there.

    Some columns of a product are one too, with the same bits; so are more than FEW_ROWS rows. So
    are the sums of CHUNK places of a `whole` inner axis that is longer.

    The routine `remove` computes z - x y instead: the product of each block of the inner axis is
    subtracted by itself, so that it uses no `part`.
    """

    def __init__(self, kind: str, level: str, name: str = "dense") -> None:
        self.b, self.name = (b := Builder(LANES[level][kind])), name
        self.removes = name == "remove"
        self.several, self.most_rows = ROWS[level], ROWS_PER_STRIP[level]
        names = "rows", "inner", "columns", "down", "right", "below", "beside", "apart", "whole"
        self.sizes = [Value(f"%{name}", "i64") for name in names]
        self.rows, self.inner, self.columns, *strides = self.sizes
        self.down, self.right, self.below, self.beside, self.apart, self.whole = strides
        self.p, self.kind = Places(b, integer), kind
        self.x = self.given("x", (self.rows, self.down), (self.inner, self.right))
        self.y = self.given("y", (self.inner, self.below), (self.columns, self.beside))
        self.z = Buffer(Value("%z", "ptr"), (self.rows, self.apart), kind)
        self.part = self.z._replace(pointer=Value("%part", "ptr"))
        self.room = Buffer(Value("%room", "ptr"), tuple(map(integer, room_for(level))), kind)
        self.strip = Buffer(
            Value("%strip", "ptr"), (integer(INNER), integer(VECTORS * b.width)), kind
        )

    def given(self, name: str, *axes: tuple[Value, Value]) -> Buffer:
        """A matrix as it lies: the size of each axis, and how far apart its places are."""
        b, count = self.b, integer(1)
        for size, apart in axes:
            count = b.add(count, b.mul(b.sub(size, integer(1)), apart))
        return Buffer(Value(f"%{name}", "ptr"), (count,), self.kind)

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
        # Without an inner axis there is a block of nothing, which clears the result.
        end = b.call("smax", self.inner, integer(1))
        self.is_long = b.op("icmp sgt", self.whole, integer(LONGEST_INNER))
        self.added = self.moved(self.part, b.mul(self.rows, self.apart), self.part.shape)
        self.in_blocks(end, self.step, partial(self.block, tall, is_run, stays))
        b.do("ret void")
        given = (
            "ptr noalias readonly %x, ptr noalias readonly %y, ptr noalias %z, ptr %part, ptr %room"
        )
        sizes = ", ".join([size.typed for size in self.sizes])
        head = f"define void @{self.name}({given}, {sizes}, i1 %upper) {PAGE_BY_PAGE}"
        return module(head, b)

    def in_blocks(self, stop: Value, most: Value, body: Callable[[Value, Value], object]) -> None:
        """body(first, many) for blocks of an axis of `stop` places, each of `most` or fewer."""
        b = self.b

        def one(number: Value) -> Sequence[Value]:
            first = b.mul(number, most)
            body(first, b.call("smin", b.sub(stop, first), most))
            return ()

        blocks = b.op("udiv", b.add(stop, b.sub(most, integer(1))), most)
        self.p.looped(integer(0), blocks, 1, (), one)

    def block(self, tall: Value, is_run: Value, stays: Value, k: Value, many: Value) -> None:
        """The products of a block of the inner axis."""
        b, p = self.b, self.p
        number = b.op("udiv", k, self.step)
        place = b.op("urem", number, integer(SUMS))
        begins = b.op("icmp eq", place, integer(0))
        is_last = b.op("icmp sge", b.add(k, many), self.inner)
        ends = b.op("or", b.op("icmp eq", place, integer(SUMS - 1)), is_last)
        joins = begins, ends, b.op("icmp sge", number, integer(SUMS))
        many = b.call("smin", many, self.inner)

        def rows_from(i: Value, high: Value) -> None:
            rows = self.rows_of_block(i, high, k, many)

            def columns_from(j: Value) -> Sequence[Value]:
                width = b.sub(self.columns, j)
                masks = [p.left(width, integer(n * b.width)) for n in range(VECTORS)]
                y = self.after(self.y, b.add(b.mul(k, self.below), b.mul(j, self.beside)))
                whole = b.op("icmp sge", width, self.strip.shape[1])
                in_place = b.both(stays, whole)
                in_full = partial(self.copy_rows, y, many, [TRUE] * VECTORS)
                in_part = partial(self.copy_rows, y, many, masks)
                by_rows = partial(b.branch, whole, in_full, in_part)
                by_columns = partial(self.copy_columns, y, self.beside, many, width, self.strip)
                b.branch(in_place, tuple, partial(b.branch, is_run, by_rows, by_columns))
                apart = b.select(in_place, self.below, self.strip.shape[1])
                pointer = b.select(in_place, y.pointer, self.strip.pointer)
                many_there = b.select(in_place, y.shape[0], integer(INNER * VECTORS * b.width))
                values = Buffer(pointer, (many_there,), self.kind, b.level, b.names)
                end = b.add(i, high)
                last = b.call("smin", end, b.add(j, self.strip.shape[1]))
                stop = b.select(Value("%upper", "i1"), last, end)

                def tiles(vectors: int) -> Sequence[Value]:
                    strip = Strip(k, many, *joins, i, j, values, apart, rows, masks[:vectors])
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
        b, (_, length) = self.b, self.room.shape
        x = self.after(self.x, b.add(b.mul(i, self.down), b.mul(k, self.right)))
        often = b.op("icmp sgt", self.columns, integer(STRIPS_OF_COPY * VECTORS * b.width))
        is_copied = b.both(b.op("icmp ne", self.right, integer(1)), often)
        b.branch(is_copied, partial(self.copy_columns, x, self.right, high, many, self.room))
        pairs = (self.room.pointer, x.pointer), (length, self.down), (integer(1), self.right)
        pointer, down, right = [b.select(is_copied, *pair) for pair in pairs]
        return Rows(i, Buffer(pointer, x.shape, self.kind, b.level, b.names), down, right)

    def after(self, buffer: Buffer, places: Value) -> Buffer:
        """What is left of a buffer behind so many places."""
        return self.moved(buffer, places, (self.b.sub(buffer.shape[0], places),))

    def moved(self, buffer: Buffer, places: Value, shape: tuple[Value, ...]) -> Buffer:
        """A buffer that begins so many places on."""
        text = f"getelementptr {BITS[self.kind]}, {buffer.pointer.typed}, {places.typed}"
        pointer = self.b.emit("ptr", 0, text, buffer.pointer, places)
        return buffer._replace(pointer=pointer, shape=shape)

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

    def copy_columns(
        self, y: Buffer, beside: Value, many: Value, width: Value, into: Buffer
    ) -> Sequence[Value]:
        """Copy columns whose values lie side by side to rows, several of them at once.

        Up to whole vectors the last one is copied again; rows behind the last are not read.
        """
        b, p, side = self.b, self.p, min(self.b.width, WIDTH)
        last = b.sub(width, integer(1))

        def columns(j: Value) -> Sequence[Value]:
            places = [b.call("smin", b.add(j, integer(n)), last) for n in range(side)]
            starts = [b.mul(place, beside) for place in places]

            def square(k: Value) -> Sequence[Value]:
                mask = p.left(many, k)
                lanes = [Index(b.add(start, k), integer(1)) for start in starts]
                square = transposed(b, [p.load(y, (lane,), mask) for lane in lanes])
                for n, row in enumerate(square):
                    at = Index(b.add(k, integer(n))), Index(j, integer(1))
                    p.store(into, at, TRUE, row)
                return ()

            return p.looped(integer(0), many, side, (), square)

        vectors = b.op("and", b.add(last, integer(b.width)), integer(-b.width))
        stop = b.call("smin", vectors, into.shape[1])
        with b.side_by_side(side):
            return p.looped(integer(0), stop, side, (), columns)

    def tile(self, strip: Strip, several: int, i: Value) -> Sequence[Value]:
        """Products of so many rows with a strip, added to those of the blocks before.

        Behind the last row it is computed again: all are read before the first one is written.
        """
        b, p, masks = self.b, self.p, strip.masks
        lanes = [Index(integer(n * b.width), integer(1)) for n in range(len(masks))]
        last = b.sub(self.rows, integer(1))
        places = [b.call("smin", b.add(i, integer(n)), last) for n in range(several)]
        starts = [b.mul(b.sub(place, strip.x.first), strip.x.down) for place in places]
        rows = [self.after(strip.x.values, start) for start in starts]
        zero = b.widen(literal(0.0, self.kind))
        b.branch(self.is_near, tuple, partial(self.fetch, strip, places, b.sub(i, strip.top)))

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

        def get(buffer: Buffer) -> list[Value]:
            now = buffer._replace(level=b.level, version=b.names)
            return [p.load(now, at, mask) for at, mask in every]

        def put(buffer: Buffer, values: Sequence[Value]) -> Sequence[Value]:
            with p.stores.together():
                for (at, mask), value in zip(every, values, strict=True):
                    p.store(buffer, at, mask, value)
            return ()

        def join(values: Sequence[Value]) -> Sequence[Value]:
            return b.branch(strip.later, lambda: self.sums(get(self.z), values), lambda: values)

        def join_exactly(values: Sequence[Value]) -> Sequence[Value]:
            old, added = get(self.z), get(self.added)
            parts = [b.op("fsub", *pair) for pair in zip(values, added, strict=True)]
            new = self.sums(old, parts)
            put(self.added, [rounding(b, *each) for each in zip(old, parts, new, strict=True)])
            return put(self.z, new)

        def clear() -> Sequence[Value]:
            put(self.added, zeros)
            return put(self.z, sums)

        if self.removes:
            pairs = zip(get(self.z), found, strict=True)
            return put(self.z, [b.op("fsub", *pair) for pair in pairs])
        sums = b.branch(strip.begins, lambda: found, lambda: self.sums(get(self.part), found))
        long = partial(b.branch, strip.later, lambda: join_exactly(sums), clear)
        end = partial(b.branch, self.is_long, long, lambda: put(self.z, join(sums)))
        b.branch(strip.ends, end, lambda: put(self.part, sums))
        return ()

    def fetch(self, strip: Strip, places: Sequence[Value], row: Value) -> Sequence[Value]:
        """Have memory brought near while a tile is computed: its sums, and rows of the next strip.

        Each tile asks for as many rows of y as it has of x, so that a block of x asks for all.
        """
        b, name = self.b, "@llvm.prefetch.p0"
        b.declared[name] = f"declare void {name}(ptr, i32, i32, i32)"
        is_sum = b.both(strip.begins, strip.ends)
        into = self.z._replace(pointer=b.select(is_sum, self.z.pointer, self.part.pointer))
        right = b.mul(b.add(strip.left, self.strip.shape[1]), self.beside)
        for m, place in enumerate(places):
            below = b.mul(b.add(b.add(strip.first, row), integer(m)), self.below)
            sums, values = b.add(b.mul(place, self.apart), strip.left), b.add(below, right)
            for buffer, first, how in (
                (into, sums, "i32 1, i32 3"),
                (self.y, values, "i32 0, i32 2"),
            ):
                for n in range(len(strip.masks)):
                    at = self.moved(buffer, b.add(first, integer(n * b.width)), buffer.shape)
                    b.do(f"call void {name}({at.pointer.typed}, {how}, i32 1)")
        return ()

    def sums(self, one: Sequence[Value], other: Sequence[Value]) -> list[Value]:
        """The sums of values of a tile."""
        return [self.b.op("fadd", *pair) for pair in zip(one, other, strict=True)]
