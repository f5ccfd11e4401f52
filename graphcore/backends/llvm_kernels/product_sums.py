"""How routines add up the products of two matrices: in blocks of the inner axis, one by one.

Sums of a block are those of groups of `GROUP` products. The sums of `SUMS` blocks are added up in
memory before they join the result, and for a long inner axis what rounding adds to this is taken
from the next ones. So the bits do not depend on tiles, copies or threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from graphcore.backends.rounding import ADDITIONS, GROUP

from .addressing import Buffer, Index
from .arithmetic import literal
from .builder import TRUE, WIDTH, Builder, Value, integer
from .folds import rounding
from .places import Places
from .squares import transposed

LANES = {"x86-64-v4": {"f64": 8, "f32": 16}, "x86-64-v3": {"f64": 4, "f32": 8}}
"""How many values one register holds, by the level of x86-64."""
INNER = 256
"""How much of the inner axis is walked before a sum goes to memory: a strip fits the cache L1."""
SUMS = 12
"""How many sums of such blocks are added up before their sum joins the result."""
CHUNK = INNER * SUMS
"""How much of the inner axis is walked before a sum joins the result."""
LONGEST_INNER = INNER * SUMS * (ADDITIONS - GROUP - INNER // GROUP - SUMS)
"""How long an inner axis may be without looking at what rounding adds to the result."""
IN_CACHE = 2**15
"""So many values of a matrix stay in the cache L2."""

POINTERS = "x", "y", "z", "part", "scratch"
ARGUMENTS = "rows", "inner", "columns", "down", "right", "below", "beside", "apart", "whole"
"""What the routines are given: see `ProductSums`."""
Place: TypeAlias = tuple[tuple[Index, ...], Value]
"""Where a vector of the result lies, and which of its lanes are there."""
PAGE_BY_PAGE = '"probe-stack"="inline-asm"'
"""How the stack is taken: a full one ends at the page that guards it, and not behind that."""


class Joins(NamedTuple):
    """What the sums of a block join.

    Attributes
    ----------
    begins, ends
        Whether they are the first, or the last, of `SUMS` that are added up.
    later
        Whether those of other blocks have joined the result before.
    """

    begins: Value
    ends: Value
    later: Value


class ProductSums:
    """What routines of products of matrices share: their arguments, blocks, and what these join.

    z = x y, where rows of z lie `apart`. The strides of x are `down`, from row to row, and `right`,
    from column to column; those of y are `below` and `beside`. One of each two is 1. If `upper`
    holds, values below the diagonal of z need not be computed. Sums of several blocks of the inner
    axis lie in `part`, and behind it what rounding has added to z, if this axis is longer than
    LONGEST_INNER: two matrices as the whole of z. `scratch` is memory for copies; nobody else
    writes there.

    The routine `remove` computes z - x y instead: the product of each block of the inner axis is
    subtracted by itself, so that it uses no `part`.
    """

    def __init__(self, kind: str, level: str, name: str) -> None:
        self.b, self.name = (b := Builder(LANES[level][kind])), name
        self.removes = name == "remove"
        self.sizes = [Value(f"%{name}", "i64") for name in ARGUMENTS]
        self.rows, self.inner, self.columns, *strides = self.sizes
        self.down, self.right, self.below, self.beside, self.apart, self.whole = strides
        self.p, self.kind = Places(b, integer), kind
        self.x = self.given("x", (self.rows, self.down), (self.inner, self.right))
        self.y = self.given("y", (self.inner, self.below), (self.columns, self.beside))
        self.z = Buffer(Value("%z", "ptr"), (self.rows, self.apart), kind)
        self.part = self.z._replace(pointer=Value("%part", "ptr"))
        self.upper = Value("%upper", "i1")

    def given(self, name: str, *axes: tuple[Value, Value]) -> Buffer:
        """A matrix as it lies: the size of each axis, and how far apart its places are."""
        b, count = self.b, integer(1)
        for size, apart in axes:
            count = b.add(count, b.mul(b.sub(size, integer(1)), apart))
        return Buffer(Value(f"%{name}", "ptr"), (count,), self.kind)

    def head(self, name: str) -> str:
        """The first line of the function."""
        operands = "ptr noalias readonly %x, ptr noalias readonly %y"
        given = f"{operands}, ptr noalias %z, ptr %part, ptr %scratch"
        sizes = ", ".join([size.typed for size in self.sizes])
        return f"define void @{name}({given}, {sizes}, i1 %upper) {PAGE_BY_PAGE}"

    def walk(self, step: Value, block: Callable[[Value, Value], object]) -> Sequence[Value]:
        """block(first, many) for blocks of the inner axis, each of so many places.

        Without an inner axis there is a block of nothing, which clears the result.
        """
        b = self.b
        end = b.call("smax", self.inner, integer(1))
        self.is_long = b.op("icmp sgt", self.whole, integer(LONGEST_INNER))
        self.added = self.p.moved(self.part, b.mul(self.rows, self.apart), self.part.shape)
        return self.in_blocks(end, step, block)

    def in_blocks(
        self, stop: Value, most: Value, body: Callable[[Value, Value], object]
    ) -> Sequence[Value]:
        """body(first, many) for blocks of an axis of `stop` places, each of `most` or fewer."""
        b = self.b

        def one(number: Value) -> Sequence[Value]:
            first = b.mul(number, most)
            body(first, b.call("smin", b.sub(stop, first), most))
            return ()

        blocks = b.op("udiv", b.add(stop, b.sub(most, integer(1))), most)
        return self.p.looped(integer(0), blocks, 1, (), one)

    def joins(self, k: Value, many: Value, step: Value) -> Joins:
        """What the sums of a block of the inner axis join, which has `step` places or fewer."""
        b = self.b
        number = b.op("udiv", k, step)
        place = b.op("urem", number, integer(SUMS))
        begins = b.op("icmp eq", place, integer(0))
        is_last = b.op("icmp sge", b.add(k, many), self.inner)
        ends = b.op("or", b.op("icmp eq", place, integer(SUMS - 1)), is_last)
        return Joins(begins, ends, b.op("icmp sge", number, integer(SUMS)))

    def add(self, joins: Joins, every: Sequence[Place], found: Sequence[Value]) -> Sequence[Value]:
        """Add sums of a block to those before, at places of the result with their masks."""
        b, p = self.b, self.p
        zeros = [b.widen(literal(0.0, self.kind))] * len(found)

        def get(buffer: Buffer) -> list[Value]:
            now = buffer._replace(level=b.level, version=b.names)
            return [p.load(now, at, mask) for at, mask in every]

        def put(buffer: Buffer, values: Sequence[Value]) -> Sequence[Value]:
            with p.stores.together():
                for (at, mask), value in zip(every, values, strict=True):
                    p.store(buffer, at, mask, value)
            return ()

        def join(values: Sequence[Value]) -> Sequence[Value]:
            return b.branch(joins.later, lambda: self.sums(get(self.z), values), lambda: values)

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
        sums = b.branch(joins.begins, lambda: found, lambda: self.sums(get(self.part), found))
        long = partial(b.branch, joins.later, lambda: join_exactly(sums), clear)
        end = partial(b.branch, self.is_long, long, lambda: put(self.z, join(sums)))
        b.branch(joins.ends, end, lambda: put(self.part, sums))
        return ()

    def sums(self, one: Sequence[Value], other: Sequence[Value]) -> list[Value]:
        """The sums of values of a tile."""
        return [self.b.op("fadd", *pair) for pair in zip(one, other, strict=True)]

    def sums_of(self, joins: Joins) -> Buffer:
        """Where the sums of a block go."""
        is_result = TRUE if self.removes else self.b.both(joins.begins, joins.ends)
        pointer = self.b.select(is_result, self.z.pointer, self.part.pointer)
        return self.z._replace(pointer=pointer)

    def fetch(self, buffer: Buffer, place: Value, vectors: int, how: str) -> None:
        """Have so many vectors that begin with a place brought near."""
        for n in range(vectors):
            self.p.prefetch(buffer, self.b.add(place, integer(n * self.b.width)), how)

    def copy_columns(
        self, y: Buffer, beside: Value, many: Value, width: Value, into: Buffer, until: Value
    ) -> Sequence[Value]:
        """Copy columns whose values lie side by side to rows, several of them at once.

        Up to whole vectors the last one is copied again; rows behind the last are not read, and
        `until` some place become zeros.
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

            return p.looped(integer(0), until, side, (), square)

        vectors = b.op("and", b.add(last, integer(b.width)), integer(-b.width))
        stop = b.call("smin", vectors, into.shape[1])
        with b.side_by_side(side):
            return p.looped(integer(0), stop, side, (), columns)
