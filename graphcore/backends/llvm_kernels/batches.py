"""Batches of matrices, one after the other; small ones, of floats, as many at a time as lanes.

One small matrix has too little work for vectors. Each place of the memory here holds the values of
several matrices side by side. What is computed for one does not depend on the others; those whose
factors have a 0 on the diagonal are solved again, one by one, which words the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from graphcore.ir import Node, Shape, Size, TensorType

from . import small_matrices
from .addressing import Buffer, Index
from .arithmetic import literal
from .builder import FALSE, PARTS, TRUE, WIDTH, Value, integer
from .places import At
from .results import changed
from .storing import reaches
from .writer import Writer

MOST_ROWS = 16
"""The most rows and columns of matrices that are computed so: larger ones leave the first cache."""
LEAST_MATRICES = 3
"""The fewest matrices that are worth the time of as many as there are lanes."""
LANE = Index(integer(0), integer(1))
"""The last index of the memory here."""

One = Callable[[Value, tuple[Value, ...]], None]
Several = Callable[[At, Value], Buffer | None]


class Factors(NamedTuple):
    """Memory for the factors of several matrices, for exchanges, and for failures."""

    packed: Buffer
    exchanges: Buffer
    info: Buffer
    n: Value


def bounded(size: Size) -> Size:
    """A size that memory is taken for: larger matrices do not come here."""
    return min(size, MOST_ROWS) if isinstance(size, int) else MOST_ROWS


def sides(w: Writer, node: Node, kind: np.dtype, rows: Size, columns: Size) -> Buffer:
    """Memory for several matrices, whose sizes may be smaller."""
    shape = bounded(rows), bounded(columns), WIDTH
    buffer = w.own(w.new(node, TensorType(kind, shape)))
    return buffer._replace(shape=(w.size(rows), w.size(columns), integer(WIDTH)))


def memory(w: Writer, node: Node, a: Node) -> Factors:
    """Memory that a node needs for factors until it is computed."""
    n, whole = a.type.shape[-1], np.dtype(np.int32)
    exchanges, info = (
        w.own(w.new(node, TensorType(whole, shape))) for shape in ((bounded(n), WIDTH), (WIDTH,))
    )
    return Factors(sides(w, node, a.type.dtype, n, n), exchanges, info, w.size(n))


def each(w: Writer, shape: Shape, body: Callable[[Value, tuple[Value, ...]], None]) -> None:
    """body(number, index) for each matrix of a batch."""

    def inner(index: tuple[Value, ...], at: Value) -> Sequence[Value]:
        if len(index) == len(shape):
            body(at, index)
            return ()
        size = w.size(shape[len(index)])
        w.places.each(
            size, (), lambda i: inner((*index, i.base), w.b.add(w.b.mul(at, size), i.base)), 0
        )
        return ()

    inner((), integer(0))


def in_ranges(
    w: Writer,
    shape: Shape,
    size: Value,
    group: Value,
    write: Callable[[tuple[Value, ...], Value, Value], None],
) -> None:
    """write(index, first, many) for ranges of an axis, for each matrix of a batch.

    Threads share them. Each is some groups of so many places; the last has those left as well.
    """
    b = w.b
    if w.sharing.waiting is None:
        each(w, shape, lambda _, index: write(index, integer(0), size))
        return
    groups = b.call("smax", b.op("sdiv", size, group), integer(1))

    def some(index: tuple[Value, ...], begin: Value, end: Value) -> None:
        stop = b.select(b.op("icmp eq", end, groups), size, b.mul(end, group))
        first = b.mul(begin, group)
        write(index, first, b.sub(stop, first))

    def steps(begin: Value, end: Value) -> None:
        def matrix(number: Value) -> Sequence[Value]:
            before = b.mul(number, groups)
            first = b.call("smax", b.sub(begin, before), integer(0))
            some(
                index_of_matrix(w, shape, number), first, b.call("smin", b.sub(end, before), groups)
            )
            return ()

        if shape:
            stop = b.add(b.op("sdiv", b.sub(end, integer(1)), groups), integer(1))
            w.places.looped(b.op("sdiv", begin, groups), stop, 1, (), matrix)
        else:
            some((), begin, end)

    w.sharing.steps(b.mul(w.program.count(shape), groups), steps)


def index_of_matrix(w: Writer, shape: Shape, number: Value) -> tuple[Value, ...]:
    """The index of the matrix of a batch before which there are so many."""
    found: list[Value] = []
    for size in map(w.size, reversed(shape[1:])):
        found.append(w.b.op("srem", number, size))
        number = w.b.op("sdiv", number, size)
    return (number, *reversed(found))


def each_shared(
    w: Writer, shape: Shape, work: Callable[[], Value], prepared: Callable[[], One]
) -> None:
    """body(number, index) for each matrix of a batch, which threads share.

    The body is `prepared` once; memory that it writes to is owned by each thread: `Writer.own`.
    """

    def write() -> None:
        body = prepared()

        def matrix(number: Value) -> Sequence[Value]:
            body(number, index_of_matrix(w, shape, number))
            return ()

        def steps(begin: Value, end: Value) -> None:
            w.places.looped(begin, end, 1, (), matrix)

        if w.sharing.waiting is None:
            each(w, shape, body)
        else:
            w.sharing.steps(w.program.count(shape), steps)

    if shape:
        w.sharing.over(work, write, once=True)
    else:
        write()


def vectorised(w: Writer, shape: Shape, one: One, several: Several) -> None:
    """several(index, mask) for the matrices of a batch, side by side along its last axis.

    `several` returns the buffer that says which matrices have to be computed by `one`, if any.
    """
    p, b, width, size = w.places, w.b, w.b.width, w.size(shape[-1])

    def row(index: tuple[Value, ...], first: Value, many: Value) -> None:
        def group(i: Index, mask: Value) -> Sequence[Value]:
            info = several((*map(Index, index), i), mask)
            if info is not None:
                again(info, i.base, index)
            return ()

        with b.side_by_side(WIDTH):
            p.run(first, b.add(first, many), (), group)

    def again(info: Buffer, start: Value, index: tuple[Value, ...]) -> None:
        before = p.place([*map(Index, index)], [*map(w.size, shape[:-1])]).base

        def failed(lanes: Index) -> Value:
            return b.op("icmp ne", p.load(changed(w, info), (lanes,), TRUE), integer(0, "i32"))

        def lane(k: Value) -> Sequence[Value]:
            i = b.add(start, k)

            def alone() -> Sequence[Value]:
                with b.side_by_side(width):
                    one(b.add(b.mul(before, size), i), (*index, i))
                return ()

            b.branch(failed(Index(k)), alone)
            return ()

        def some() -> Sequence[Value]:
            p.looped(integer(0), integer(WIDTH), 1, (), lane)
            return ()

        b.branch(b.any_lane(failed(LANE)), some)

    in_ranges(w, shape[:-1], size, integer(WIDTH), row)


def in_groups(
    w: Writer,
    kind: str,
    shape: Shape,
    sizes: Sequence[Value],
    one: Callable[[], One],
    several: Callable[[], Several],
) -> None:
    """`one` for each matrix of a batch, or `several` at a time, which are prepared here."""
    work = partial(work_of_batch, w, shape, sizes)

    def alone() -> Sequence[Value]:
        each_shared(w, shape, work, one)
        return ()

    def in_lanes() -> None:
        vectorised(w, shape, one(), several())

    def side_by_side() -> Sequence[Value]:
        w.sharing.over(work, in_lanes, once=True)
        return ()

    w.b.branch(are_worth_it(w, kind, shape, sizes), side_by_side, alone)


def work_of_batch(w: Writer, shape: Shape, sizes: Sequence[Value]) -> Value:
    """About how much solving a batch computes."""
    n = sizes[0] if sizes else integer(1)
    return w.b.mul(w.b.mul(n, w.b.mul(n, n)), w.program.count(shape))


def are_worth_it(w: Writer, kind: str, shape: Shape, sizes: Sequence[Value]) -> Value:
    """Whether a batch has enough matrices of such `sizes`, and none is too large."""
    if not shape or kind in PARTS:
        return FALSE
    found = reaches(w.b, w.size(shape[-1]), LEAST_MATRICES)
    for n in sizes:
        found = w.b.both(found, reaches(w.b, w.b.sub(integer(MOST_ROWS), n), 0))
    return found


def entries(w: Writer, rows: Value, columns: Value, body: Callable[[Index, Index], None]) -> None:
    """body(i, j) for each entry of the matrices, never written out: each is many instructions."""

    def row(i: Value) -> Sequence[Value]:
        def column(j: Value) -> Sequence[Value]:
            body(Index(i), Index(j))
            return ()

        w.places.looped(integer(0), columns, 1, (), column)
        return ()

    w.places.looped(integer(0), rows, 1, (), row)


def fill(w: Writer, buffer: Buffer, value: Callable[[Index, Index], Value]) -> None:
    """Put the entries of several matrices side by side."""
    put = lambda i, j: w.places.store(buffer, (i, j, LANE), TRUE, w.b.widen(value(i, j)))
    entries(w, buffer.shape[0], buffer.shape[1], put)


def give(w: Writer, buffer: Buffer, into: Buffer, at: At, mask: Value) -> None:
    """Put the matrices that lie side by side into their places of the batch."""

    def one(i: Index, j: Index) -> None:
        value = w.places.load(changed(w, buffer), (i, j, LANE), TRUE)
        w.places.store(into, (*at, i, j), mask, value)

    entries(w, buffer.shape[0], buffer.shape[1], one)


def factor(w: Writer, f: Factors, a: Node, at: At, mask: Value) -> None:
    """Factor the transposes of matrices of a batch."""
    copy(w, a, f.packed, at, mask)
    below = f.packed.kind, f.packed.pointer, f.exchanges.pointer, f.n
    small_matrices.factored(w, *below, f.info.pointer, name="factor_vectorised")


def copy(w: Writer, x: Node, buffer: Buffer, at: At, mask: Value) -> None:
    """Put matrices of a batch side by side; those that are not there are units."""

    def given(i: Index, j: Index) -> Value:
        return w.b.select(mask, w.places.at(x, (*at, i, j), mask), unit(w, buffer.kind, i, j))

    fill(w, buffer, given)


def unit(w: Writer, kind: str, i: Index, j: Index) -> Value:
    """An entry of the matrix with 1 on its diagonal."""
    same = w.b.op("icmp eq", i.base, j.base)
    return w.b.select(same, literal(1, kind), literal(0, kind))
