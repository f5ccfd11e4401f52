"""Routines for LU factors of larger matrices: blocks of rows, one after the other.

A matrix a lies row by row, and its columns are exchanged: a p = l u, where l is lower, u has 1 on
its diagonal, and p is the exchanges. Those of a column count from 1, from the first of all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.ops import elementwise as e

from . import removal
from .addressing import Buffer, Index, index_of, moved
from .arithmetic import literal
from .blocked import call, halves
from .builder import FALSE, PARTS, Builder, Value, integer
from .elementary import compiled, module
from .folds import across
from .machine import Code, cached
from .small_matrices import Text

ROWS = 8
"""The most rows that are factored one after the other."""
SOLVED = 16
"""The most columns, of floats, whose triangle is solved element by element."""
TOGETHER = 2
"""How many rows are solved at the same time."""


@cached
def code(name: str, kind: str) -> Code:
    """The machine code of a routine for values of a kind."""
    return compiled(WRITTEN[name](kind), name)


def lu(kind: str) -> str:
    """The IR of `lu`, which calls itself: some rows become those of l and u.

    They are the rows from `first` on, `a` is where the first of them begins, and n is how many
    columns there are. `info` becomes the number of the first pivot that is 0.
    """
    b = Builder()
    first, rows, n = sizes = [Value(f"%{name}", "i64") for name in ("first", "rows", "n")]
    names = "a", "exchanges", "scratch", "info"
    a, exchanges, scratch, info = pointers = [Value(f"%{name}", "ptr") for name in names]

    def at_once() -> Sequence[Value]:
        call(b, code("lu_rows", kind)["lu_rows"], a, exchanges, info, rows, first, n)
        return ()

    def by_halves() -> Sequence[Value]:
        size, rest = halves(b, rows)
        below, after = moved(b, a, b.mul(size, n), kind), b.add(first, size)
        call(b, "@lu", a, exchanges, scratch, info, first, size, n)
        routine = code("eliminate", kind)["eliminate"]
        call(b, routine, below, a, exchanges, scratch, rest, first, size, n)
        call(b, "@lu", below, exchanges, scratch, info, after, rest, n)
        call(b, code("exchange", kind)["exchange"], a, exchanges, size, after, rest, n)
        return ()

    b.branch(b.op("icmp sle", rows, integer(ROWS)), at_once, by_halves)
    b.do("ret void")
    given = ", ".join([value.typed for value in (*pointers, *sizes)])
    return module(f"define void @lu({given})", b)


def lu_rows(kind: str) -> str:
    """The same for few rows, one after the other: from each those before it are taken."""
    text = Text(kind)
    b, p, rows, first, n = text.b, text.p, text.n, Value("%first", "i64"), Value("%columns", "i64")
    a, part, one = text.buffer("a", kind, rows, n), PARTS.get(kind, kind), integer(1)
    exchanges = text.buffer("exchanges", "i32", n)
    lowest = literal(-1.0, part)

    def along(
        start: Value, carried: Sequence[Value], body: Callable[..., Sequence[Value]]
    ) -> Sequence[Value]:
        """body(column, mask, *carried) over columns from `start` on."""

        def rest(i: Value, *now: Value) -> Sequence[Value]:
            return body(Index(i, one), p.left(n, i), *now)

        return p.whole_first(start, n, carried, body, rest)

    def row(i: Index) -> None:
        k = b.add(first, i.base)
        at = Index(k)

        def factors(j: Index) -> None:
            """Take from an element of l what those before it contribute."""

            def term(m: Index, total: Value) -> Sequence[Value]:
                column = Index(b.add(first, m.base))
                return [text.less(total, text.load(a, i, column), text.load(a, m, own))]

            own = Index(b.add(first, j.base))
            (total,) = p.each(j.base, [text.load(a, i, own)], term, 0)
            text.store(a, i, own, value=total)

        def larger(x: Sequence[Value], y: Sequence[Value]) -> Sequence[Value]:
            """The larger of two sizes and its column: of equal ones that which comes first."""
            (most, place), (size, at) = x, y
            same = b.both(b.op("fcmp oeq", size, most), b.op("icmp slt", at, place))
            above = b.op("or", b.op("fcmp ogt", size, most), same)
            return [b.select(above, size, most), b.select(above, at, place)]

        def element(c: Index, mask: Value, most: Value, place: Value) -> Sequence[Value]:
            def term(m: Index, total: Value) -> Sequence[Value]:
                share = text.load(a, i, Index(b.add(first, m.base)))
                return [text.less(total, b.widen(share), text.load(a, m, c, mask=mask))]

            (total,) = p.each(i.base, [text.load(a, i, c, mask=mask)], term, 0)
            text.store(a, i, c, value=total, mask=mask)
            size = b.select(mask, text.size(total), b.widen(lowest))
            above = b.op("fcmp ogt", size, most)
            return [b.select(above, size, most), b.select(above, p.spelled(c), place)]

        text.count(integer(0), i.base, factors)
        most, place = along(k, [b.widen(lowest), b.widen(k)], element)
        _, found = across(b, larger, [most, place])
        text.store(exchanges, at, value=b.convert("trunc", b.add(found, one), "i32"))

        def exchange(j: Index) -> None:
            text.exchange(a, (j, at), (j, index_of(found)))

        text.count(integer(0), rows, exchange)
        pivot = text.load(a, i, at)
        zero = text.rule(e.equal, pivot, literal(0, kind))
        before = b.now("i32", "load i32, ptr %info")
        fresh = b.both(zero, b.op("icmp eq", before, integer(0, "i32")))
        here = b.convert("trunc", b.add(k, one), "i32")
        b.do(f"store {b.select(fresh, here, before).typed}, ptr %info", here)
        divisor = b.widen(b.select(zero, literal(1, kind), pivot))

        def scale(c: Index, mask: Value) -> Sequence[Value]:
            value = text.rule(e.divide, text.load(a, i, c, mask=mask), divisor)
            text.store(a, i, c, value=value, mask=mask)
            return ()

        along(b.add(k, one), (), scale)

    text.count(integer(0), rows, row)
    given = "ptr noalias %a, ptr noalias %exchanges, ptr %info, i64 %n, i64 %first, i64 %columns"
    return text.done("lu_rows", given)


def exchange(kind: str) -> str:
    """The IR of `exchange`: in some rows `many` columns from `first` on are exchanged in turn."""
    text = Text(kind)
    b, n = text.b, Value("%columns", "i64")
    rows, first, many = text.n, Value("%first", "i64"), Value("%many", "i64")
    a, exchanges = text.buffer("a", kind, rows, n), text.buffer("exchanges", "i32", n)

    def row(i: Index) -> None:
        def column(k: Index) -> None:
            at = Index(b.add(first, k.base))
            found = b.convert("sext", text.load(exchanges, at), "i64")
            text.exchange(a, (i, at), (i, index_of(b.sub(found, integer(1)))))

        text.count(integer(0), many, column)

    text.count(integer(0), rows, row)
    given = "ptr noalias %a, ptr noalias readonly %exchanges"
    return text.done("exchange", f"{given}, i64 %n, i64 %first, i64 %many, i64 %columns")


def eliminate(kind: str) -> str:
    """The IR of `eliminate`: the pivots of factored rows are eliminated from the rows x below.

    There are `many` of those, from `first` on, and u is where they begin. The columns of x are
    exchanged as theirs, those of l are solved, and their product with u is removed from the rest.
    """
    b, one = Builder(), integer(1)
    names = "rows", "first", "many", "n"
    rows, first, many, n = sizes = [Value(f"%{name}", "i64") for name in names]
    names = "x", "u", "exchanges", "scratch"
    x, u, exchanges, scratch = pointers = [Value(f"%{name}", "ptr") for name in names]
    after = b.add(first, many)
    call(b, code("exchange", kind)["exchange"], x, exchanges, rows, first, many, n)
    left, corner = moved(b, x, first, kind), moved(b, u, first, kind)
    right, beside = moved(b, x, after, kind), moved(b, u, after, kind)
    call(b, code("solve_right", kind)["solve_right"], corner, left, scratch, rows, many, n)
    sizes_of = rows, many, b.sub(n, after), n, one, n, one, n, many
    call(b, removal.code(kind)["remove"], left, beside, right, right, scratch, *sizes_of, FALSE)
    b.do("ret void")
    given = ", ".join([value.typed for value in (*pointers, *sizes)])
    return module(f"define void @eliminate({given})", b)


def solve_right(kind: str) -> str:
    """The IR of `solve_right`, which calls itself: rows x become the y with y u = x.

    u has 1 on its diagonal; there may be anything below. Rows of both lie `apart`.
    """
    b, one = Builder(), integer(1)
    rows, many, apart = sizes = [Value(f"%{name}", "i64") for name in ("rows", "many", "apart")]
    u, x, scratch = pointers = [Value(f"%{name}", "ptr") for name in ("u", "x", "scratch")]

    def at_once() -> Sequence[Value]:
        call(b, code("solve_right_few", kind)["solve_right_few"], u, x, rows, many, apart)
        return ()

    def by_halves() -> Sequence[Value]:
        size, rest = halves(b, many)
        beside, right = moved(b, u, size, kind), moved(b, x, size, kind)
        corner = moved(b, beside, b.mul(size, apart), kind)
        call(b, "@solve_right", u, x, scratch, rows, size, apart)
        sizes_of = rows, size, rest, apart, one, apart, one, apart, size
        call(b, removal.code(kind)["remove"], x, beside, right, right, scratch, *sizes_of, FALSE)
        call(b, "@solve_right", corner, right, scratch, rows, rest, apart)
        return ()

    few = SOLVED // (2 if kind in PARTS else 1)
    b.branch(b.op("icmp sle", many, integer(few)), at_once, by_halves)
    b.do("ret void")
    given = ", ".join([value.typed for value in (*pointers, *sizes)])
    return module(f"define void @solve_right({given})", b)


def solve_right_few(kind: str) -> str:
    """The same for few columns, by a copy of u that is 0 on the diagonal and below.

    A complex number of u is two rows of two floats: see `removal`.
    """
    step, part = (2, PARTS[kind]) if kind in PARTS else (1, kind)
    text = Text(part)
    b, p, many, zero = text.b, text.p, text.n, literal(0, part)
    rows, apart = Value("%rows", "i64"), Value("%apart", "i64")
    u = Buffer(Value("%u", "ptr"), (many, apart), kind)
    x = text.buffer("x", part, rows, b.mul(apart, integer(step)))
    strip = text.strip(SOLVED, SOLVED)
    lanes = [Index(integer(k), integer(1)) for k in range(0, SOLVED, b.width)]
    there = [p.left(b.mul(many, integer(step)), lane.base) for lane in lanes]

    def line(i: Index) -> None:
        def number(j: Index) -> None:
            own = b.both(b.op("icmp slt", i.base, j.base), b.op("icmp slt", j.base, many))
            at = Index(b.select(own, i.base, integer(0))), Index(b.select(own, j.base, integer(0)))
            value = text.load(u, *at)
            parts = [b.select(own, x, zero) for x in (b.parts(value) if step > 1 else [value])]
            lines = [parts] if step == 1 else [parts, [b.negative(parts[1]), parts[0]]]
            for n, values in enumerate(lines):
                row = Index(b.add(b.mul(i.base, integer(step)), integer(n)))
                for m, value in enumerate(values):
                    column = Index(b.add(b.mul(j.base, integer(step)), integer(m)))
                    text.store(strip, row, column, value=value)

        text.count(integer(0), integer(SOLVED // step), number)

    def some(i: Value) -> Sequence[Value]:
        last = b.sub(rows, integer(1))
        places = [Index(b.call("smin", b.add(i, integer(k)), last)) for k in range(TOGETHER)]
        found = [
            [text.load(x, place, lane, mask=mask) for lane, mask in zip(lanes, there, strict=True)]
            for place in places
        ]
        for j in range(SOLVED - step):
            own = Index(integer(j))
            for vectors in found:
                factor = b.widen(b.lane(vectors[j // b.width], j % b.width))
                for n in range(j // b.width, len(lanes)):
                    vectors[n] = text.less(vectors[n], factor, text.load(strip, own, lanes[n]))
        for place, vectors in zip(places, found, strict=True):
            for lane, mask, value in zip(lanes, there, vectors, strict=True):
                text.store(x, place, lane, value=value, mask=mask)
        return ()

    text.count(integer(0), integer(SOLVED // step), line)
    p.looped(integer(0), rows, TOGETHER, (), some)
    given = "ptr noalias readonly %u, ptr noalias %x, i64 %rows, i64 %n, i64 %apart"
    return text.done("solve_right_few", given)


WRITTEN: dict[str, Callable[[str], str]] = {
    "lu": lu,
    "lu_rows": lu_rows,
    "exchange": exchange,
    "eliminate": eliminate,
    "solve_right": solve_right,
    "solve_right_few": solve_right_few,
}
