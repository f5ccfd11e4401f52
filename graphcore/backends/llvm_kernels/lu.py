"""LU factors of matrices, solutions and determinants by them, and tridiagonal systems.

LAPACK factors columns, into which each matrix is copied. Its row exchanges count from 1, ours from
0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphcore.backends.numpy_backend.linalg import SINGULAR
from graphcore.ir.node import Node
from graphcore.ir.types import TensorType
from graphcore.ops import elementwise as e
from graphcore.ops import linalg
from graphcore.ops.leaf import values

from . import batches, matrices
from .arithmetic import kind_of, literal, rule_of
from .batches import each, entries, in_groups
from .builder import PARTS, TRUE, Value, integer
from .matrices import Call, check_sizes, is_set
from .results import changed, finished
from .rooms import Index, Room

if TYPE_CHECKING:
    from .writer import Homes, Writer

ROUTINES = {
    linalg.lu_factor: ("getrf",),
    linalg.det: ("getrf",),
    linalg.slogdet: ("getrf",),
    linalg.lu_solve: ("getrs",),
    linalg.solve_tridiagonal: ("gtsv",),
}
At = tuple[Index, ...]


class Factors(NamedTuple):
    """Memory for the factors of one matrix, in columns, and for its row exchanges."""

    columns: Room
    exchanges: Room
    n: Value


def memory(w: Writer, node: Node, a: Node) -> Factors:
    """Memory that a node needs until it is computed."""
    n = a.type.shape[-1]
    columns = w.new(node, TensorType(a.type.dtype, (n, n)))
    exchanges = w.new(node, TensorType(np.dtype(np.int32), (n,)))
    size = w.size(n)
    check_sizes(w, node, size)
    return Factors(columns, exchanges, size)


def positions(index: Sequence[Value]) -> At:
    """The index of a matrix of a batch."""
    return tuple(map(Index, index))


def factor(w: Writer, f: Factors, a: Node, at: At, getrf: Call) -> None:
    """Factor a matrix of a batch; a factor of 0 shows on the diagonal."""
    p = w.places
    entries(w, f.n, f.n, lambda i, j: p.store(f.columns, (j, i), TRUE, p.at(a, (*at, i, j))))
    matrices.factor(w, getrf, f.n, f.columns, f.exchanges, getrf.cell("i32", "0"))


def lu_factor(w: Writer, node: Node, homes: Homes) -> None:
    """The factors in one matrix, and with which row each was exchanged."""
    p, b, a = w.places, w.b, node.inputs[0]
    packed, exchanges = values(node)
    rooms = [w.home(packed), w.home(exchanges)]
    f, getrf = memory(w, node, a), Call(w, "getrf", kind_of(a))

    def one(number: Value, index: tuple[Value, ...]) -> None:
        at = positions(index)
        factor(w, f, a, at, getrf)

        def give(i: Index, j: Index) -> None:
            p.store(rooms[0], (*at, i, j), TRUE, p.load(changed(w, f.columns), (j, i), TRUE))

        def exchanged(i: Index) -> Sequence[Value]:
            row = b.convert("sext", p.load(changed(w, f.exchanges), (i,), TRUE), "i64")
            p.store(rooms[1], (*at, i), TRUE, b.op("sub", row, integer(1)))
            return ()

        entries(w, f.n, f.n, give)
        p.each(f.n, (), exchanged, 0)

    def prepared() -> batches.Several:
        own = batches.memory(w, node, a)

        def several(at: At, mask: Value) -> None:
            def give(i: Index, j: Index) -> None:
                value = p.load(changed(w, own.columns), (j, i, batches.LANE), TRUE)
                p.store(rooms[0], (*at, i, j), mask, value)

            def exchanged(i: Value) -> Sequence[Value]:
                found = p.load(changed(w, own.exchanges), (Index(i), batches.LANE), TRUE)
                row = b.op("sub", b.convert("sext", found, "i64"), integer(1))
                p.store(rooms[1], (*at, Index(i)), mask, row)
                return ()

            batches.factor(w, own, a, at, mask)
            entries(w, own.n, own.n, give)
            p.looped(integer(0), own.n, 1, (), exchanged)

        return several

    in_groups(w, kind_of(a), a.type.shape[:-2], [f.n], one, prepared)
    w.know([packed, exchanges], [changed(w, room) for room in rooms])


def lu_solve(w: Writer, node: Node, homes: Homes) -> None:
    """x with a x = b, or aᵀ x = b, for factored a."""
    p, b, (packed, exchanges, right) = w.places, w.b, node.inputs
    room, f, columns = w.home(node), memory(w, node, packed), w.size(node.type.shape[-1])
    check_sizes(w, node, columns)
    sides = w.new(node, TensorType(node.type.dtype, node.type.shape[-1:-3:-1]))
    getrs = Call(w, "getrs", room.kind)
    info = getrs.cell("i32", "0")

    def one(number: Value, index: tuple[Value, ...]) -> None:
        at = positions(index)

        def factors(i: Index, j: Index) -> None:
            p.store(f.columns, (j, i), TRUE, p.at(packed, (*at, i, j)))

        def regular(i: Index, now: Value) -> Sequence[Value]:
            row = b.op("add", p.at(exchanges, (*at, i)), integer(1))
            p.store(f.exchanges, (i,), TRUE, b.convert("trunc", row, "i32"))
            return [b.both(now, is_nonzero(w, p.at(packed, (*at, i, i))))]

        def solved() -> Sequence[Value]:
            entries(w, f.n, f.n, factors)
            entries(
                w, f.n, columns, lambda i, j: p.store(sides, (j, i), TRUE, p.at(right, (*at, i, j)))
            )
            ways = "T" if node.attrs["transposed"] else "N", getrs.size(f.n), getrs.size(columns)
            below = f.columns.pointer, getrs.stride(f.n), f.exchanges.pointer
            getrs(*ways, *below, sides.pointer, getrs.stride(f.n), info)
            give(lambda i, j: p.load(changed(w, sides), (j, i), TRUE))
            return ()

        def singular() -> Sequence[Value]:
            if node.attrs["check"]:
                some = b.op("icmp sgt", columns, integer(0))
                w.program.failures.failed(b, some, node, SINGULAR, index)
            give(lambda i, j: literal(float("nan"), room.kind))
            return ()

        def give(value: Callable[[Index, Index], Value]) -> None:
            entries(w, f.n, columns, lambda i, j: p.store(room, (*at, i, j), TRUE, value(i, j)))

        (sound,) = p.each(f.n, [TRUE], regular, 0)
        b.branch(sound, solved, singular)

    prepared = partial(solved_abreast, w, node, room)
    in_groups(w, room.kind, node.type.shape[:-2], (f.n, columns), one, prepared)
    finished(w, node, homes, room)


def solved_abreast(w: Writer, node: Node, room: Room) -> batches.Several:
    """The same for several matrices."""
    p, b, (packed, exchanges, right) = w.places, w.b, node.inputs
    f = batches.memory(w, node, packed)
    x = batches.sides(w, node, node.type.dtype, *node.type.shape[-2:])
    none = integer(0, "i32")

    def several(at: At, mask: Value) -> Room:
        def factors(j: Index, i: Index) -> Value:
            unit = batches.unit(w, room.kind, i, j)
            return b.select(mask, p.at(packed, (*at, i, j), mask), unit)

        def diagonal(i: Value) -> Sequence[Value]:
            at_i, info = (Index(i), batches.LANE), changed(w, f.info)
            row = b.op("add", p.at(exchanges, (*at, Index(i)), mask), integer(1))
            p.store(f.exchanges, at_i, TRUE, b.widen(b.convert("trunc", row, "i32")))
            pivot = p.load(changed(w, f.columns), (Index(i), *at_i), TRUE)
            found = p.load(info, (batches.LANE,), TRUE)
            value = b.select(is_nonzero(w, pivot), found, integer(1, "i32"))
            p.store(f.info, (batches.LANE,), TRUE, value)
            return ()

        batches.fill(w, f.columns, factors)
        batches.fill(w, x, lambda i, j: p.at(right, (*at, i, j), mask))
        p.store(f.info, (batches.LANE,), TRUE, b.widen(none))
        p.looped(integer(0), f.n, 1, (), diagonal)
        (batches.solve_transposed if node.attrs["transposed"] else batches.solve)(w, f, x)
        batches.give(w, x, room, at, mask)
        return f.info

    return several


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
    rooms = [w.home(y) for y in results]
    f = None if given else memory(w, node, a)
    getrf = None if given else Call(w, "getrf", kind)

    def one(number: Value, index: tuple[Value, ...]) -> None:
        at = positions(index)
        if f is not None and getrf is not None:
            factor(w, f, a, at, getrf)
        give(at, TRUE, f)

    def give(
        at: At, mask: Value, f: Factors | batches.Factors | None, lane: tuple[Index, ...] = ()
    ) -> None:
        every = b.widen if any(i.is_wide for i in at) else lambda x: x

        def pivot(i: Index) -> Value:
            if f is None:
                return p.at(a, (*at, i, i), mask)
            return p.load(changed(w, f.columns), (i, i, *lane), TRUE)

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
        for room, value in zip(rooms, found, strict=True):
            p.store(room, at, mask, value)

    def prepared() -> batches.Several:
        own = None if given else batches.memory(w, node, a)

        def several(at: At, mask: Value) -> None:
            if own is not None:
                batches.factor(w, own, a, at, mask)
            give(at, mask, own, (batches.LANE,))

        return several

    in_groups(w, kind, a.type.shape[:-2], () if given else (n,), one, prepared)
    if several:
        w.know(results, [changed(w, room) for room in rooms])
    else:
        finished(w, node, homes, rooms[0])


def complex_or(w: Writer, x: Value, kind: str) -> Value:
    """A real value in a kind, which may be complex."""
    return w.b.complex(x, literal(0, x.kind)) if kind in PARTS else x


def turned(w: Writer, x: Value, where: Value) -> Value:
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
        return [turned(w, rule_of(e.multiply, now.kind)(w.b, now, pivot(i)), moved(i))]

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
        return [turned(w, own, moved(i)), plus(b, total, log(b, size))]

    return w.places.each(n, start, step, 0)


# ---- tridiagonal systems


def solve_tridiagonal(w: Writer, node: Node, homes: Homes) -> None:
    """Elimination with row exchanges, by LAPACK, which writes over all that it is given."""
    p, (*bands, right), room = w.places, node.inputs, w.home(node)
    n, columns = map(w.size, node.type.shape[-2:])
    check_sizes(w, node, n, columns)
    copies = [w.new(node, TensorType(x.type.dtype, x.type.shape[-1:])) for x in bands]
    sides = w.new(node, TensorType(node.type.dtype, node.type.shape[-1:-3:-1]))
    gtsv = Call(w, "gtsv", room.kind)
    info = gtsv.cell("i32", "0")
    after = w.row(copies[0].pointer, TensorType(node.type.dtype, ()), integer(1))

    def one(number: Value, index: tuple[Value, ...]) -> None:
        at = positions(index)

        def copy(i: Index) -> Sequence[Value]:
            for x, own in zip(bands, copies, strict=True):
                p.store(own, (i,), TRUE, p.at(x, (*at, i)))
            return ()

        def give(i: Index, j: Index) -> None:
            p.store(room, (*at, i, j), TRUE, p.load(changed(w, sides), (j, i), TRUE))

        p.each(n, (), copy, 0)
        entries(w, n, columns, lambda i, j: p.store(sides, (j, i), TRUE, p.at(right, (*at, i, j))))
        given = after, copies[1].pointer, copies[2].pointer, sides.pointer, gtsv.stride(n)
        gtsv(gtsv.size(n), gtsv.size(columns), *given, info)
        w.program.failures.failed(w.b, is_set(w, info), node, SINGULAR, index)
        entries(w, n, columns, give)

    def solved() -> Sequence[Value]:
        each(w, node.type.shape[:-2], one)
        return ()

    w.b.branch(w.b.op("icmp sgt", columns, integer(0)), solved)  # gtsv takes one column for none
    finished(w, node, homes, room)


LU = {
    linalg.lu_factor: lu_factor,
    linalg.lu_solve: lu_solve,
    linalg.solve_tridiagonal: solve_tridiagonal,
    **dict.fromkeys([linalg.det, linalg.slogdet, linalg.lu_det, linalg.lu_slogdet], determined),
}
