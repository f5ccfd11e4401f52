"""The exponential of matrices: a Taylor series of the matrix made small, and squares of that.

The routine is compiled once in a process, for matrices of all sizes. Kernels call it for each
matrix of a batch: small ones would spend more on the calls of BLAS than on their products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from graphcore.ir.node import Node
from graphcore.ir.types import TensorType
from graphcore.ops import linalg

from . import capsules
from .arithmetic import cast, literal
from .batches import each
from .builder import TRUE, WIDTH, Builder, Value, integer
from .entrance import Address
from .folds import across
from .functions import compiled, module
from .machine import Code, once
from .matrices import CALL, check_sizes, side_by_side
from .places import Places
from .results import changed, finished
from .rooms import Index, Room

if TYPE_CHECKING:
    from .writer import Homes, Writer

POWERS, BLOCKS = 5, 4
"""The number of powers that the series is made of, and of its parts: its degree is 20."""
COEFFICIENTS = [1 / factorial(k) for k in range(POWERS * BLOCKS + 1)]
LIMIT = 1.4384
"""How large a matrix may be for the error of the series to be below half a unit in the last place:
it is the exponential of another matrix, which differs by so little (Higham 2005, Al-Mohy 2011)."""
HALVES = 1100
"""How often a matrix is halved at most: one that is infinite stays so."""
ROOMS = POWERS + 2
"""How many matrices the routine works in; the first is given to it."""
ROWS = 8
"""How many rows of a product are computed at once."""
SMALL = 64
"""From which size on a product is left to BLAS."""


def expm(w: Writer, node: Node, homes: Homes) -> None:
    """The exponential of each matrix, computed in float64."""
    p, b, (a,), room = w.places, w.b, node.inputs, w.home(node)
    n = w.size(node.type.shape[-1])
    check_sizes(w, node, n)
    shape = node.type.shape[-2:]
    memory = w.new(node, TensorType(np.dtype(np.float64), (ROOMS, *shape)))
    given = w.room(TensorType(np.dtype(np.float64), shape), memory.pointer)
    routine = w.program.shared("expm", Address(code()["expm"]))

    def one(at: Value, index: tuple[Value, ...]) -> None:
        batch = tuple(map(Index, index))

        def take(i: Index, j: Index, mask: Value) -> None:
            p.store(given, (i, j), mask, cast(b, p.at(a, (*batch, i, j), mask), "f64"))

        side_by_side(w, n, n, take)
        found = b.now("ptr", f"call ptr {routine.text}({n.typed}, {given.pointer.typed})")
        b.signals.work += CALL
        result = changed(w, given._replace(pointer=found))

        def give(i: Index, j: Index, mask: Value) -> None:
            value = cast(b, p.load(result, (i, j), mask), room.kind)
            p.store(room, (*batch, i, j), mask, value)

        side_by_side(w, n, n, give)

    with b.side_by_side(WIDTH):
        each(w, node.type.shape[:-2], one)
    finished(w, node, homes, room)


@once
def code() -> Code:
    """The machine code of the routine."""
    gemm = capsules.address("gemm", "f64")
    assert gemm is not None, "there is no gemm"
    times = compiled(product(), "product", needed={"gemm": gemm})
    found = compiled(exponential(), "expm", needed={"product": times["product"]})
    found.calls = [times]
    return found


# ---- the product of two matrices


def product() -> str:
    """The IR of `product`: z = x y."""
    b = Builder()
    p, n = Places(b, integer), Value("%n", "i64")
    x, y, z = [Room(Value(f"%{name}", "ptr"), (n, n), "f64") for name in "xyz"]
    last, zero = b.sub(n, integer(1)), b.widen(literal(0.0, "f64"))

    def rows(first: Value) -> Sequence[Value]:
        """Some rows are computed twice where their number is no multiple of `ROWS`."""
        several = [Index(b.call("smin", b.add(first, integer(k)), last)) for k in range(ROWS)]

        def columns(j: Index, mask: Value) -> Sequence[Value]:
            def term(k: Index, *sums: Value) -> Sequence[Value]:
                right = p.load(y, (k, j), mask)
                pairs = zip(several, sums, strict=True)
                return [b.call("fma", p.load(x, (i, k), TRUE), right, total) for i, total in pairs]

            for i, total in zip(several, p.each(n, [zero] * ROWS, term, 0), strict=True):
                p.store(z, (i, j), mask, total)
            return ()

        p.lanes(n, (), columns)
        return ()

    def by_rows() -> Sequence[Value]:
        p.looped(integer(0), n, ROWS, (), rows)
        return ()

    def by_blas() -> Sequence[Value]:
        """BLAS reads columns first: zᵀ = yᵀ xᵀ."""
        size = cell(b, "i32", b.convert("trunc", n, "i32").text)
        way = cell(b, "i8", str(ord("N")))
        one, none = [cell(b, "double", literal(v, "f64").text) for v in (1.0, 0.0)]
        ends = f"ptr {one}, ptr %y, ptr {size}, ptr %x, ptr {size}, ptr {none}, ptr %z, ptr {size}"
        b.do(f"call void @gemm({', '.join([f'ptr {way}'] * 2 + [f'ptr {size}'] * 3)}, {ends})")
        return ()

    b.declared["gemm"] = f"declare void @gemm({', '.join(['ptr'] * 13)})"
    b.branch(b.op("icmp sgt", n, integer(SMALL)), by_blas, by_rows)
    b.do("ret void")
    given = "ptr noalias readonly %x, ptr noalias readonly %y, ptr noalias %z"
    return module(f"define void @product(i64 %n, {given})", b)


def cell(b: Builder, type: str, text: str) -> str:
    """A place on the stack that holds a value."""
    name = f"%{b.name('cell')}"
    b.lines[0].insert(0, f"  {name} = alloca {type}")
    b.do(f"store {type} {text}, ptr {name}")
    return name


# ---- the exponential of one matrix


def exponential() -> str:
    """The IR of `expm`: it is given a matrix at the start of memory for `ROOMS` of them.

    It returns where in this memory the exponential is.
    """
    s = Series()
    b, powers = s.b, s.rooms[:POWERS]
    for k in range(1, POWERS):
        half = k // 2
        s.times(powers[half], powers[k - 1 - half], powers[k])
    halved, scale = s.halves()
    factor = scale
    for power in powers:
        s.everywhere(power, partial(b.op, "fmul", factor))
        factor = b.op("fmul", factor, scale)
    total, other = s.rooms[POWERS:]
    s.part(total, None, POWERS * (BLOCKS - 1), POWERS)
    for block in reversed(range(BLOCKS - 1)):
        s.times(total, powers[-1], other)
        s.part(other, other, POWERS * block, POWERS - 1)
        total, other = other, total
    triangular, one = s.is_triangular(), literal(1.0, "f64")
    s.settle_diagonal(triangular, total, one)

    def square(i: Value, now: Value, spare: Value, size: Value) -> Sequence[Value]:
        s.times(total._replace(pointer=now), total._replace(pointer=now),
                total._replace(pointer=spare))  # fmt: skip
        twice = b.op("fadd", size, size)
        s.settle_diagonal(triangular, total._replace(pointer=spare), twice)
        return [spare, now, twice]

    start = [total.pointer, other.pointer, one]
    found, *_ = s.p.looped(integer(0), halved, 1, start, square)
    b.do(f"ret {found.typed}")
    return module("define ptr @expm(i64 %n, ptr noalias %memory)", b)


class Series:
    """The steps of the routine, on whole matrices, each in one of its `rooms`."""

    def __init__(self) -> None:
        self.b = b = Builder()
        self.p, self.n = Places(b, integer), Value("%n", "i64")
        self.count = b.mul(self.n, self.n)
        self.rooms = [self.room(k) for k in range(ROOMS)]
        b.declared["product"] = "declare void @product(i64, ptr, ptr, ptr)"

    def room(self, k: int) -> Room:
        """Memory for a matrix."""
        at = self.b.mul(self.count, integer(k))
        text = f"getelementptr double, ptr %memory, {at.typed}"
        return Room(self.b.emit("ptr", 0, text, at), (self.n, self.n), "f64")

    def now(self, room: Room) -> Room:
        """The room after a write: values that were read from it before are read again."""
        self.b.names += 1
        return room._replace(level=self.b.level, version=self.b.names)

    def times(self, x: Room, y: Room, z: Room) -> None:
        """z = x y"""
        given = ", ".join([each.pointer.typed for each in (x, y, z)])
        self.b.do(f"call void @product(i64 %n, {given})")

    def everywhere(self, room: Room, value: Callable[[Value], Value], *more: Room) -> None:
        """room = value(room, *more), entry by entry."""
        p, flat = self.p, [x._replace(shape=(self.count,)) for x in (room, *more)]

        def several(i: Index, mask: Value) -> Sequence[Value]:
            found = value(*[p.load(self.now(x), (i,), mask) for x in flat])
            p.store(flat[0], (i,), mask, found)
            return ()

        p.lanes(self.count, (), several)

    def part(self, room: Room, start: Room | None, first: int, last: int) -> None:
        """room = start + the terms of the series from `first` on, divided by that power."""
        b, p = self.b, self.p
        powers = [*zip(COEFFICIENTS[first + 1 :], self.rooms[:last], strict=False)]

        def sum_of(_: Value, *xs: Value) -> Value:
            found = None if start is None else xs[0]
            for (c, _power), x in reversed([*zip(powers, xs[len(xs) - last :], strict=True)]):
                term = literal(c, "f64")
                found = b.op("fmul", x, term) if found is None else b.call("fma", x, term, found)
            assert found is not None
            return found

        self.everywhere(room, sum_of, *([] if start is None else [start]), *[x for _, x in powers])

        def one(i: Index) -> Sequence[Value]:
            value = p.load(self.now(room), (i, i), TRUE)
            p.store(room, (i, i), TRUE, b.op("fadd", value, literal(COEFFICIENTS[first], "f64")))
            return ()

        p.each(self.n, (), one, 0)

    def largest_column(self, room: Room) -> Value:
        """The norm of a matrix: the largest sum of the sizes of a column."""
        b, p, zero = self.b, self.p, self.b.widen(literal(0.0, "f64"))
        room = self.now(room)

        def columns(j: Index, mask: Value, most: Value) -> Sequence[Value]:
            def row(i: Index, total: Value) -> Sequence[Value]:
                return [b.op("fadd", total, b.call("fabs", p.load(room, (i, j), mask)))]

            return [b.call("maxnum", most, p.each(self.n, [zero], row, 0)[0])]

        (found,) = p.lanes(self.n, [zero], columns)
        return across(b, lambda x, y: b.call("maxnum", x, y), found)

    def halves(self) -> tuple[Value, Value]:
        """How often the matrix is halved, and the factor that does it.

        The largest root of the norms of its highest powers says how large it is: the norm itself
        may be much larger, and squares that are not needed cost accuracy (Al-Mohy, Higham 2009).
        """
        b = self.b
        norms = [self.largest_column(room) for room in self.rooms[POWERS - 2 : POWERS]]
        orders = POWERS - 1, POWERS

        def too_large(count: Value, scale: Value, *norms: Value) -> Value:
            above = [
                b.op("fcmp ogt", norm, literal(LIMIT**k, "f64"))
                for k, norm in zip(orders, norms, strict=True)
            ]
            return b.op("and", b.op("or", *above), b.op("icmp slt", count, integer(HALVES)))

        def halve(count: Value, scale: Value, *norms: Value) -> Sequence[Value]:
            smaller = [
                b.op("fmul", norm, literal(0.5**k, "f64"))
                for k, norm in zip(orders, norms, strict=True)
            ]
            half = b.op("fmul", scale, literal(0.5, "f64"))
            return [b.add(count, integer(1)), half, *smaller]

        count, scale, *_ = b.repeat([integer(0), literal(1.0, "f64"), *norms], too_large, halve)
        return count, scale

    def is_triangular(self) -> Value:
        """Whether all entries below the diagonal, or all above it, are 0."""
        b, p, zero = self.b, self.p, literal(0.0, "f64")
        given = self.now(self.rooms[0])
        wide = b.widen(zero)

        def row(i: Index, below: Value, above: Value) -> Sequence[Value]:
            def columns(j: Index, mask: Value, below: Value, above: Value) -> Sequence[Value]:
                size = b.call("fabs", p.load(given, (i, j), mask))
                left, right = [b.op(f"icmp {how}", p.spelled(j), i.base) for how in ("slt", "sgt")]
                sums = []
                for total, side in ((below, left), (above, right)):
                    sums.append(b.op("fadd", total, b.select(side, size, wide)))
                return sums

            return p.lanes(self.n, [below, above], columns)

        sums = p.each(self.n, [wide, wide], row, 0)
        add = lambda x, y: b.op("fadd", x, y)
        return b.op("or", *[b.op("fcmp oeq", across(b, add, x), zero) for x in sums])

    def settle_diagonal(self, triangular: Value, room: Room, times: Value) -> None:
        """Put the exponentials of a triangular matrix's diagonal, so many `times`, into a room."""
        b, p = self.b, self.p
        given = self.rooms[0]

        def settle() -> Sequence[Value]:
            def several(i: Index, mask: Value) -> Sequence[Value]:
                value = b.op("fmul", p.load(self.now(given), (i, i), mask), times)
                p.store(room, (i, i), mask, b.function("exp", value))
                return ()

            p.lanes(self.n, (), several)
            return ()

        b.branch(triangular, settle)


EXPONENTIALS = {linalg.expm: expm}
ROUTINES = {linalg.expm: ("gemm",)}
"""The routine of BLAS that the op calls for large matrices."""
KINDS = ("f64", "f32")
"""The kinds of values that the op has machine code for."""
