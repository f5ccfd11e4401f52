"""`remove` for complex matrices: z - x y by the routine for floats.

A matrix that lies row by row is one of floats with twice as many columns, where the parts of a
number are side by side. With each number of y written as two rows of two,

    a + b i  ->   a  b
                 -b  a

the product of these floats is that of the numbers. Blocks of y are written so to `scratch`, and
blocks of x too where the values of a row do not lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import dense
from .addressing import Buffer, Index, moved
from .builder import FALSE, PARTS, TRUE, Builder, Value, integer
from .elementary import compiled, module
from .machine import Code, cached, levels
from .places import Places
from .product_sums import ARGUMENTS, PAGE_BY_PAGE, POINTERS

INNER, COLUMNS, ROWS = 64, 256, 512
"""How much is written as floats at a time: of the inner axis, columns of y, and rows of x."""


@cached
def code(kind: str) -> Code:
    """The machine code of `remove` for values of a kind."""
    if kind not in PARTS:
        return dense.code_that_removes(kind)
    return compiled(Removal(kind).text(), "remove")


class Removal:
    """The IR of `remove`, with the arguments of that for floats but for `upper`, which is ignored.

    `scratch` is memory of the shape `dense.scratch_for`, of complex values: the first half is for
    the product of floats.
    """

    def __init__(self, kind: str) -> None:
        self.b, self.kind, self.part = (b := Builder(1)), kind, PARTS[kind]
        self.p = Places(b, integer)
        self.sizes = [Value(f"%{name}", "i64") for name in ARGUMENTS]
        self.rows, self.inner, self.columns, *strides, self.whole = self.sizes
        self.down, self.right, self.below, self.beside, self.apart = strides
        self.x, self.y, self.z, _, self.scratch = [Value(f"%{name}", "ptr") for name in POINTERS]
        lines, places = dense.scratch_for(levels()[0])
        self.of_y = moved(b, self.scratch, integer(lines * places), self.part)
        self.of_x = moved(b, self.of_y, integer(4 * INNER * COLUMNS), self.part)

    def text(self) -> str:
        """The module."""
        b, p, one = self.b, self.p, integer(1)
        rows = b.call("smax", self.rows, one)
        blocks = quotient(b, rows, integer(ROWS))
        high = quotient(b, rows, blocks)  # equally many, so that no block has few

        def block(number: Value) -> Sequence[Value]:
            first = b.mul(number, high)
            many = b.call("smin", b.sub(self.rows, first), high)
            return self.pieces(self.inner, INNER, lambda k, deep: self.block(first, many, k, deep))

        p.looped(integer(0), blocks, 1, (), block)
        b.do("ret void")
        given = ", ".join([f"ptr %{name}" for name in POINTERS])
        sizes = ", ".join([x.typed for x in self.sizes])
        return module(f"define void @remove({given}, {sizes}, i1 %upper) {PAGE_BY_PAGE}", b)

    def pieces(
        self, stop: Value, most: int, body: Callable[[Value, Value], object]
    ) -> Sequence[Value]:
        """body(first, many) for pieces of an axis."""

        def piece(first: Value) -> Sequence[Value]:
            body(first, self.b.call("smin", self.b.sub(stop, first), integer(most)))
            return ()

        return self.p.looped(integer(0), stop, most, (), piece)

    def block(self, i: Value, many: Value, k: Value, deep: Value) -> None:
        """Remove the products of a block of rows with a piece of the inner axis."""
        b, two, one = self.b, integer(2), integer(1)
        x = self.at(self.x, i, self.down, k, self.right)
        is_run = b.op("icmp eq", self.right, one)
        b.branch(is_run, tuple, lambda: self.copy(x, many, deep))
        pointer = b.select(is_run, x, self.of_x)
        down = b.select(is_run, b.mul(self.down, two), integer(2 * INNER))
        remove = dense.code_that_removes(self.part)["remove"]

        def piece(j: Value, wide: Value) -> None:
            self.write(self.at(self.y, k, self.below, j, self.beside), deep, wide)
            z = self.at(self.z, i, self.apart, j, one)
            sizes = many, b.mul(deep, two), b.mul(wide, two)
            strides = down, one, integer(2 * COLUMNS), one, b.mul(self.apart, two), sizes[1]
            given = pointer, self.of_y, z, z, self.scratch, *sizes, *strides, FALSE
            text = ", ".join([value.typed for value in given])
            b.do(f"call void inttoptr (i64 {remove} to ptr)({text})", *given)

        self.pieces(self.columns, COLUMNS, piece)

    def at(self, matrix: Value, i: Value, down: Value, j: Value, right: Value) -> Value:
        """Where an element of a matrix lies."""
        b = self.b
        return moved(b, matrix, b.add(b.mul(i, down), b.mul(j, right)), self.kind)

    def copy(self, x: Value, rows: Value, columns: Value) -> Sequence[Value]:
        """Write some rows of x next to each other."""

        def body(i: Value, j: Value) -> None:
            number = self.number(self.at(x, i, self.down, j, self.right))
            self.put(self.of_x, integer(2 * INNER), i, j, self.b.parts(number))

        return self.each(rows, columns, body)

    def write(self, y: Value, rows: Value, columns: Value) -> None:
        """Write numbers of y as two rows of two floats each."""
        b, two = self.b, integer(2)

        def body(i: Value, j: Value) -> None:
            number = self.number(self.at(y, i, self.below, j, self.beside))
            re, im = b.parts(number)
            first = b.mul(i, two)
            for row, parts in (first, (re, im)), (b.add(first, integer(1)), (b.negative(im), re)):
                self.put(self.of_y, integer(2 * COLUMNS), row, j, parts)

        self.each(rows, columns, body)

    def each(
        self, rows: Value, columns: Value, body: Callable[[Value, Value], None]
    ) -> Sequence[Value]:
        """body(i, j) for each element."""

        def row(i: Value) -> Sequence[Value]:
            def column(j: Value) -> Sequence[Value]:
                body(i, j)
                return ()

            return self.p.looped(integer(0), columns, 1, (), column)

        return self.p.looped(integer(0), rows, 1, (), row)

    def number(self, at: Value) -> Value:
        """The number that lies somewhere now."""
        b = self.b
        b.names += 1
        return self.p.load(
            Buffer(at, (integer(1),), self.kind, b.level, b.names), (Index(integer(0)),), TRUE
        )

    def put(self, into: Value, apart: Value, i: Value, j: Value, parts: Sequence[Value]) -> None:
        """Put both parts of a number side by side."""
        b = self.b
        place = b.add(b.mul(i, apart), b.mul(j, integer(2)))
        line = Buffer(moved(b, into, place, self.part), (integer(2),), self.part)
        for n, value in enumerate(parts):
            self.p.store(line, (Index(integer(n)),), TRUE, value)


def quotient(b: Builder, x: Value, y: Value) -> Value:
    """x / y, rounded up."""
    return b.op("udiv", b.add(x, b.sub(y, integer(1))), y)
