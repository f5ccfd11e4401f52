"""Cholesky factors of larger matrices, panel after panel of columns, whose rows threads share.

From a panel the products of the panels before it are removed; its block on the diagonal is
factored, and the rows below are solved. Both are done in memory where columns lie side by side. The
bits depend on the size of the matrix alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from graphcore.ir import Size, TensorType

from . import blocked, dense
from .addressing import Index, moved
from .arithmetic import literal
from .batches import in_ranges
from .blocked import call, halves
from .builder import FALSE, TRUE, WIDTH, Builder, Value, integer
from .conversions import DTYPES
from .elementary import compiled, module
from .machine import Code, cached, levels
from .small_matrices import Text
from .squares import transposed
from .writer import Writer

PANEL = 128
"""The columns of a panel."""
APART = PANEL + WIDTH
"""How far rows of the block on the diagonal lie apart, so that they do not compete for a cache."""
BAND = 96
"""How many rows below it are solved together, and how many a thread takes at least."""
ROWS = 32
"""The most rows of a matrix that are factored one after the other: whole vectors."""


MOST_BY_LAPACK = 96
"""The most rows that LAPACK factors: of more it does so by threads of its own."""


def cholesky(w: Writer, kind: str, size: Size, a: Value, info: Value) -> None:
    """The lower triangle becomes l with a = l lᵀ, and 0 stays above; `info` becomes 1 without l."""
    b, p, sharing, n = w.b, w.places, w.sharing, w.size(size)
    zero, one, dtype = integer(0), integer(1), DTYPES[kind]
    _, room_type, band_type = types = [
        TensorType(dtype, shape)
        for shape in ((PANEL, APART), dense.scratch_for(levels()[0]), (PANEL, BAND))
    ]
    taken, (block, scratch, band) = zip(*map(w.program.take, types), strict=True)
    run = partial(run_routine, w, kind, size)

    def at(row: Value, column: Value) -> Value:
        return moved(b, a, b.add(b.mul(row, n), column), kind)

    def work(*sizes: Value) -> Value:
        products = b.mul(b.mul(sizes[0], sizes[1]), sizes[2])
        return b.op("sdiv", products, integer(dense.PRODUCTS_PER_VALUE))

    def panel(k: Value) -> Sequence[Value]:
        many = b.call("smin", b.sub(n, k), integer(PANEL))
        left, below = b.sub(n, k), b.add(k, many)

        def removed() -> None:
            own_room = sharing.own(scratch, lambda: w.program.bytes(room_type))

            def rows(_: object, first: Value, size: Value) -> None:
                row = b.add(k, first)
                x, y, z = at(row, zero), at(k, zero), at(row, k)
                strides = n, one, one, n, n, k
                run("remove", x, y, z, z, own_room, size, k, many, *strides, FALSE)

            in_ranges(w, (), left, integer(BAND), rows)

        def solved() -> None:
            own = sharing.own(band, lambda: w.program.bytes(band_type))
            own_room = sharing.own(scratch, lambda: w.program.bytes(room_type))

            def rows(_: object, first: Value, size: Value) -> None:
                def some(i: Value) -> Sequence[Value]:
                    rows = b.call("smin", b.sub(b.add(first, size), i), integer(BAND))
                    x, apart = at(b.add(below, i), k), integer(BAND)
                    run("turn", x, own, rows, many, n, apart, FALSE)
                    run("solve", at(k, k), own, own_room, many, rows, apart, n, one, FALSE, FALSE)
                    run("turn", own, x, many, rows, apart, n, FALSE)
                    return ()

                p.looped(first, b.add(first, size), BAND, (), some)

            in_ranges(w, (), b.sub(n, below), integer(BAND), rows)

        sharing.over(partial(work, left, k, many), removed, once=True)
        run("turn", at(k, k), block, many, many, n, integer(APART), FALSE)
        run("factor", block, scratch, info, many, integer(APART))
        run("turn", block, at(k, k), many, many, integer(APART), n, TRUE)
        sharing.over(partial(work, b.sub(n, below), many, many), solved, once=True)
        return ()

    p.looped(zero, n, PANEL, (), panel)
    for memory in taken:
        w.program.give_back(memory)


def run_routine(w: Writer, kind: str, size: Size, name: str, *given: Value) -> None:
    """Call one of the routines here, or of those that solve and multiply."""

    def make() -> int:
        if name == "remove":
            return dense.code_that_removes(kind)[name]
        return (blocked.code(kind) if name == "solve" else code(name, kind))[name]

    w.call(w.program.routine(name, kind, make, size, MOST_BY_LAPACK), *given)


# ---- routines


@cached
def code(name: str, kind: str) -> Code:
    """The machine code of a routine for values of a kind."""
    return compiled(WRITTEN[name](kind), name)


def factor(kind: str) -> str:
    """The IR of `factor`, which calls itself: the upper triangle of a becomes u with a = uᵀ u.

    Rows of a lie `apart`; below its diagonal there is anything then. `info` becomes 1 without u.
    """
    b, one = Builder(), integer(1)
    n, apart = sizes = [Value(f"%{name}", "i64") for name in ("n", "apart")]
    a, scratch, info = pointers = [Value(f"%{name}", "ptr") for name in ("a", "scratch", "info")]

    def at_once() -> Sequence[Value]:
        call(b, code("factor_rows", kind)["factor_rows"], a, info, n, apart)
        return ()

    def by_halves() -> Sequence[Value]:
        size, rest = halves(b, n)
        right = moved(b, a, size, kind)
        corner = moved(b, right, b.mul(size, apart), kind)
        solve, remove = blocked.code(kind)["solve"], dense.code_that_removes(kind)["remove"]
        call(b, "@factor", a, scratch, info, size, apart)
        call(b, solve, a, right, scratch, size, rest, apart, one, apart, FALSE, FALSE)
        strides = one, apart, apart, one, apart, size
        call(b, remove, right, right, corner, corner, scratch, rest, size, rest, *strides, TRUE)
        call(b, "@factor", corner, scratch, info, rest, apart)
        return ()

    b.branch(b.op("icmp sle", n, integer(ROWS)), at_once, by_halves)
    b.do("ret void")
    given = ", ".join([value.typed for value in (*pointers, *sizes)])
    return module(f"define void @factor({given})", b)


def factor_rows(kind: str) -> str:
    """The same for few rows, one after the other: from each those before it are taken."""
    text = Text(kind)
    b, p, n, apart = text.b, text.p, text.n, Value("%apart", "i64")
    a, strip, zero = text.buffer("a", kind, n, apart), text.strip(ROWS, ROWS), literal(0, kind)
    lanes = [Index(integer(k), integer(1)) for k in range(0, ROWS, b.width)]
    places = [(lane, p.left(n, lane.base)) for lane in lanes]

    def row(i: Index) -> None:
        def term(earlier: Index, *totals: Value) -> Sequence[Value]:
            factor = text.load(strip, earlier, i)
            pairs = zip(totals, [text.load(strip, earlier, lane) for lane in lanes], strict=True)
            return [text.less(total, factor, value) for total, value in pairs]

        start = [text.load(a, i, lane, mask=mask) for lane, mask in places]
        totals = p.each(i.base, start, term, 0)
        for lane, total in zip(lanes, totals, strict=True):
            text.store(strip, i, lane, value=total)
        pivot = text.load(strip, i, i)
        failed = b.op("fcmp ole", pivot, zero)  # nan is passed on, as LAPACK does
        before = b.now("i32", "load i32, ptr %info")
        b.do(f"store {b.select(failed, integer(1, 'i32'), before).typed}, ptr %info")
        root = b.call("sqrt", pivot)
        for (lane, mask), total in zip(places, totals, strict=True):
            value = b.op("fdiv", total, root)
            text.store(strip, i, lane, value=value)
            text.store(a, i, lane, value=value, mask=mask)
        p.store(a, (i, i), TRUE, root)

    text.count(integer(0), n, row)
    return text.done("factor_rows", "ptr noalias %a, ptr %info, i64 %n, i64 %apart")


def turn(kind: str) -> str:
    """The IR of `turn`: y becomes the transpose of x; if `lower` holds, 0 above the diagonal."""
    text = Text(kind, width=WIDTH)
    b, p = text.b, text.p
    names = "rows", "columns", "x_apart", "y_apart"
    rows, columns, *apart = sizes = [Value(f"%{name}", "i64") for name in names]
    pairs = zip("xy", (rows, columns), apart, strict=True)
    x, y = [text.buffer(name, kind, *shape) for name, *shape in pairs]
    lower, zero = Value("%lower", "i1"), b.widen(literal(0, kind))

    def square(i: Value, j: Value) -> Sequence[Value]:
        def line(first: Value, many: Value, beside: Value, k: int, mask: Value) -> Line:
            at = b.add(first, integer(k))
            there = mask if mask.text == "true" else b.both(mask, b.op("icmp slt", at, many))
            return Index(at), Index(beside, integer(1)), there

        def copied(right: Value, below: Value) -> Sequence[Value]:
            given = [line(i, rows, j, k, right) for k in range(WIDTH)]
            values = [text.load(x, *at, mask=mask) for *at, mask in given]
            for k, value in enumerate(transposed(b, values)):
                *at, mask = line(j, columns, i, k, below)
                above = b.op("icmp sgt", b.op("add", b.numbers, i), at[0].base)
                hidden = b.both(b.widen(lower), above)
                text.store(y, *at, value=b.select(hidden, zero, value), mask=mask)
            return ()

        ends = [b.op("icmp sle", b.add(k, integer(WIDTH)), n) for k, n in ((i, rows), (j, columns))]
        masks = p.left(columns, j), p.left(rows, i)
        return b.branch(b.both(*ends), partial(copied, TRUE, TRUE), partial(copied, *masks))

    def rows_from(i: Value) -> Sequence[Value]:
        return p.looped(integer(0), columns, WIDTH, (), partial(square, i))

    p.looped(integer(0), rows, WIDTH, (), rows_from)
    given = ", ".join([size.typed for size in sizes])
    return text.done("turn", f"ptr noalias readonly %x, ptr noalias %y, {given}, i1 %lower")


Line = tuple[Index, Index, Value]
WRITTEN: dict[str, Callable[[str], str]] = {
    "factor": factor,
    "factor_rows": factor_rows,
    "turn": turn,
}
