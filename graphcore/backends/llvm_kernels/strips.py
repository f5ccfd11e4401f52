"""Products of a matrix in memory with a vector: which they are, and how their rows are shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from graphcore.ir import Node, Shape, Size, TensorType
from graphcore.ir.sizes import count, unknowns
from graphcore.ops import tensor as t

from . import matvecs
from .addressing import Buffer, Index, moved
from .arithmetic import kind_of
from .batches import in_ranges
from .builder import FALSE, Value, integer
from .conversions import DTYPES
from .entrance import Address
from .matvecs import FEW_HALVES, LANES, ROWS
from .places import is_register
from .products import Operand, operand, start
from .results import finished
from .rows import Pair
from .writer import Homes, Taken, Writer

STRIP = 24 * ROWS
"""How many rows are added up before their sum joins the total."""
IN_CACHE = 2048
"""How many values of a matrix are read by one product before the next one reads them."""
SMALL_MATRIX = 1024
"""The most values of a matrix of known sizes for which loops of the kernel's own are faster."""


class Product(NamedTuple):
    """A product of a matrix in memory, the buffer that this lies in, and a vector."""

    root: Node
    matrix: Operand
    buffer: Buffer
    vector: Node


def product_by_routine(w: Writer, roots: Sequence[Node], homes: Homes) -> bool:
    """Whether a nest is one product of a matrix and a vector by a routine; it is stored then."""
    given = in_memory(w, roots[0]) if len(roots) == 1 else None
    if given is not None:
        buffer = w.home(roots[0])
        store_product(w, given, buffer)
        know(w, given.root, homes, buffer)
    return given is not None


def products_in_one_walk(w: Writer, step: Pair, homes: Homes) -> None:
    """xᵀ (x v), where both products read a few rows before the next ones are read."""
    first, second = step.made
    one, other = in_memory(w, first), in_memory(w, second)
    if one is None or other is None or one.matrix.transposed or not other.matrix.transposed:
        w.nest([first], homes)
        w.nest([second], homes)
        return
    between, buffer = w.home(first), w.home(second)
    w.places.buffers[first] = between
    store_product(w, other, buffer, one)
    for given, into in ((one, between), (other, buffer)):
        know(w, given.root, homes, into)


def know(w: Writer, root: Node, homes: Homes, buffer: Buffer) -> None:
    """Make a product known that has been stored."""
    finished(w, root, homes, buffer)
    if is_register(root.type):
        w.places.numbers[root] = w.load(w.places.buffers.pop(root))


def in_memory(w: Writer, root: Node) -> Product | None:
    """The product of a matrix and a vector that a root is, if a routine computes it."""
    if root.op is not t.matvec or kind_of(root) not in LANES:
        return None
    x, vector = root.inputs
    matrix = operand(x, w.places.buffers)
    buffer, places = w.places.buffers.get(matrix.base), count(x.type.shape[-2:])
    if buffer is None or buffer.skipped or {buffer.kind, kind_of(vector)} != {kind_of(root)}:
        return None
    if isinstance(places, int) and places <= SMALL_MATRIX:
        return None
    if any(unknowns(n) & w.program.found for n in x.type.shape):
        return None
    return Product(root, matrix, buffer, vector)


def store_product(w: Writer, given: Product, into: Buffer, before: Product | None = None) -> None:
    """Store a product of a matrix and a vector, for each of a batch.

    The vector may be the product `before`, of the same matrix: it is computed as well then.
    """
    taken: list[Taken] = []

    def in_buffer(x: Node) -> Buffer:
        found = w.places.buffers.get(x)
        if found is None or found.skipped:
            new, pointer = w.program.take(x.type)
            taken.append(new)
            found = w.buffer(x.type, pointer)
            w.copy(x, [found])
        return found

    vectors = [(x.vector, in_buffer(x.vector)) for x in (given, before) if x is not None]
    strips = Strips(w, given, [*vectors, (given.root, into)])
    if given.matrix.transposed:
        strips.down()
    else:
        strips.across()
    for memory in taken:
        w.program.give_back(memory)


class Strips:
    """Products of matrices of which `STRIP` rows are read, then the next ones.

    `vectors` are what a matrix is multiplied with, another one that gives it, and the result.
    """

    def __init__(self, w: Writer, given: Product, vectors: Sequence[tuple[Node, Buffer]]) -> None:
        self.w, self.b, self.given, self.vectors = w, w.b, given, vectors
        self.kind, shape = given.buffer.kind, given.root.inputs[0].type.shape
        self.batch, self.sizes = shape[:-2], shape[-2:]
        if given.matrix.transposed:
            self.sizes = self.sizes[::-1]
        self.rows, self.columns = map(w.size, self.sizes)
        self.apart, self.work = w.size(given.matrix.apart), partial(w.program.count, shape)

    def each(self, strip: Callable[[tuple[Value, ...], Value, Value], None]) -> None:
        """strip(index, first, many) for the rows of each matrix, in order.

        Without rows it has a strip of none, whose sum is 0.
        """
        b, looks = self.b, self.b.signals.in_nests

        def some(index: tuple[Value, ...], begin: Value, size: Value) -> None:
            def one(first: Value) -> Sequence[Value]:
                many = b.call("smin", integer(STRIP), b.op("sub nsw", self.rows, first))
                strip(index, first, many)
                if looks:
                    b.spend(b.mul(many, self.columns))
                return ()

            self.w.places.looped(begin, b.add(begin, size), STRIP, (), one, looks=looks)

        whole = b.call("smax", self.rows, integer(1))
        in_ranges(self.w, self.batch, whole, integer(STRIP), some)

    def at(self, index: tuple[Value, ...], first: Value) -> tuple[Value, list[Value]]:
        """Where a row of a matrix begins, and where its vectors do."""
        buffers = [(buffer, rows_apart(x.type.shape)) for x, buffer in self.vectors]
        matrix = start(self.w, self.given.buffer, self.given.matrix.strides, index)
        row = moved(self.b, matrix, self.b.mul(first, self.apart), self.kind)
        return row, [start(self.w, *each, index) for each in buffers]

    def call(self, name: str, *values: Value) -> None:
        """Call a routine."""
        key, address = (name, self.kind), Address(matvecs.code(name, self.kind)[name])
        self.w.call(self.w.program.shared(key, address), *values)

    def across(self) -> None:
        """y = x v: threads share the rows."""

        def strip(index: tuple[Value, ...], first: Value, many: Value) -> None:
            row, (v, y) = self.at(index, first)
            into = moved(self.b, y, first, self.kind)
            self.call("across", row, v, into, many, self.columns, self.apart)

        self.w.sharing.over(self.work, partial(self.each, strip))

    def down(self) -> None:
        """y = xᵀ u, a sum over strips in order. Threads put those of all strips into memory."""
        w, b, strips = self.w, self.b, self.sizes[0] // STRIP + 1
        line = self.sizes[1] + 2 * LANES[self.kind]
        lines = (count(self.batch) * strips + 1, line)
        taken, lost = w.program.take(TensorType(DTYPES[self.kind], lines))

        def sums(index: tuple[Value, ...], first: Value) -> Value:
            at = [*map(Index, index), Index(b.op("udiv", first, integer(STRIP)))]
            place = w.places.place(at, [*map(w.size, self.batch), w.size(strips)]).base
            return moved(b, lost, b.mul(b.add(place, integer(1)), w.size(line)), self.kind)

        def join(part: Value, index: tuple[Value, ...], first: Value) -> None:
            y = self.at(index, first)[1][-1]
            self.call("join", part, lost, y, self.columns, b.op("icmp ne", first, integer(0)))

        def shared() -> Sequence[Value]:
            self.each(lambda index, *rows: self.add_up(sums(index, rows[0]), index, *rows))
            with w.sharing.in_order():
                self.each(lambda index, first, _: join(sums(index, first), index, first))
            return ()

        def alone() -> Sequence[Value]:
            def strip(index: tuple[Value, ...], first: Value, many: Value) -> None:
                part = moved(b, lost, w.size(line), self.kind)
                self.add_up(part, index, first, many)
                join(part, index, first)

            self.each(strip)
            return ()

        w.sharing.where_long(self.work, shared, alone)
        w.program.give_back(taken)

    def add_up(self, into: Value, index: tuple[Value, ...], begin: Value, many: Value) -> None:
        """xᵀ u of a strip; u is x v where that is wanted as well."""
        b, kind, sizes = self.b, self.kind, (self.columns, self.apart)
        row, (u, *inner, _) = self.at(index, begin)
        u = moved(b, u, begin, kind)

        def read(first: Value, many: Value, begun: Value) -> None:
            part = moved(b, row, b.mul(first, self.apart), kind)
            own = moved(b, u, first, kind)
            for v in inner:
                self.call("across", part, v, own, many, *sizes)
            self.call("down", part, own, into, many, *sizes, begun)

        def both() -> Sequence[Value]:
            self.call("twice", row, *inner, u, into, many, *sizes)
            return ()

        def pieces() -> Sequence[Value]:
            in_pieces(self.w, self.columns, many, read)
            return ()

        if inner:
            short = integer(FEW_HALVES * LANES[kind] // 2)
            b.branch(b.op("icmp sle", self.columns, short), both, pieces)
        else:
            read(integer(0), many, FALSE)


def in_pieces(
    w: Writer, columns: Value, rows: Value, read: Callable[[Value, Value, Value], None]
) -> None:
    """read(first, many, begun) for so few rows that they stay in the fastest cache."""
    b = w.b
    few = b.op("sdiv", integer(IN_CACHE), b.call("smax", columns, integer(1)))
    few = b.call("smax", b.op("and", few, integer(-ROWS)), integer(ROWS))
    pieces = b.op("sdiv", b.op("add nsw", rows, b.op("sub nsw", few, integer(1))), few)

    def piece(k: Value) -> Sequence[Value]:
        first = b.mul(k, few)
        many = b.call("smin", few, b.op("sub nsw", rows, first))
        read(first, many, b.op("icmp ne", k, integer(0)))
        return ()

    # Without rows there is a piece of none, which clears the sums.
    w.places.looped(integer(0), b.call("smax", pieces, integer(1)), 1, (), piece, looks=True)


def rows_apart(shape: Shape) -> tuple[Size, ...]:
    """How many values there are from one place to the next, for each axis but the last."""
    return tuple([count(shape[axis + 1 :]) for axis in range(len(shape) - 1)])
