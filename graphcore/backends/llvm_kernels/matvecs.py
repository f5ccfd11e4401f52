"""Routines for products of a matrix in memory with a vector, compiled once in a process.

Several rows are read at once. Of a product with each row, lanes run along the rows, and the totals
of all are added up as one vector; to add up rows, eight of them go to the lanes of the result in
one pass. Sums are compensated after each block, as those of `folds` are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .addressing import Buffer, Index
from .arithmetic import literal
from .builder import TRUE, Builder, Value, integer
from .elementary import compiled, module
from .folds import BLOCK, rounding
from .machine import Code, cached, levels
from .places import Body, Places

LANES = {"f64": 8, "f32": 16}
ROWS = 8
"""How many rows are read at once."""
GROUP = 4
"""How many rows are added up before they join the sum of a strip."""
FEW_HALVES = 6
"""The most halves of vectors of a row that stay in registers with the sums of their columns."""


@cached
def code(name: str, kind: str) -> Code:
    """The machine code of a routine for values of a kind."""
    return compiled(WRITTEN[name](kind), name)


def size(name: str) -> Value:
    """A size that is given to a routine."""
    return Value(f"%{name}", "i64")


def across(kind: str) -> str:
    """The IR of `across`: y = x v. A row has the same sum, however many rows there are.

    AVX2 has registers for the sums of four rows, AVX-512 for those of eight.
    """
    b, many = Builder(LANES[kind]), ROWS if levels()[0] == "x86-64-v4" else GROUP
    p, rows, columns, apart = Places(b, integer), size("rows"), size("columns"), size("apart")
    x = Buffer(Value("%x", "ptr"), (rows, apart), kind)
    v, y = Buffer(Value("%v", "ptr"), (columns,), kind), Buffer(Value("%y", "ptr"), (rows,), kind)
    several, zero = BLOCK * b.width, literal(0.0, kind)

    def sums_of_few(first: Value) -> Sequence[Value]:
        """The sums of several rows of one vector each, which begins to be read at once."""
        at, mask = Index(integer(0), integer(1)), p.left(columns, integer(0))
        rows_read = [p.load(x, (Index(b.add(first, integer(k))), at), mask) for k in range(many)]
        right, none = p.load(v, (at,), mask), b.widen(zero)
        total = in_lanes(b, [b.call("fma", row, right, none) for row in rows_read])
        with b.side_by_side(many):
            p.store(y, (Index(first, integer(1)),), TRUE, b.op("fadd", b.widen(zero), total))
        return ()

    def group(many: int, first: Value) -> Sequence[Value]:
        places = [Index(b.add(first, integer(k))) for k in range(many)]

        def block(j: Value, total: Value, lost: Value) -> Sequence[Value]:
            def term(at: Index, mask: Value, *sums: Value) -> Sequence[Value]:
                right = p.load(v, (at,), mask)
                pairs = zip(places, sums, strict=True)
                return [b.call("fma", p.load(x, (i, at), mask), right, sum) for i, sum in pairs]

            end = b.call("smin", b.add(j, integer(several)), columns)
            sums = whole_first(p, j, end, [b.widen(zero)] * many, term, several)
            return joined(b, total, lost, in_lanes(b, sums))

        none = b.widen(zero, many) if many > 1 else zero
        total, _ = p.looped(integer(0), columns, several, (none, none), block)
        with b.side_by_side(many):
            p.store(y, (Index(first, integer(many > 1)),), TRUE, total)
        return ()

    def together(compute: Callable[[Value], Sequence[Value]]) -> Sequence[Value]:
        """Those of the last group that come before it are computed again."""
        last = b.sub(rows, integer(many))
        p.looped(integer(0), rows, many, (), lambda i: compute(b.call("smin", i, last)))
        return ()

    def several_rows() -> Sequence[Value]:
        ways = [partial(together, each) for each in (sums_of_few, partial(group, many))]
        b.branch(b.op("icmp sle", columns, integer(b.width)), *ways)
        return ()

    def alone() -> Sequence[Value]:
        p.looped(integer(0), rows, 1, (), partial(group, 1))
        return ()

    b.branch(b.op("icmp sge", rows, integer(many)), several_rows, alone)
    b.do("ret void")
    return module(f"define void @across({READ} %x, {READ} %v, {WRITTEN_TO} %y, {SIZES})", b)


def down(kind: str) -> str:
    """The IR of `down`: part = xᵀ u, or is added to that if it has `begun`.

    It has a whole number of vectors.
    """
    b = Builder(LANES[kind])
    p, rows, columns, apart = Places(b, integer), size("rows"), size("columns"), size("apart")
    x = Buffer(Value("%x", "ptr"), (rows, apart), kind)
    u, part = Buffer(Value("%u", "ptr"), (rows,), kind), sums_of(b, "part", kind)
    zero = b.widen(literal(0.0, kind))

    def add(first: Value) -> Sequence[Value]:
        places = [Index(b.add(first, integer(k))) for k in range(ROWS)]
        factors = [b.widen(p.load(u, (i,), TRUE)) for i in places]

        def columns_of(j: Index, mask: Value) -> Sequence[Value]:
            total = p.load(part, (j,), TRUE)
            for some in range(0, ROWS, GROUP):
                sum = zero
                for k in range(some, some + GROUP):
                    sum = b.call("fma", p.load(x, (places[k], j), mask), factors[k], sum)
                total = b.op("fadd", total, sum)
            return stored(p, part, j, total)

        whole_first(p, integer(0), columns, (), columns_of)
        return ()

    def add_rest(first: Value) -> Sequence[Value]:
        stop = b.call("smin", b.add(first, integer(GROUP)), rows)

        def columns_of(j: Index, mask: Value) -> Sequence[Value]:
            def row(i: Value, sum: Value) -> Sequence[Value]:
                at = Index(i)
                return [b.call("fma", p.load(x, (at, j), mask), p.load(u, (at,), TRUE), sum)]

            (sum,) = p.looped(first, stop, 1, [zero], row)
            return stored(p, part, j, b.op("fadd", p.load(part, (j,), TRUE), sum))

        p.lanes(columns, (), columns_of)
        return ()

    b.branch(
        Value("%begun", "i1"),
        lambda: (),
        lambda: p.lanes(columns, (), lambda j, mask: stored(p, part, j, zero)),
    )
    whole = b.op("and", rows, integer(-ROWS))
    p.looped(integer(0), whole, ROWS, (), add)
    p.looped(whole, rows, GROUP, (), add_rest)
    b.do("ret void")
    given = f"{READ} %x, {READ} %u, {WRITTEN_TO} %part, {SIZES}, i1 %begun"
    return module(f"define void @down({given})", b)


def join(kind: str) -> str:
    """The IR of `join`: y becomes `part`, or their sum where it has `begun`.

    `lost` is what rounding has added to y.
    """
    b = Builder(LANES[kind])
    p, columns = Places(b, integer), size("columns")
    part, lost = [sums_of(b, name, kind) for name in ("part", "lost")]
    y, zero = Buffer(Value("%y", "ptr"), (columns,), kind), b.widen(literal(0.0, kind))

    def first(j: Index, mask: Value) -> Sequence[Value]:
        stored(p, lost, j, zero)
        p.store(y, (j,), mask, p.load(part, (j,), TRUE))
        return ()

    def later(j: Index, mask: Value) -> Sequence[Value]:
        before, sum = p.load(y, (j,), mask), p.load(part, (j,), TRUE)
        total, left = joined(b, before, p.load(lost, (j,), TRUE), sum)
        stored(p, lost, j, left)
        p.store(y, (j,), mask, total)
        return ()

    b.branch(
        Value("%begun", "i1"),
        lambda: p.lanes(columns, (), later),
        lambda: p.lanes(columns, (), first),
    )
    b.do("ret void")
    given = f"{READ} %part, {WRITTEN_TO} %lost, {WRITTEN_TO} %y, i64 %columns, i1 %begun"
    return module(f"define void @join({given})", b)


def twice(kind: str) -> str:
    """The IR of `twice`: y = x v and part = xᵀ y, as `across` and `down` compute them.

    A row has so few vectors that it stays in registers, with the sums of the columns.
    """
    b = Builder(LANES[kind])
    p, rows, columns, apart = Places(b, integer), size("rows"), size("columns"), size("apart")
    x = Buffer(Value("%x", "ptr"), (rows, apart), kind)
    v, y = Buffer(Value("%v", "ptr"), (columns,), kind), Buffer(Value("%y", "ptr"), (rows,), kind)
    part, zero, short = sums_of(b, "part", kind), literal(0.0, kind), b.width // 2

    def by(halves: int) -> Sequence[Value]:
        """The routine for rows of so many halves of vectors."""
        firsts = range(0, halves * short, b.width)
        widths = [min(b.width, halves * short - first) for first in firsts]

        def each_vector(do: Callable[[Index, Value], Value]) -> list[Value]:
            found = []
            for first, width in zip(firsts, widths, strict=True):
                with b.side_by_side(width):
                    mask = p.left(columns, integer(first)) if first == firsts[-1] else TRUE
                    found.append(do(Index(integer(first), integer(1)), mask))
            return found

        factors = each_vector(lambda j, mask: p.load(v, (j,), mask))
        none = [b.widen(zero, width) for width in widths]

        def row(i: Value, *sums: Value) -> Sequence[Value]:
            values = each_vector(lambda j, mask: p.load(x, (Index(i), j), mask))
            total = none[0]
            for value, factor in zip(values, factors, strict=True):
                if value.wide == total.wide:
                    total = b.call("fma", value, factor, total)
                else:
                    low, high = [b.shuffle(total, range(k, k + short)) for k in (0, short)]
                    total = b.op("fadd", b.call("fma", value, factor, low), high)
            found = in_lanes(b, [total])
            p.store(y, (Index(i),), TRUE, found)
            several = zip(values, sums, strict=True)
            return [b.call("fma", value, found, sum) for value, sum in several]

        def group(first: Value, *sums: Value) -> Sequence[Value]:
            stop = b.call("smin", b.add(first, integer(GROUP)), rows)
            more = p.looped(first, stop, 1, none, row)
            return [b.op("fadd", *both) for both in zip(sums, more, strict=True)]

        found = p.looped(integer(0), rows, GROUP, none, group)
        for first, sum in zip(firsts, found, strict=True):
            with b.side_by_side(sum.wide):
                p.store(part, (Index(integer(first), integer(1)),), TRUE, sum)
        return ()

    last = b.sub(b.call("smax", columns, integer(1)), integer(1))
    b.choose(b.op("sdiv", last, integer(short)), *[partial(by, n + 1) for n in range(FEW_HALVES)])
    b.do("ret void")
    given = f"{READ} %x, {READ} %v, {WRITTEN_TO} %y, {WRITTEN_TO} %part, {SIZES}"
    return module(f"define void @twice({given})", b)


WRITTEN = {"across": across, "down": down, "join": join, "twice": twice}
READ, WRITTEN_TO = "ptr noalias readonly", "ptr noalias"
SIZES = "i64 %rows, i64 %columns, i64 %apart"


def whole_first(
    p: Places,
    start: Value,
    stop: Value,
    carried: Sequence[Value],
    body: Body,
    most: int | None = None,
) -> Sequence[Value]:
    """body(index, mask, *carried) for whole vectors of places, then for the rest under a mask."""
    b, side_by_side = p.b, integer(1)
    end = b.add(start, b.op("and", b.sub(stop, start), integer(-b.width)))
    whole: Body = lambda i, *now: body(Index(i, side_by_side), TRUE, *now)
    rest: Body = lambda i, *now: body(Index(i, side_by_side), p.left(stop, i), *now)
    carried = p.looped(start, end, b.width, carried, whole, most)
    return p.looped(end, stop, b.width, carried, rest, b.width)


def sums_of(b: Builder, name: str, kind: str) -> Buffer:
    """Sums of columns, in a whole number of vectors: of no columns `twice` stores one."""
    most = b.op("add", b.call("smax", size("columns"), integer(1)), integer(b.width - 1))
    return Buffer(Value(f"%{name}", "ptr"), (b.op("and", most, integer(-b.width)),), kind)


def stored(p: Places, buffer: Buffer, i: Index, x: Value) -> Sequence[Value]:
    """Put lanes into a whole number of vectors."""
    p.store(buffer, (i,), TRUE, x)
    return ()


def joined(b: Builder, total: Value, lost: Value, sum: Value) -> Sequence[Value]:
    """A total with another sum, and what rounding has added to it."""
    right = b.op("fsub", sum, lost)
    new = b.op("fadd", total, right)
    return [new, rounding(b, total, right, new)]


def in_lanes(b: Builder, sums: Sequence[Value]) -> Value:
    """The totals of some vectors, each in a lane; of a single one a number.

    The halves of the lanes of a vector are added again and again, as `across` of folds does.
    """
    found, lanes = [*sums], sums[0].wide
    while lanes > 1:
        lanes //= 2
        pairs = zip(found[::2], found[1::2], strict=True) if len(found) > 1 else [(found[0], None)]
        found = [halves_added(b, lanes, *pair) for pair in pairs]
    return found[0] if len(sums) > 1 else b.lane(found[0], 0)


def halves_added(b: Builder, lanes: int, x: Value, y: Value | None) -> Value:
    """Vectors in which so many lanes have been added to those before them, and lie together."""
    places = range(x.wide if y is None else 2 * x.wide)
    low, high = [[k for k in places if k // lanes % 2 == side] for side in (0, 1)]
    return b.op("fadd", b.shuffle(x, low, y), b.shuffle(x, high, y))
