"""LU factors of matrices, solutions and determinants by them, and tridiagonal systems.

LAPACK factors columns: those of the transpose, as each matrix lies row by row. Its exchanges count
from 1, ours from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from graphcore.backends.numpy_backend.linalg import SINGULAR
from graphcore.ir import INT, Node, TensorType
from graphcore.ops import elementwise as e
from graphcore.ops import linalg
from graphcore.ops.leaf import values

from . import batches, blocked, panels, small_matrices
from .addressing import Buffer, Index, index_of
from .arithmetic import kind_of, literal, rule_of
from .batches import each_shared, entries, in_groups
from .blocked import Ways
from .builder import PARTS, TRUE, Value, integer
from .lapack import Call, check_sizes, is_set, matrix, side_by_side, without_result
from .results import changed, finished
from .writer import Homes, Writer

ROUTINES = {
    linalg.lu_factor: ("getrf",),
    linalg.det: ("getrf",),
    linalg.slogdet: ("getrf",),
    **dict.fromkeys((linalg.solve, linalg.inv), ("getrf",)),
    linalg.solve_tridiagonal: ("gtsv",),
}
At = tuple[Index, ...]


class Factors(NamedTuple):
    """Memory for the factors of one matrix, for exchanges of its columns, and for products."""

    packed: Buffer
    exchanges: Buffer
    scratch: Buffer
    n: Value


def memory(w: Writer, node: Node, a: Node) -> Factors:
    """Memory that a node needs until it is computed."""
    n = a.type.shape[-1]
    packed = w.new(node, TensorType(a.type.dtype, (n, n)))
    exchanges = w.new(node, TensorType(np.dtype(np.int32), (n,)))
    scratch = w.new(node, blocked.scratch_for(packed.kind, n, True))
    size = w.size(n)
    check_sizes(w, node, size)
    return Factors(packed, exchanges, scratch, size)


def owned(w: Writer, f: Factors) -> Factors:
    """Memory of each thread, where the loop that comes next is shared."""
    packed, exchanges, scratch, _ = f
    return Factors(w.own(packed), w.own(exchanges), w.own(scratch), f.n)


def positions(index: Sequence[Value]) -> At:
    """The index of a matrix of a batch."""
    return tuple(map(Index, index))


def copy(w: Writer, x: Node, at: At, buffer: Buffer) -> None:
    """A matrix of a batch, put into a buffer."""
    p = w.places
    put = lambda i, j, mask: p.store(buffer, (i, j), mask, p.at(x, (*at, i, j), mask))
    rows, columns = buffer.shape
    side_by_side(w, rows, columns, put)


def factor(w: Writer, f: Factors, a: Node, at: At) -> Value:
    """Factor a matrix of a batch; whether a factor of 0 shows on the diagonal."""
    kind = f.packed.kind
    getrf = Call(w, "getrf", kind)
    info, memory = getrf.info(), (f.packed.pointer, f.exchanges.pointer)
    copy(w, a, at, f.packed)

    def called() -> None:
        size = getrf.size(f.n)
        getrf(size, size, memory[0], getrf.stride(f.n), memory[1], info)

    def larger() -> None:
        by_panels = partial(panels.lu, w, kind, a.type.shape[-1], *memory, info, f.scratch)
        small_matrices.either(w, f.n, called, by_panels, panels.MOST_BY_LAPACK)

    small = partial(small_matrices.factored, w, kind, *memory, f.n, info)
    small_matrices.either(w, f.n, small, larger, small_matrices.MOST_ROWS)
    return is_set(w, info)


def lu_factor(w: Writer, node: Node, homes: Homes) -> None:
    """The factors in one matrix, and with which column each was exchanged."""
    p, b, a = w.places, w.b, node.inputs[0]
    packed, exchanges = values(node)
    buffers = [w.home(packed), w.home(exchanges)]
    f = memory(w, node, a)

    def one(f: Factors, number: Value, index: tuple[Value, ...]) -> None:
        at, own = positions(index), matrix(w, buffers[0], packed.type, number)

        def exchanged(i: Index) -> Sequence[Value]:
            column = b.convert("sext", p.load(changed(w, f.exchanges), (i,), TRUE), "i64")
            p.store(buffers[1], (*at, i), TRUE, b.op("sub", column, integer(1)))
            return ()

        factor(w, f._replace(packed=own), a, at)
        p.each(f.n, (), exchanged, 0)

    def several_factored() -> batches.Several:
        own = batches.memory(w, node, a)

        def several(at: At, mask: Value) -> None:
            def exchanged(i: Value) -> Sequence[Value]:
                found = p.load(changed(w, own.exchanges), (Index(i), batches.LANE), TRUE)
                column = b.op("sub", b.convert("sext", found, "i64"), integer(1))
                p.store(buffers[1], (*at, Index(i)), mask, column)
                return ()

            batches.factor(w, own, a, at, mask)
            batches.give(w, own.packed, buffers[0], at, mask)
            p.looped(integer(0), own.n, 1, (), exchanged)

        return several

    one_factored = lambda: partial(one, owned(w, f))
    in_groups(w, kind_of(a), a.type.shape[:-2], [f.n], one_factored, several_factored)
    w.know([packed, exchanges], [changed(w, buffer) for buffer in buffers])


# ---- solutions


def solve(w: Writer, node: Node, homes: Homes) -> None:
    """x with a x = b or aᵀ x = b, or the inverse, in the buffer of the result; a may be factored.

    The rows of a are the columns of aᵀ = P l u, so that a x = b has x = P l⁻ᵀ u⁻ᵀ b, and aᵀ x = b
    has x = u⁻¹ l⁻¹ P⁻¹ b.
    """
    a, buffer, columns = node.inputs[0], w.home(node), w.size(node.type.shape[-1])
    transposed = node.attrs.get("transposed", False)
    f = memory(w, node, a)
    check_sizes(w, node, columns)

    def one(f: Factors, number: Value, index: tuple[Value, ...]) -> None:
        at, own = positions(index), matrix(w, buffer, node.type, number)
        if len(node.inputs) > 1:
            copy(w, node.inputs[-1], at, own)
        else:
            side_by_side(w, f.n, columns, lambda i, j, mask: put_unit(w, own, i, j, mask))
        wrong = given(w, node, f, at) if node.op is linalg.lu_solve else factor(w, f, a, at)

        def solved() -> Sequence[Value]:
            solve_factored(w, f.exchanges, own, transposed, triangle)
            return ()

        def triangle(**ways: bool) -> None:
            shape = (a.type.shape[-1], node.type.shape[-1])
            pointers = f.packed.pointer, own.pointer
            where = lambda _: pointers
            blocked.solve_triangular(w, own.kind, shape, where, Ways(**ways), f.scratch)

        def lost() -> Sequence[Value]:
            known = [x for x in node.inputs if x.type.dtype != INT]
            without_result(w, node, SINGULAR, index, own, known)
            return ()

        w.b.branch(wrong, lost, solved)

    with w.vectorised(node):
        batch, sizes = node.type.shape[:-2], (f.n, columns)
        one_solved = lambda: partial(one, owned(w, f))
        several = partial(several_solved, w, node, buffer)
        in_groups(w, buffer.kind, batch, sizes, one_solved, several)
    finished(w, node, homes, buffer)


def put_unit(w: Writer, buffer: Buffer, i: Index, j: Index, mask: Value) -> None:
    """An entry of the matrix with 1 on its diagonal."""
    p = w.places
    same = w.b.op("icmp eq", p.spelled(j), p.spelled(i))
    p.store(
        buffer, (i, j), mask, w.b.select(same, literal(1, buffer.kind), literal(0, buffer.kind))
    )


def given(w: Writer, node: Node, f: Factors, at: At) -> Value:
    """Copy the factors that a node is given; whether one is 0, and there is anything to solve."""
    p, b, (packed, exchanges, _) = w.places, w.b, node.inputs
    copy(w, packed, at, f.packed)

    def regular(i: Index, now: Value) -> Sequence[Value]:
        column = b.op("add", p.at(exchanges, (*at, i)), integer(1))
        p.store(f.exchanges, (i,), TRUE, b.convert("trunc", column, "i32"))
        return [b.both(now, is_nonzero(w, p.at(packed, (*at, i, i))))]

    (sound,) = p.each(f.n, [TRUE], regular, 0)
    return b.both(b.neither(sound), b.op("icmp sgt", w.size(node.type.shape[-1]), integer(0)))


def solve_factored(
    w: Writer, exchanges: Buffer, x: Buffer, transposed: bool, solve: Callable[..., None]
) -> None:
    """x becomes the y with a y = x, or aᵀ y = x; `solve` does it for a triangle."""
    if transposed:
        exchange(w, x, exchanges, integer(0), integer(1))
    for lower in (True, False):
        solve(lower=lower, transposed=transposed, unit=lower == transposed)
    if not transposed:
        exchange(w, x, exchanges, w.b.sub(x.shape[0], integer(1)), integer(-1))


def exchange(w: Writer, x: Buffer, exchanges: Buffer, first: Value, step: Value) -> None:
    """Exchange rows, beginning with the `first`; the exchanges count rows from 1.

    Of one matrix, or of several side by side.
    """
    p, b, (n, columns, *several) = w.places, w.b, x.shape
    lane = (batches.LANE,) if several else ()

    def row(k: Value) -> Sequence[Value]:
        i = b.add(first, b.mul(step, k))
        found = b.convert("sext", p.load(changed(w, exchanges), (Index(i), *lane), TRUE), "i64")
        other = b.op("sub", found, integer(1))
        pair = Index(i), index_of(other)

        def column(j: Index, mask: Value) -> Sequence[Value]:
            values = [p.load(changed(w, x), (at, j, *lane), mask) for at in pair]
            for at, value in zip(pair, reversed(values), strict=True):
                p.store(x, (at, j, *lane), mask, value)
            return ()

        def some() -> Sequence[Value]:
            if several:
                p.looped(integer(0), columns, 1, (), lambda j: column(Index(j), TRUE))
            else:
                p.lanes(columns, (), column)
            return ()

        b.branch(b.any_lane(b.op("icmp ne", other, i)), some)
        return ()

    p.looped(integer(0), n, 1, (), row)


def several_solved(w: Writer, node: Node, buffer: Buffer) -> batches.Several:
    """The same for several matrices."""
    f = batches.memory(w, node, node.inputs[0])
    x = batches.sides(w, node, node.type.dtype, *node.type.shape[-2:])
    given = x.kind, f.packed.pointer, x.pointer, x.shape[0], x.shape[1], x.shape[1]
    triangle = partial(small_matrices.solve_triangular, w, *given, name="triangular_vectorised")

    def several(at: At, mask: Value) -> Buffer:
        def right(i: Index, j: Index) -> Value:
            if len(node.inputs) > 1:
                return w.places.at(node.inputs[-1], (*at, i, j), mask)
            return batches.unit(w, buffer.kind, i, j)

        if node.op is linalg.lu_solve:
            several_given(w, node, f, at, mask)
        else:
            batches.factor(w, f, node.inputs[0], at, mask)
        batches.fill(w, x, right)
        transposed = node.attrs.get("transposed", False)
        solve_factored(w, f.exchanges, x, transposed, triangle)
        batches.give(w, x, buffer, at, mask)
        return f.info

    return several


def several_given(w: Writer, node: Node, f: batches.Factors, at: At, mask: Value) -> None:
    """Copy the factors that a node is given, side by side; a 0 on the diagonal is a failure."""
    p, b, (packed, exchanges, _) = w.places, w.b, node.inputs

    def diagonal(i: Value) -> Sequence[Value]:
        at_i, info = (Index(i), batches.LANE), changed(w, f.info)
        column = b.op("add", p.at(exchanges, (*at, Index(i)), mask), integer(1))
        p.store(f.exchanges, at_i, TRUE, b.widen(b.convert("trunc", column, "i32")))
        pivot = p.load(changed(w, f.packed), (Index(i), *at_i), TRUE)
        found = p.load(info, (batches.LANE,), TRUE)
        value = b.select(is_nonzero(w, pivot), found, integer(1, "i32"))
        p.store(f.info, (batches.LANE,), TRUE, value)
        return ()

    batches.copy(w, packed, f.packed, at, mask)
    p.store(f.info, (batches.LANE,), TRUE, b.widen(integer(0, "i32")))
    p.looped(integer(0), f.n, 1, (), diagonal)


def is_nonzero(w: Writer, x: Value) -> Value:
    """Whether a value is not 0."""
    return rule_of(e.not_equal, x.kind)(w.b, x, literal(0, x.kind))


# ---- determinants


def determined(w: Writer, node: Node, homes: Homes) -> None:
    """The determinant, or its sign and the logarithm of its size, of matrices or of factors."""
    p, b, a = w.places, w.b, node.inputs[0]
    kind, given, n = kind_of(a), len(node.inputs) > 1, w.size(a.type.shape[-1])
    several = node.op in (linalg.slogdet, linalg.lu_slogdet)
    results = values(node) if several else [node]
    buffers = [w.home(y) for y in results]
    f = None if given else memory(w, node, a)

    def one(f: Factors | None, number: Value, index: tuple[Value, ...]) -> None:
        at = positions(index)
        if f is not None:
            factor(w, f, a, at)
        give(at, TRUE, f)

    def give(
        at: At, mask: Value, f: Factors | batches.Factors | None, lane: tuple[Index, ...] = ()
    ) -> None:
        every = b.widen if any(i.is_wide for i in at) else lambda x: x

        def pivot(i: Index) -> Value:
            if f is None:
                return p.at(a, (*at, i, i), mask)
            return p.load(changed(w, f.packed), (i, i, *lane), TRUE)

        def moved(i: Index) -> Value:
            if f is None:
                row, first = p.at(node.inputs[1], (*at, i), mask), integer(0)
            else:
                found = p.load(changed(w, f.exchanges), (i, *lane), TRUE)
                row, first = b.convert("sext", found, "i64"), integer(1)
            return b.op("icmp ne", row, b.op("add", i.base, first))

        if node.op is linalg.lu_det:
            found = [product(w, n, every(literal(1, kind)), pivot, moved)]
        else:
            start = every(literal(1, kind)), every(literal(0, PARTS.get(kind, kind)))
            found = [*sign_and_log(w, n, kind, start, pivot, moved)]
            if node.op is linalg.det:
                sign, log = found
                size = rule_of(e.exp, log.kind)(b, log)
                found = [rule_of(e.multiply, kind)(b, sign, complex_or(w, size, kind))]
        for buffer, value in zip(buffers, found, strict=True):
            p.store(buffer, at, mask, value)

    def several_determined() -> batches.Several:
        own = None if given else batches.memory(w, node, a)

        def several(at: At, mask: Value) -> None:
            if own is not None:
                batches.factor(w, own, a, at, mask)
            give(at, mask, own, (batches.LANE,))

        return several

    one_determined = lambda: partial(one, None if f is None else owned(w, f))
    sizes = () if given else (n,)
    in_groups(w, kind, a.type.shape[:-2], sizes, one_determined, several_determined)
    if several:
        w.know(results, [changed(w, buffer) for buffer in buffers])
    else:
        finished(w, node, homes, buffers[0])


def complex_or(w: Writer, x: Value, kind: str) -> Value:
    """A real value in a kind, which may be complex."""
    return w.b.complex(x, literal(0, x.kind)) if kind in PARTS else x


def negated_where(w: Writer, x: Value, where: Value) -> Value:
    """The negative of a value, where a condition holds."""
    return w.b.select(where, rule_of(e.negative, x.kind)(w.b, x), x)


def product(
    w: Writer,
    n: Value,
    start: Value,
    pivot: Callable[[Index], Value],
    moved: Callable[[Index], Value],
) -> Value:
    """The product of the pivots, negative for an odd number of exchanges."""

    def step(i: Index, now: Value) -> Sequence[Value]:
        return [negated_where(w, rule_of(e.multiply, now.kind)(w.b, now, pivot(i)), moved(i))]

    return w.places.each(n, [start], step, 0)[0]


def sign_and_log(
    w: Writer,
    n: Value,
    kind: str,
    start: Sequence[Value],
    pivot: Callable[[Index], Value],
    moved: Callable[[Index], Value],
) -> Sequence[Value]:
    """The sign of the determinant, and the sum of the logarithms of the sizes of the pivots."""
    b, part = w.b, PARTS.get(kind, kind)
    log, times, plus = rule_of(e.log, part), rule_of(e.multiply, kind), rule_of(e.add, part)
    divide, size_of = rule_of(e.divide, part), rule_of(e.absolute, kind)
    none, one, minus = [literal(number, part) for number in (0, 1, -1)]

    def unit(x: Value, size: Value) -> Value:
        zero = rule_of(e.equal, part)(b, size, none)
        if kind in PARTS:
            scale = b.select(zero, one, size)
            return b.complex(*[divide(b, y, scale) for y in b.parts(x)])
        return b.select(zero, none, b.select(rule_of(e.less, part)(b, x, none), minus, one))

    def step(i: Index, sign: Value, total: Value) -> Sequence[Value]:
        x = pivot(i)
        size = size_of(b, x)
        own = times(b, sign, unit(x, size))
        return [negated_where(w, own, moved(i)), plus(b, total, log(b, size))]

    return w.places.each(n, start, step, 0)


# ---- tridiagonal systems


def solve_tridiagonal(w: Writer, node: Node, homes: Homes) -> None:
    """Elimination with row exchanges, by LAPACK, which writes over all that it is given."""
    p, (*bands, right), buffer = w.places, node.inputs, w.home(node)
    n, columns = map(w.size, node.type.shape[-2:])
    check_sizes(w, node, n, columns)
    copies = [w.new(node, TensorType(x.type.dtype, x.type.shape[-1:])) for x in bands]
    sides = w.new(node, TensorType(node.type.dtype, node.type.shape[-1:-3:-1]))
    gtsv = Call(w, "gtsv", buffer.kind)

    def one(copies: Sequence[Buffer], sides: Buffer, _: Value, index: tuple[Value, ...]) -> None:
        at, info = positions(index), gtsv.info()
        after = w.row(copies[0].pointer, TensorType(node.type.dtype, ()), integer(1))

        def copy(i: Index) -> Sequence[Value]:
            for x, own in zip(bands, copies, strict=True):
                p.store(own, (i,), TRUE, p.at(x, (*at, i)))
            return ()

        def give(i: Index, j: Index) -> None:
            p.store(buffer, (*at, i, j), TRUE, p.load(changed(w, sides), (j, i), TRUE))

        p.each(n, (), copy, 0)
        entries(w, n, columns, lambda i, j: p.store(sides, (j, i), TRUE, p.at(right, (*at, i, j))))
        given = after, copies[1].pointer, copies[2].pointer, sides.pointer, gtsv.stride(n)
        gtsv(gtsv.size(n), gtsv.size(columns), *given, info)
        w.program.failures.failed(w.b, is_set(w, info), node, SINGULAR, index)
        entries(w, n, columns, give)

    def prepared() -> batches.One:
        return partial(one, [w.own(each) for each in copies], w.own(sides))

    def solved() -> Sequence[Value]:
        batch = node.type.shape[:-2]
        each_shared(w, batch, partial(w.program.count, node.type.shape), prepared)
        return ()

    w.b.branch(w.b.op("icmp sgt", columns, integer(0)), solved)  # gtsv takes one column for none
    finished(w, node, homes, buffer)


LU = {
    linalg.lu_factor: lu_factor,
    **dict.fromkeys([linalg.solve, linalg.inv, linalg.lu_solve], solve),
    linalg.solve_tridiagonal: solve_tridiagonal,
    **dict.fromkeys([linalg.det, linalg.slogdet, linalg.lu_det, linalg.lu_slogdet], determined),
}
