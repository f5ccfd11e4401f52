"""Routines for panels of matrices that are factored, and for the cotangents of their factors.

A block on the diagonal is copied, transposed, to memory where its rows lie a little apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from . import blocked, dense
from .addressing import Index, moved
from .arithmetic import literal
from .blocked import call, halves
from .builder import FALSE, TRUE, WIDTH, Builder, Value, integer
from .elementary import compiled, module
from .folds import across
from .machine import Code, cached
from .small_matrices import Text
from .squares import transposed

ROWS = 32
"""The most rows of a matrix that are factored one after the other: whole vectors."""
Line: TypeAlias = "tuple[Index, Index, Value]"


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


def copy_transposed(kind: str) -> str:
    """The IR of `copy_transposed`: y becomes xᵀ; if `lower` holds, with 0 above the diagonal."""
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
    given = f"ptr noalias readonly %x, ptr noalias %y, {given}, i1 %lower"
    return text.done("copy_transposed", given)


# ---- cotangents of factors


def pull_back(kind: str) -> str:
    """The IR of `pull_back`, which calls itself: h becomes the cotangent of a, for a = uᵀ u.

    h is that of u, and upper triangles are read; below the diagonal of h there is anything then.
    Rows lie `apart`. `both` and `scratch` are memory for a matrix, and of `dense.scratch_for`.
    """
    b, one = Builder(), integer(1)
    n, apart = sizes = [Value(f"%{name}", "i64") for name in ("n", "apart")]
    names = "u", "h", "both", "scratch"
    u, h, both, scratch = pointers = [Value(f"%{name}", "ptr") for name in names]

    def at_once() -> Sequence[Value]:
        call(b, code("pull_back_rows", kind)["pull_back_rows"], u, h, n, apart)
        return ()

    def by_halves() -> Sequence[Value]:
        size, rest = halves(b, n)
        (right, corner), (h_right, h_corner) = [
            (x_right, moved(b, x_right, b.mul(size, apart), kind))
            for x_right in [moved(b, x, size, kind) for x in (u, h)]
        ]
        solve, remove = blocked.code(kind)["solve"], dense.code_that_removes(kind)["remove"]
        add_transpose = code("add_transpose", kind)["add_transpose"]
        call(b, "@pull_back", corner, h_corner, both, scratch, rest, apart)
        call(b, add_transpose, h_corner, both, rest, apart)
        strides = apart, one, apart, one, apart, rest
        sizes = size, rest, rest
        call(b, remove, right, both, h_right, h_right, scratch, *sizes, *strides, FALSE)
        call(b, solve, u, h_right, scratch, size, rest, apart, apart, one, TRUE, FALSE)
        strides, sizes = (apart, one, one, apart, apart, rest), (size, rest, size)
        call(b, remove, right, h_right, h, h, scratch, *sizes, *strides, TRUE)
        call(b, "@pull_back", u, h, both, scratch, size, apart)
        return ()

    b.branch(b.op("icmp sle", n, integer(ROWS)), at_once, by_halves)
    b.do("ret void")
    given = ", ".join([value.typed for value in (*pointers, *sizes)])
    return module(f"define void @pull_back({given})", b)


def pull_back_rows(kind: str) -> str:
    """The same for few rows, the last one first.

    With p = sqrt(t[i]), u[i] = t / p and t = a[i] - Σ u[e, i] u[e] over the rows e above:
    t̄ = h[i] / p beside the diagonal, t̄[i] = (h[i, i] - Σ t̄ u[i]) / 2 p, and each row above
    receives -u[e, i] t̄, and its element i -Σ t̄ u[e].
    """
    text = Text(kind)
    b, p, n, apart = text.b, text.p, text.n, Value("%apart", "i64")
    u, h = [text.buffer(name, kind, n, apart) for name in "uh"]
    strip, zero = text.strip(2 * ROWS, ROWS), literal(0, kind)
    lanes = [Index(integer(k), integer(1)) for k in range(0, ROWS, b.width)]
    no = Index(integer(0))

    def of_h(i: Index) -> Index:
        return Index(b.add(i.base, integer(ROWS)))

    def total(xs: Sequence[Value], ys: Sequence[Value]) -> Value:
        found = b.op("fmul", xs[0], ys[0])
        for x, y in zip(xs[1:], ys[1:], strict=True):
            found = b.call("fma", x, y, found)
        return across(b, lambda x, y: [b.op("fadd", x[0], y[0])], [found])[0]

    def given(i: Index) -> None:
        for lane in lanes:
            mask = p.left(n, lane.base)
            upper = b.op("icmp sge", b.op("add", b.numbers, lane.base), i.base)
            for x, to in ((u, i), (h, of_h(i))):
                value = b.select(b.both(mask, upper), text.load(x, i, lane, mask=mask), zero)
                text.store(strip, to, lane, value=value)

    def row(number: Index) -> None:
        i = Index(b.sub(b.sub(n, integer(1)), number.base))
        pivot, on = text.load(strip, i, i), text.load(strip, of_h(i), i)
        text.store(strip, of_h(i), i, value=zero)
        shares = [b.op("fdiv", text.load(strip, of_h(i), lane), b.widen(pivot)) for lane in lanes]
        for lane, share in zip(lanes, shares, strict=True):
            text.store(strip, of_h(i), lane, value=share)
        rest = b.op("fsub", on, total(shares, [text.load(strip, i, lane) for lane in lanes]))
        text.store(strip, of_h(i), i, value=b.op("fdiv", rest, b.op("fadd", pivot, pivot)))
        shares = [text.load(strip, of_h(i), lane) for lane in lanes]

        def above(e: Index) -> None:
            factor, values = text.load(strip, e, i), list[Value]()
            for lane, share in zip(lanes, shares, strict=True):
                values.append(text.load(strip, e, lane))
                left = text.less(text.load(strip, of_h(e), lane), b.widen(factor), share)
                text.store(strip, of_h(e), lane, value=left)
            left = b.op("fsub", text.load(strip, of_h(e), i), total(shares, values))
            text.store(strip, of_h(e), i, value=left)

        text.count(no.base, i.base, above)

    def result(i: Index) -> None:
        for lane in lanes:
            mask = p.left(n, lane.base)
            text.store(h, i, lane, value=text.load(strip, of_h(i), lane), mask=mask)

    for body in (given, row, result):
        text.count(no.base, n, body)
    return text.done(
        "pull_back_rows", "ptr noalias readonly %u, ptr noalias %h, i64 %n, i64 %apart"
    )


def add_transpose(kind: str) -> str:
    """The IR of `add_transpose`: y becomes uᵀ + u for the upper triangle u of x."""
    text = Text(kind)
    b, n, apart = text.b, text.n, Value("%apart", "i64")
    x, y = [text.buffer(name, kind, n, apart) for name in "xy"]

    def row(i: Index) -> None:
        def column(j: Index) -> None:
            value = text.load(x, i, j)
            text.store(y, i, j, value=value)
            text.store(y, j, i, value=value)

        text.count(b.add(i.base, integer(1)), n, column)
        on = text.load(x, i, i)
        text.store(y, i, i, value=b.op("fadd", on, on))

    text.count(integer(0), n, row)
    return text.done("add_transpose", "ptr noalias readonly %x, ptr noalias %y, i64 %n, i64 %apart")


WRITTEN: dict[str, Callable[[str], str]] = {
    "factor": factor,
    "factor_rows": factor_rows,
    "copy_transposed": copy_transposed,
    "pull_back": pull_back,
    "pull_back_rows": pull_back_rows,
    "add_transpose": add_transpose,
}
