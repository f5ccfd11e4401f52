"""Operands of a product copied in the order in which tiles of the result read them.

A CPU with few registers computes few sums at once, so that all that a step of the inner axis does
besides multiplying counts: finding addresses, counting, and waiting for rows that lie far apart,
above all at multiples of 2 KB, which share places in the fastest cache. So rows of x and columns of
y are copied, as Goto and van de Geijn do it, and some steps are written out between two numbers of
the loop, with addresses that are known beside the first one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from graphcore.backends.rounding import GROUP

from .addressing import Buffer, Index
from .arithmetic import literal
from .builder import TRUE, Value, integer
from .elementary import compiled, module
from .machine import Code, cached, levels
from .product_sums import IN_CACHE, INNER, Joins, Place, ProductSums
from .squares import transposed

ROWS = 6
"""How many rows of the result are computed at once."""
VECTORS = 2
"""The vectors of a row of them: 12 of 16 registers have sums, two values of y, two of x.

With 4 rows of 3 vectors there is one register for values of x, and a strip of y takes half as much
more of the cache L1: they took 3 to 8 % longer where it was measured.
"""
STEPS = 8
"""How many places of the inner axis are written out: both operands end with zeros up to there."""
MOST_ROWS = 90 * ROWS
"""How many rows are copied before the next ones: they are read in order, also from the cache L3.

This is measured: half and twice as many took about as long. Batches of 512 fit.
"""
MOST_STRIPS = 16
"""How many strips of y are copied before the next ones: half of a cache L2 of 512 KB or less.

Panels of x are read for all of them, so that the result is written along its rows.
Beside 16 of float64, 32 took up to a tenth longer, and 8 as long.
"""
SCRATCH = MOST_ROWS + INNER + 1
"""How much memory there is for copies, in rows of INNER values."""


@cached
def code(kind: str) -> Code:
    """The machine code of `packed` for values of a kind."""
    return compiled(Packed(kind, levels()[0], "packed").text(), "packed")


class Strip(NamedTuple):
    """A strip of y that is read for panels of x.

    Attributes
    ----------
    joins
        What sums of its products join.
    many
        How many places of the inner axis it has.
    values
        The copy.
    left
        The column of the result where it begins.
    """

    joins: Joins
    many: Value
    values: Buffer
    left: Value


class Packed(ProductSums):
    """The IR of a product whose operands are both copied.

    Panels of ROWS rows of x follow each other in `scratch`; in each of them STEPS values of a row
    follow those of the row before. Behind them are strips of y, of VECTORS vectors a row, with a
    row between two of them, so that they do not share places in a cache. The products of a tile
    are added up in `totals`.
    """

    def __init__(self, kind: str, level: str, name: str) -> None:
        super().__init__(kind, level, name)
        self.width = VECTORS * self.b.width
        scratch = Value("%scratch", "ptr")
        self.of_x = Buffer(scratch, (integer(MOST_ROWS * INNER),), kind)
        behind = (integer((SCRATCH - MOST_ROWS) * INNER),)
        self.of_y = self.p.moved(self.of_x, integer(MOST_ROWS * INNER), behind)
        self.totals = Buffer(Value("%totals", "ptr"), (integer(ROWS), integer(self.width)), kind)

    def text(self) -> str:
        """The module."""
        self.write()
        return module(self.head(self.name), self.b)

    def lines(self, name: str) -> list[str]:
        """The lines of the function, for a module that calls it by a name."""
        self.write()
        return [f"{self.head(name)} #0 {{", "entry:", *self.b.lines[0], "}"]

    def write(self) -> None:
        """Write the function."""
        b = self.b
        wide = b.widen(literal(0.0, self.kind)).type
        b.lines[0].append(f"  %totals = alloca [{ROWS * VECTORS} x {wide}], align 64")
        is_small = b.op("icmp sle", b.mul(self.rows, self.apart), integer(IN_CACHE))
        self.is_far = b.neither(is_small)
        self.walk(integer(INNER), self.block)
        b.do("ret void")

    def block(self, k: Value, many: Value) -> None:
        """The products of a block of the inner axis."""
        b, p = self.b, self.p
        joins = self.joins(k, many, integer(INNER))
        many = b.call("smin", many, self.inner)

        def rows_from(i: Value, high: Value) -> None:
            x = p.after(self.x, b.add(b.mul(i, self.down), b.mul(k, self.right)))
            self.copy_x(x, high, many)
            end = b.add(i, high)

            def columns_from(j: Value, wide: Value) -> None:
                y = p.after(self.y, b.add(b.mul(k, self.below), b.mul(j, self.beside)))
                self.copy_y(y, many, wide)

                def panel(row: Value) -> Sequence[Value]:
                    def strip_from(first: Value) -> Sequence[Value]:
                        strip = Strip(joins, many, self.strip(first, many), b.add(j, first))
                        vectors = b.op(
                            "udiv", b.sub(b.sub(wide, first), integer(1)), integer(b.width)
                        )
                        tiles = [partial(self.tile, strip, i, row, n + 1) for n in range(VECTORS)]
                        return b.choose(vectors, *tiles)

                    before = b.op("and", b.sub(row, j), integer(-self.width))
                    begin = b.call("smax", integer(0), b.select(self.upper, before, integer(0)))
                    return p.looped(begin, wide, self.width, (), strip_from)

                p.looped(i, end, ROWS, (), panel)

            self.in_blocks(self.columns, integer(MOST_STRIPS * self.width), columns_from)

        self.in_blocks(self.rows, self.rows_of_block(), rows_from)

    def rows_of_block(self) -> Value:
        """How many rows are copied at a time: blocks have about as many, as each copies y again."""
        b, one = self.b, integer(1)
        rows = b.call("smax", self.rows, one)

        def parts(n: Value, size: Value) -> Value:
            return b.op("udiv", b.add(n, b.sub(size, one)), size)

        blocks = parts(rows, integer(MOST_ROWS))
        return b.mul(parts(rows, b.mul(blocks, integer(ROWS))), integer(ROWS))

    def tile(self, strip: Strip, top: Value, i: Value, vectors: int) -> Sequence[Value]:
        """Products of rows of x with a strip, added to those of the blocks before."""
        b, p, joins = self.b, self.p, strip.joins
        high = b.call("smin", b.sub(self.rows, i), integer(ROWS))
        lanes = [Index(integer(n * b.width), integer(1)) for n in range(vectors)]
        width = b.sub(self.columns, strip.left)

        def fetch() -> Sequence[Value]:
            into = self.sums_of(joins)
            for n in range(ROWS):
                row = b.add(b.mul(b.add(i, integer(n)), self.apart), strip.left)
                self.fetch(into, b.add(row, lanes[-1].base), 1, "i32 1, i32 3")
            return ()

        b.branch(self.is_far, fetch)
        self.products(b.sub(i, top), strip, vectors)

        def add(rows: Sequence[Value], masks: Sequence[Value]) -> Sequence[Value]:
            totals, sums, there = self.now(self.totals), list[Value](), list[Place]()
            for n in rows:
                for lane, mask in zip(lanes, masks, strict=True):
                    sums.append(p.load(totals, (Index(n), lane), TRUE))
                    there.append(((Index(b.add(i, n)), p.plus(lane, strip.left)), mask))
            return self.add(joins, there, sums)

        def by_rows() -> Sequence[Value]:
            masks = [p.left(width, lane.base) for lane in lanes]
            return p.looped(integer(0), high, 1, (), lambda n: add([n], masks))

        is_whole = b.both(
            b.op("icmp sge", width, integer(vectors * b.width)),
            b.op("icmp eq", high, integer(ROWS)),
        )
        at_once = partial(add, [integer(n) for n in range(ROWS)], [TRUE] * vectors)
        return b.branch(is_whole, at_once, by_rows)

    def padded(self, many: Value) -> Value:
        """So many places of the inner axis and the zeros behind them."""
        return self.b.op("and", self.b.add(many, integer(STEPS - 1)), integer(-STEPS))

    def copy_x(self, x: Buffer, rows: Value, many: Value) -> Sequence[Value]:
        """Copy so many rows of a block of x."""
        is_run = self.b.op("icmp eq", self.right, integer(1))
        by_rows = partial(self.x_by_rows, x, rows, many)
        return self.b.branch(is_run, by_rows, partial(self.x_by_columns, x, rows, many))

    def x_by_rows(self, x: Buffer, rows: Value, many: Value) -> Sequence[Value]:
        """Copy rows whose values lie side by side; the last one again up to whole panels."""
        b, p, whole = self.b, self.p, self.padded(many)
        last = b.sub(rows, integer(1))

        def panel(i: Value) -> Sequence[Value]:
            into = b.mul(i, whole)
            places = [b.call("smin", b.add(i, integer(n)), last) for n in range(ROWS)]
            starts = [b.mul(place, self.down) for place in places]

            def steps(k: Value, is_whole: bool) -> Sequence[Value]:
                mask = TRUE if is_whole else p.left(many, k)
                at = b.add(into, b.mul(k, integer(ROWS)))
                for n, start in enumerate(starts):
                    value = p.load(x, (Index(b.add(start, k), integer(1)),), mask)
                    there = Index(b.add(at, integer(n * STEPS)), integer(1))
                    p.store(self.of_x, (there,), TRUE, value)
                return ()

            rest = b.op("and", many, integer(-STEPS))
            p.looped(integer(0), rest, STEPS, (), partial(steps, is_whole=True))
            return p.looped(rest, many, STEPS, (), partial(steps, is_whole=False))

        with b.side_by_side(STEPS):
            return p.looped(integer(0), rows, ROWS, (), panel)

    def x_by_columns(self, x: Buffer, rows: Value, many: Value) -> Sequence[Value]:
        """Copy rows whose columns' values lie side by side, squares of some columns at once.

        Rows behind the last are zeros.
        """
        b, p, side, whole = self.b, self.p, min(self.b.width, STEPS), self.padded(many)
        squares = [(k, first) for k in range(0, STEPS, side) for first in range(0, ROWS, side)]

        def columns(k: Value, is_whole: bool) -> Sequence[Value]:
            numbers = [b.add(k, integer(n)) for n in range(STEPS)]
            starts = [b.mul(number, self.right) for number in numbers]

            def panel(i: Value) -> Sequence[Value]:
                at, left = b.add(b.mul(i, whole), b.mul(k, integer(ROWS))), b.sub(rows, i)
                for column, first in squares:
                    mask, lines = p.left(left, integer(first)), []
                    for number, start in list(zip(numbers, starts, strict=True))[column:][:side]:
                        there = mask
                        if not is_whole:
                            there = b.both(mask, b.op("icmp slt", number, many))
                        place = b.add(b.add(i, integer(first)), start)
                        lines.append(p.load(x, (Index(place, integer(1)),), there))
                    for n, line in enumerate(transposed(b, lines)[: ROWS - first], first):
                        row = Index(b.add(at, integer(n * STEPS + column)), integer(1))
                        p.store(self.of_x, (row,), TRUE, line)
                return ()

            return p.looped(integer(0), rows, ROWS, (), panel)

        rest = b.op("and", many, integer(-STEPS))
        with b.side_by_side(side):
            p.looped(integer(0), rest, STEPS, (), partial(columns, is_whole=True))
            return p.looped(rest, whole, STEPS, (), partial(columns, is_whole=False))

    def strip(self, first: Value, many: Value) -> Buffer:
        """The strip of y that begins with a column of the copies."""
        rows = self.b.add(self.padded(many), integer(1))
        return self.p.moved(self.of_y, self.b.mul(first, rows), (rows, integer(self.width)))

    def copy_y(self, y: Buffer, many: Value, columns: Value) -> Sequence[Value]:
        """Copy so many columns of a block of y."""
        b = self.b

        def by_columns() -> Sequence[Value]:
            def strip(j: Value) -> Sequence[Value]:
                own, width = self.p.after(y, b.mul(j, self.beside)), b.sub(columns, j)
                into = self.strip(j, many)
                return self.copy_columns(own, self.beside, many, width, into, self.padded(many))

            return self.p.looped(integer(0), columns, self.width, (), strip)

        is_run = b.op("icmp eq", self.beside, integer(1))
        return b.branch(is_run, partial(self.y_by_rows, y, many, columns), by_columns)

    def y_by_rows(self, y: Buffer, many: Value, columns: Value) -> Sequence[Value]:
        """Copy columns of y where values of a row lie side by side, some rows at once."""
        b, p, lane, whole = (
            self.b,
            self.p,
            integer(1),
            self.b.op("and", columns, integer(-self.width)),
        )

        def rows(several: int, k: Value) -> Sequence[Value]:
            starts = [b.mul(b.add(k, integer(n)), self.below) for n in range(several)]

            def part(j: Value, is_whole: bool) -> Sequence[Value]:
                into, left = self.strip(j, many), b.sub(columns, j)
                for n, start in enumerate(starts):
                    for far in map(integer, range(0, self.width, b.width)):
                        mask = TRUE if is_whole else p.left(left, far)
                        at = b.add(b.add(start, j), far)
                        value = p.load(y, (Index(at, lane),), mask)
                        p.store(into, (Index(b.add(k, integer(n))), Index(far, lane)), TRUE, value)
                return ()

            p.looped(integer(0), whole, self.width, (), partial(part, is_whole=True))
            return p.looped(whole, columns, self.width, (), partial(part, is_whole=False))

        rest = b.op("and", many, integer(-STEPS))
        p.looped(integer(0), rest, STEPS, (), partial(rows, STEPS))
        p.looped(rest, many, 1, (), partial(rows, 1))

        def end(j: Value) -> Sequence[Value]:
            into, zero = self.strip(j, many), b.widen(literal(0.0, self.kind))

            def row(k: Value) -> Sequence[Value]:
                for n in range(VECTORS):
                    p.store(into, (Index(k), Index(integer(n * b.width), lane)), TRUE, zero)
                return ()

            return p.looped(many, self.padded(many), 1, (), row)

        return p.looped(integer(0), columns, self.width, (), end)

    def products(self, i: Value, strip: Strip, vectors: int) -> None:
        """Put products of rows of the copies, from i on, with vectors of a strip into `totals`."""
        b, p, whole, lane = self.b, self.p, self.padded(strip.many), integer(1)
        zero, x = b.widen(literal(0.0, self.kind)), self.now(p.after(self.of_x, b.mul(i, whole)))
        y = strip.values._replace(shape=(b.mul(*strip.values.shape),))
        places = [
            (Index(integer(n)), Index(integer(m * b.width), lane))
            for n in range(ROWS)
            for m in range(vectors)
        ]

        def steps(k: Value, *sums: Value) -> Sequence[Value]:
            found = [*sums]
            rows = p.after(x, b.mul(k, integer(ROWS)))
            lines = self.now(p.after(y, b.mul(k, integer(self.width))))
            for step in range(STEPS):
                line = step * self.width
                values = [
                    p.load(lines, (Index(integer(line + n * b.width), lane),), TRUE)
                    for n in range(vectors)
                ]
                for n in range(ROWS):
                    factor = b.widen(p.load(rows, (Index(integer(n * STEPS + step)),), TRUE))
                    for m, value in enumerate(values, n * vectors):
                        found[m] = b.call("fma", factor, value, found[m])
            return found

        def group(first: Value) -> Sequence[Value]:
            end = b.call("smin", b.add(first, integer(GROUP)), whole)
            sums = p.looped(first, end, STEPS, [zero] * len(places), steps)
            totals = self.now(self.totals)
            for at, sum in zip(places, sums, strict=True):
                p.store(self.totals, at, TRUE, b.op("fadd", p.load(totals, at, TRUE), sum))
            return ()

        for at in places:
            p.store(self.totals, at, TRUE, zero)
        p.looped(integer(0), whole, GROUP, (), group)

    def now(self, buffer: Buffer) -> Buffer:
        """The buffer as it is at this point: values that were loaded before are loaded again."""
        return buffer._replace(level=self.b.level, version=self.b.names)
