"""Products of matrices: calls of a routine, one for each of a batch.

Small and narrow products of floats are computed by `thin`, others by `dense`, and those of complex
values by BLAS. That reads columns first, so that it takes a matrix that lies row by row as its
transpose: for x y it computes yᵀ xᵀ. All read operands as they lie: rows may be any distance apart,
so that an operand whose axes are in another order, or one that is repeated, is not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from copy import copy
from functools import partial
from typing import NamedTuple

from graphcore.backends.rounding import PRODUCTS_OF_BLAS
from graphcore.ir import Hidden, Node, Shape, Size, TensorType
from graphcore.ir.help_text import attributes
from graphcore.ir.sizes import count, minimum, unknowns
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from . import dense, thin
from .addressing import Buffer, Index, moved
from .arithmetic import kind_of, literal, rule_of
from .batches import each, each_shared, in_ranges
from .builder import FALSE, TRUE, Value, integer
from .entrance import Address
from .folds import rounding
from .lapack import Call, check_sizes
from .machine import levels
from .places import At
from .product_sums import CHUNK, LONGEST_INNER
from .results import changed, finished
from .storing import reaches
from .writer import Homes, Writer

PRODUCTS_OF_COMPLEX_PER_VALUE = 4
"""How many products of complex numbers take as long as that."""
CALL_OF_BLAS = 2**8
"""How many simple values take as long as a call of BLAS."""
MOST_PRODUCTS = 2**15
"""The most products of numbers in a product of matrices for which OpenBLAS uses one thread."""


@attributes(
    base="The node that lies in memory, row-major.",
    strides="How many values there are from one place to the next, for each axis of the operand.",
    transposed="Whether the values of a column lie side by side, and not those of a row.",
)
class Operand(NamedTuple):
    """A batch of matrices in memory."""

    base: Node
    strides: tuple[Size, ...]
    transposed: bool

    @property
    def apart(self) -> Size:
        """How many values there are from one row to the next, or column if it is transposed."""
        return self.strides[-1 if self.transposed else -2]

    def steps(self, apart: Value) -> tuple[Value, Value]:
        """How many values there are from one row to the next, and from one column to the next."""
        return (integer(1), apart) if self.transposed else (apart, integer(1))


def operand(x: Node, known: Container[Node] = ()) -> Operand:
    """An operand as it lies in memory, below the views that BLAS can look through.

    Memory of values that come before those `known` may have been given back.
    """
    node, axes = x, list[int | None](range(x.type.ndim))
    while node not in known:
        below = looked_through(node, axes)
        if below is None or None in below[-2:]:
            break
        node, axes = node.inputs[0], below
    shape, last = node.type.shape, node.type.ndim - 1
    if last not in axes[-2:]:  # neither rows nor columns lie side by side
        node, axes, shape, last = x, [*range(x.type.ndim)], x.type.shape, x.type.ndim - 1
    strides = tuple([0 if axis is None else count(shape[axis + 1 :]) for axis in axes])
    while node not in known and node.op in (t.reshape, t.pack):
        (node,) = node.inputs
    return Operand(node, strides, axes[-2] == last)


def looked_through(node: Node, axes: Sequence[int | None]) -> list[int | None] | None:
    """The axes of a node's operand, if the node is a view; None for an axis that repeats.

    Of slices only those that begin where the operand does: memory of others begins elsewhere.
    """
    if node.op is t.transpose:
        perm = node.attrs["perm"]
        return [None if axis is None else perm[axis] for axis in axes]
    if node.op is t.expand:
        kept = [axis for axis in range(node.type.ndim) if axis not in node.attrs["axes"]]
        return [kept.index(axis) if axis in kept else None for axis in axes]
    if node.op is t.slice_ and {*node.attrs["starts"]} <= {0} and {*node.attrs["steps"]} <= {1}:
        return [*axes]
    return None


def is_own_product(node: Node) -> bool:
    """Whether a matrix is multiplied with its own transpose."""
    x, y = map(operand, node.inputs)
    *batch, row, column = x.strides
    left, right = [side.type.shape for side in node.inputs]
    alike = x.base is y.base and y.strides == (*batch, column, row) and left[-2] == right[-1]
    return alike and x.transposed != y.transposed and kind_of(node)[0] == "f"


def start(w: Writer, buffer: Buffer, strides: Sequence[Size], index: Sequence[Value]) -> Value:
    """Where the matrix at an index of the batch begins, or its row at a further index."""
    b, offset = w.b, integer(0)
    for i, stride in zip(index[buffer.skipped :], strides[buffer.skipped :], strict=False):
        offset = b.add(offset, b.mul(i, w.size(stride)))
    return moved(b, buffer.pointer, offset, buffer.kind)


def product(w: Writer, node: Node, homes: Homes) -> None:
    """x y; of a matrix with its own transpose one triangle, which is mirrored."""
    for side in map(operand, node.inputs):
        w.lying(side.base)
    buffer = w.home(node)
    if buffer.kind in dense.KINDS:
        by_parts(w, node, buffer)
    else:
        by_blas(w, node, buffer)
    finished(w, node, homes, buffer)


def by_parts(w: Writer, node: Node, buffer: Buffer) -> None:
    """A product that threads share: rows of each matrix, or columns where there are few rows."""
    own, batch = is_own_product(node), node.type.shape[:-2]
    rows, columns = map(w.size, node.type.shape[-2:])
    is_thin = may_be_thin(w, node, rows)
    wide = FALSE if own else w.b.both(w.b.neither(is_thin), dense.is_wide(w.b, rows, columns))
    memory = Memory(w, node)

    def ranges() -> None:
        own_memory = memory.of_thread()

        def some(index: tuple[Value, ...], first: Value, many: Value) -> None:
            pairs = (integer(0), first), (rows, many), (first, integer(0)), (many, columns)
            row, height, column, width = [w.b.select(wide, *pair) for pair in pairs]
            if own:  # from the diagonal on
                column, width = first, w.b.sub(columns, first)
            block = Block(row, height, column, width)
            block_of_product(w, node, buffer, index, block, own_memory, is_thin)

        size = w.b.select(wide, columns, rows)
        of_columns = dense.at_once(w.b, columns, dense.SOME_COLUMNS)
        of_rows = dense.rows_at_once(w.b, rows)
        least = w.b.select(wide, of_columns, of_rows)
        in_ranges(w, batch, size, least, some)

    def in_rows() -> Sequence[Value]:
        w.sharing.over(partial(work_of_product, w, node), ranges, once=True)
        return ()

    def in_chunks() -> Sequence[Value]:
        sums_of_chunks(w, node, buffer, memory)
        return ()

    if memory.chunks is None or w.sharing.routine is None:
        in_rows()
    else:
        deep = dense.is_deep(w.b, rows, w.size(node.inputs[0].type.shape[-1]), columns)
        w.b.branch(w.b.both(w.b.neither(is_thin), deep), in_chunks, in_rows)
    memory.give_back()

    def triangle(_: Value, index: tuple[Value, ...]) -> None:
        own = start(w, buffer, strides_of(node.type.shape), index)
        mirror(w, buffer._replace(pointer=own, shape=buffer.shape[-2:]))

    if own:
        triangles = partial(each, w, batch, triangle)
        w.sharing.over(partial(w.program.count, node.type.shape), triangles)


class Block(NamedTuple):
    """Some rows, from one on, and some columns of a product."""

    row: Value
    rows: Value
    column: Value
    columns: Value


def may_be_thin(w: Writer, node: Node, rows: Value) -> Value:
    """Whether so many rows of a product are computed by `thin`."""
    x, y = node.inputs
    k, j = w.size(x.type.shape[-1]), w.size(node.type.shape[-1])
    return FALSE if operand(y).transposed else thin.is_quicker(w.b, kind_of(node), rows, k, j)


class Memory:
    """Memory for a product: sums of blocks of the inner axis, and copies of operands."""

    def __init__(self, w: Writer, node: Node) -> None:
        self.w, kind, inner = w, node.type.dtype, node.inputs[0].type.shape[-1]
        blocks = [more_than(inner, n) for n in (dense.INNER_OF_FEW_ROWS, LONGEST_INNER)]
        copied = dense.is_copied(node.type.shape[-2], operand(node.inputs[0]).transposed)
        self.parts = sum(blocks, start=0)
        scratch = dense.scratch_for(levels()[0]) if copied else (0,)
        self.types = (
            TensorType(kind, (self.parts, *node.type.shape[-2:])),
            TensorType(kind, scratch),
        )
        self.taken = [w.program.take(type) for type in self.types]
        self.sums, self.scratch = [pointer for _, pointer in self.taken]
        self.chunks = self.in_chunks(w, node)
        self.is_shared = node.type.ndim == 2

    def in_chunks(self, w: Writer, node: Node) -> Buffer | None:
        """Memory for the sums of chunks of a long inner axis, if the result may be small.

        There are three matrices for each: the sums, those of its blocks, and one that is not read.
        """
        rows, columns = node.type.shape[-2:]
        few, narrow = 2 * dense.SOME_ROWS[0], 2 * dense.SOME_COLUMNS
        known = zip((rows, columns), (few, narrow), strict=True)
        if any(isinstance(n, int) and n >= most for n, most in known) or node.type.ndim > 2:
            return None
        inner = node.inputs[0].type.shape[-1]
        if is_found(inner) or (isinstance(inner, int) and inner <= dense.LONGEST_OF_FEW_ROWS):
            return None
        many = (inner + CHUNK - 1) // CHUNK
        shape = many, 3, minimum(rows, few), minimum(columns, narrow)
        self.taken.append(w.program.take(TensorType(node.type.dtype, shape)))
        sizes = tuple(map(w.size, (many, 3, rows, columns)))
        return Buffer(self.taken[-1][1], sizes, kind_of(node))

    def of_thread(self) -> Memory:
        """The memory of each thread, where the loop that comes next is shared."""
        found, own, bytes = copy(self), self.w.sharing.own, self.w.program.bytes
        sums, scratch = [partial(bytes, type) for type in self.types]
        found.scratch = own(self.scratch, scratch)
        if not self.is_shared:  # threads compute rows of several matrices
            found.sums = own(self.sums, sums)
        return found

    def give_back(self) -> None:
        """Let others take the memory."""
        for taken, _ in self.taken:
            self.w.program.give_back(taken)


def strides_of(shape: Shape) -> list[Size]:
    """How many values there are from one place of each axis to the next."""
    return [count(shape[axis + 1 :]) for axis in range(len(shape))]


def work_of_product(w: Writer, node: Node) -> Value:
    """About how much a product of matrices computes, in simple values."""
    places = count((*node.type.shape, node.inputs[0].type.shape[-1]))
    return w.size(places // dense.PRODUCTS_PER_VALUE)


def work_of_calls(w: Writer, node: Node) -> Value:
    """About how much a batch of calls of BLAS computes, where it uses no threads of its own."""
    *batch, rows, columns = node.type.shape
    products = count((rows, columns, node.inputs[0].type.shape[-1]))
    values = w.size((products // PRODUCTS_OF_COMPLEX_PER_VALUE + CALL_OF_BLAS) * count(batch))
    return w.b.select(reaches(w.b, w.size(products), MOST_PRODUCTS + 1), integer(0), values)


def some_rows_of_product(
    w: Writer, node: Node, buffer: Buffer, index: Sequence[Value], first: Value, rows: Value
) -> None:
    """So many rows of the product at an index of the batch, whose operands lie in memory."""
    memory = Memory(w, node)
    block = Block(first, rows, integer(0), w.size(node.type.shape[-1]))
    block_of_product(w, node, buffer, index, block, memory, may_be_thin(w, node, rows))
    memory.give_back()


def block_of_product(
    w: Writer,
    node: Node,
    buffer: Buffer,
    index: Sequence[Value],
    block: Block,
    memory: Memory,
    is_thin: Value,
) -> None:
    """A block of the product at an index of the batch; of many rows it has no few."""
    x, y = map(operand, node.inputs)
    k, j = w.size(node.inputs[0].type.shape[-1]), w.size(node.type.shape[-1])
    of_x, of_y = w.size(x.apart), w.size(y.apart)
    lying = [n for side, apart in ((x, of_x), (y, of_y)) for n in side.steps(apart)]
    right = start(w, w.lying(y.base), y.strides, index)
    into = start(w, buffer, strides_of(node.type.shape), (*index, block.row))
    before = w.b.mul(w.size(memory.parts), w.b.mul(block.row, j))
    starts = [
        start(w, w.lying(x.base), x.strides, (*index, block.row)),
        moved(w.b, right, w.b.mul(lying[3], block.column), buffer.kind),
        moved(w.b, into, block.column, buffer.kind),
    ]
    sums = moved(w.b, memory.sums, w.b.add(before, block.column), buffer.kind)

    def by_thin() -> Sequence[Value]:
        address = Address(thin.code(buffer.kind)["thin"])
        given = *starts, block.rows, k, j, *lying[:2], of_y
        w.call(w.program.shared(("thin", buffer.kind), address), *given)
        return ()

    upper = TRUE if is_own_product(node) else FALSE
    of_dense = (
        *(*starts, sums, memory.scratch, block.rows, k, block.columns),
        *(*lying, j, k, upper),
    )
    rows = node.type.shape[-2]
    w.b.branch(is_thin, by_thin, partial(dense.call, w, buffer.kind, rows, of_dense))


def sums_of_chunks(w: Writer, node: Node, buffer: Buffer, memory: Memory) -> None:
    """A small product of long rows and columns: threads share these, whose sums join in order."""
    p, b, parts = w.places, w.b, memory.chunks
    assert parts is not None
    x, y = map(operand, node.inputs)
    rows, inner, columns = map(w.size, (*node.inputs[0].type.shape, node.type.shape[-1]))
    strides = [n for side in (x, y) for n in side.steps(w.size(side.apart))]
    upper, kind = TRUE if is_own_product(node) else FALSE, buffer.kind

    def chunk(scratch: Value, first: Value) -> Sequence[Value]:
        number, many = b.op("sdiv", first, integer(CHUNK)), b.sub(inner, first)
        own = p.place([Index(number), *[Index(integer(0))] * 3], parts.shape).base
        into = moved(b, parts.pointer, own, kind)
        given = (
            moved(b, w.lying(x.base).pointer, b.mul(first, strides[1]), kind),
            moved(b, w.lying(y.base).pointer, b.mul(first, strides[2]), kind),
            *(into, moved(b, into, b.mul(rows, columns), kind), scratch),
            *(rows, b.call("smin", many, integer(CHUNK)), columns),
            *(*strides, columns, inner, upper),
        )
        return dense.call(w, kind, node.type.shape[-2], given)

    def chunks() -> None:
        step = partial(chunk, memory.of_thread().scratch)

        def some(_: object, first: Value, many: Value) -> None:
            p.looped(first, b.add(first, many), CHUNK, (), step)

        in_ranges(w, (), inner, integer(CHUNK), some)

    def join(index: At, mask: Value) -> None:
        def sums(number: Value) -> Value:
            at = (Index(number), Index(integer(0)), *index)
            return p.load(changed(w, parts), at, mask)

        def plainly(number: Value, total: Value) -> Sequence[Value]:
            return [b.op("fadd", total, sums(number))]

        def exactly(number: Value, total: Value, lost: Value) -> Sequence[Value]:
            more = b.op("fsub", sums(number), lost)
            new = b.op("fadd", total, more)
            return [new, rounding(b, total, more, new)]

        def joined(step: Callable[..., Sequence[Value]], *start: Value) -> Sequence[Value]:
            return p.looped(integer(1), parts.shape[0], 1, start, step)[:1]

        first = sums(integer(0))
        zero = b.widen(literal(0.0, kind), first.wide) if first.wide else literal(0.0, kind)
        long = partial(joined, exactly, first, zero)
        is_long = reaches(b, inner, LONGEST_INNER + 1)
        (total,) = b.branch(is_long, long, partial(joined, plainly, first))
        p.store(buffer, index, mask, total)

    w.sharing.over(partial(work_of_product, w, node), chunks, once=True)
    with w.vectorised(node):
        p.everywhere(node.type.shape, join)


def by_blas(w: Writer, node: Node, buffer: Buffer) -> None:
    """Products of complex matrices."""
    x, y = map(operand, node.inputs)
    k, j = w.size(node.inputs[0].type.shape[-1]), w.size(node.type.shape[-1])
    rows, of_x, of_y = w.size(node.type.shape[-2]), w.size(x.apart), w.size(y.apart)
    check_sizes(w, node, *map(w.size, (*node.inputs[0].type.shape[-2:], node.type.shape[-1])))
    far = "rows or columns that lie 2**31 or more values apart"
    check_sizes(w, node, of_x, of_y, reason=far)
    columns = [side.steps(apart)[n] for side, apart, n in ((x, of_x, 1), (y, of_y, 0))]

    def one(_: Value, index: tuple[Value, ...]) -> None:
        a = start(w, w.lying(x.base), x.strides, index)
        b = start(w, w.lying(y.base), y.strides, index)
        c = start(w, buffer, strides_of(node.type.shape), index)
        matrix = buffer._replace(pointer=c, shape=buffer.shape[-2:])

        def gemm(first: Value, many: Value, into: Value) -> None:
            blas = Call(w, "gemm", buffer.kind)
            ways = ["T" if side.transposed else "N" for side in (y, x)]
            sizes = blas.size(j), blas.size(rows), blas.size(many)
            parts = [
                moved(w.b, pointer, w.b.mul(first, step), buffer.kind)
                for pointer, step in zip((a, b), columns, strict=True)
            ]
            ends = blas.number(0.0), into, blas.stride(j)
            numbers = blas.number(1.0), parts[1], blas.stride(of_y), parts[0], blas.stride(of_x)
            blas(*ways, *sizes, *numbers, *ends)

        def at_once() -> Sequence[Value]:
            gemm(integer(0), k, c)
            return ()

        def in_blocks() -> Sequence[Value]:
            add_blocks(w, node, matrix, k, gemm)
            return ()

        w.b.branch(reaches(w.b, k, PRODUCTS_OF_BLAS + 1), in_blocks, at_once)

    each_shared(w, node.type.shape[:-2], partial(work_of_calls, w, node), lambda: one)


def more_than(size: Size, least: int) -> Size:
    """1 if a size is larger than that, or will be found by a loop of the kernel, else 0."""
    return 1 if is_found(size) else minimum(size // (least + 1), 1)


def is_found(size: Size) -> bool:
    """Whether a size is found by a loop of the kernel."""
    return any(type(name) is Hidden for name in unknowns(size))


def add_blocks(
    w: Writer,
    node: Node,
    buffer: Buffer,
    inner: Value,
    product_of: Callable[[Value, Value, Value], None],
) -> None:
    """A matrix as a sum of products of blocks of the inner axis, each stored at a pointer.

    What rounding has added to it is subtracted from the next one.
    """
    p, b, shape = w.places, w.b, node.type.shape[-2:]
    type, zero = TensorType(node.type.dtype, shape), literal(0, buffer.kind)
    taken, pointers = zip(*[w.program.take(type) for _ in range(2)], strict=True)
    part, added = [buffer._replace(pointer=pointer) for pointer in pointers]

    def clear(index: At, mask: Value) -> None:
        p.store(buffer, index, mask, zero)
        p.store(added, index, mask, zero)

    def join(index: At, mask: Value) -> None:
        total, more, lost = [p.load(changed(w, x), index, mask) for x in (buffer, part, added)]
        more = rule_of(e.subtract, buffer.kind)(b, more, lost)
        found = rule_of(e.add, buffer.kind)(b, total, more)
        p.store(added, index, mask, rounding(b, total, more, found))
        p.store(buffer, index, mask, found)

    def block(first: Value) -> Sequence[Value]:
        many = b.call("smin", integer(PRODUCTS_OF_BLAS), b.sub(inner, first))
        product_of(first, many, part.pointer)
        p.everywhere(shape, join)
        return ()

    with w.vectorised(node):
        p.everywhere(shape, clear)
        p.looped(integer(0), inner, PRODUCTS_OF_BLAS, (), block)
    for memory in taken:
        w.program.give_back(memory)


def mirror(w: Writer, buffer: Buffer) -> None:
    """The upper triangle of a matrix put into the lower one as well, a few columns at a time."""
    p, b, n = w.places, w.b, buffer.shape[0]

    def columns(i: Index, mask: Value) -> Sequence[Value]:
        def row(mask: Value, j: Value) -> Sequence[Value]:
            value = p.load(changed(w, buffer), (i, Index(j)), mask)
            p.store(buffer, (Index(j), i), mask, value)
            return ()

        def first(j: Value) -> Sequence[Value]:
            return row(b.both(mask, b.op("icmp slt", p.spelled(i), j)), j)

        end = b.call("smin", b.add(i.base, integer(b.width)), n)
        b.loop(b.add(i.base, integer(1)), end, 1, (), first)
        b.loop(end, n, 1, (), partial(row, TRUE))
        return ()

    p.lanes(n, (), columns)
