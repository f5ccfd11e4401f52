"""Small matrices are factored and solved by routines of our own: LAPACK takes longer to begin.

They are compiled once in a process for each kind of values, and do in the same memory what
LAPACK's would. Those `vectorised` do it for as many matrices as there are lanes: each place holds
that of all of them, side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from graphcore.ir import Op
from graphcore.ops import elementwise as e

from .addressing import ZERO, Buffer, Index, index_of
from .arithmetic import literal, rule_of
from .builder import FALSE, PARTS, TRUE, WIDTH, Builder, Value, integer, type_of
from .elementary import compiled, module
from .entrance import Address
from .machine import Code, cached
from .places import Places
from .writer import Writer

MOST_ROWS = 8
"""The most rows of a matrix for which our routines are faster."""
MOST_SOLVED = 64
"""The most rows of a triangle that our routine solves: OpenBLAS lets all its threads wait for each
other even for 8 rows and 8 right-hand sides, which takes many times the time of solving these."""
VECTORS = 3
"""How many vectors of columns are solved at once."""
MOST_PULLED_BACK = 16
"""The most rows of a factor whose cotangent is computed element by element."""
SIDE_BY_SIDE = 4
"""From how many columns on these are solved side by side."""


def either(
    w: Writer, n: Value, own: Callable[[], None], other: Callable[[], None], most: int
) -> None:
    """`own` where a matrix has at most so many rows, else `other`."""

    def way(write: Callable[[], None]) -> Callable[[], Sequence[Value]]:
        def written() -> Sequence[Value]:
            write()
            return ()

        return written

    if n.number is None:
        w.b.branch(w.b.op("icmp sle", n, integer(most)), way(own), way(other))
    else:
        (own if n.number <= most else other)()


def routine(w: Writer, name: str, kind: str) -> Value:
    """The address of one of the routines."""
    return w.program.shared((name, kind), Address(code(name, kind)[name]))


def solve_triangular(
    w: Writer, kind: str, t: Value, x: Value, n: Value, columns: Value, apart: Value,
    lower: bool, transposed: bool = False, unit: bool = False, name: str = "triangular",
) -> None:  # fmt: skip
    """Replace x by the solution y of t y = x. Rows of x lie `apart`; t may lie transposed."""
    b, one = w.b, integer(1)
    strides = [one, n] if transposed else [n, one]
    ways = [integer(0), one] if lower else [b.sub(n, one), integer(-1)]
    given = [t, x, n, columns, apart, *strides, *ways, TRUE if unit else FALSE]
    w.call(routine(w, name, kind), *given)


def factored(
    w: Writer, kind: str, a: Value, exchanges: Value, n: Value, info: Value, name: str = "factor"
) -> None:
    """As getrf: the factors of a matrix that lies column by column, and its row exchanges."""
    w.call(routine(w, name, kind), a, exchanges, n, info)


def cholesky(w: Writer, kind: str, a: Value, n: Value, info: Value) -> None:
    """As potrf: the lower triangle becomes l with a = l lᴴ, row by row in memory."""
    w.call(routine(w, "cholesky", kind), a, n, info)


def pull_back(w: Writer, kind: str, lower: Value, g: Value, n: Value) -> None:
    """The lower triangle of g becomes the cotangent of a = l lᵀ for that of l."""
    w.call(routine(w, "pull_back", kind), lower, g, n)


@cached
def code(name: str, kind: str) -> Code:
    """The machine code of a routine for values of a kind."""
    return compiled(WRITTEN[name](kind), name)


class Text:
    """A routine that is being written, and arithmetic of its kind of values.

    Each place of its buffers is that of `lanes` matrices; `lane` is the rest of an index.
    """

    def __init__(self, kind: str, lanes: int = 1, width: int = 0) -> None:
        self.b = Builder(width or (2 * WIDTH if kind == "f32" and lanes == 1 else WIDTH))
        self.p, self.kind, self.n = Places(self.b, integer), kind, Value("%n", "i64")
        self.lane = (Index(integer(0), integer(1)),) if lanes > 1 else ()
        self.side_by_side = (integer(lanes),) if lanes > 1 else ()

    def buffer(self, name: str, kind: str, *shape: Value) -> Buffer:
        """Memory that the routine is given."""
        return Buffer(Value(f"%{name}", "ptr"), (*shape, *self.side_by_side), kind)

    def strip(self, rows: int, columns: int) -> Buffer:
        """Memory on the stack: rows of a matrix may compete for a few lines of the cache."""
        kind, places = type_of(self.kind), rows * columns * (WIDTH if self.lane else 1)
        self.b.lines[0].append(f"  %strip = alloca [{places} x {kind}], align 64")
        return self.buffer("strip", self.kind, integer(rows), integer(columns))

    def every(self, x: Value) -> Value:
        """A number, for each of the matrices."""
        return self.b.widen(x) if self.lane else x

    def rule(self, op: Op, *xs: Value) -> Value:
        """The value of an elementwise op."""
        return rule_of(op, self.kind)(self.b, *xs)

    def less(self, x: Value, y: Value, z: Value) -> Value:
        """x - y z, rounded once if it is real."""
        if self.kind not in PARTS:
            return self.b.call("fma", self.b.negative(y), z, x)
        return self.rule(e.subtract, x, self.rule(e.multiply, y, z))

    def load(self, buffer: Buffer, *index: Index, mask: Value = TRUE) -> Value:
        """What a place holds now."""
        self.b.names += 1
        now = buffer._replace(level=self.b.level, version=self.b.names)
        return self.p.load(now, (*index, *self.lane), mask)

    def store(self, buffer: Buffer, *index: Index, value: Value, mask: Value = TRUE) -> None:
        """Put a value at a place."""
        self.p.store(buffer, (*index, *self.lane), mask, self.every(value))

    def exchange(self, buffer: Buffer, *places: tuple[Index, Index]) -> None:
        """Exchange the values of two places."""
        values = [self.load(buffer, *at) for at in places]
        for at, value in zip(places, reversed(values), strict=True):
            self.store(buffer, *at, value=value)

    def count(self, start: Value, stop: Value, body: Callable[[Index], None]) -> None:
        """body(i) for each i from `start` to `stop`."""

        def step(i: Value) -> Sequence[Value]:
            body(Index(i))
            return ()

        self.p.looped(start, stop, 1, (), step)

    def size(self, x: Value) -> Value:
        """How large a pivot is: of a complex number the sum of both sizes."""
        parts = [self.b.call("fabs", part) for part in self.parts(x)]
        return parts[0] if len(parts) == 1 else self.b.op("fadd", *parts)

    def parts(self, x: Value) -> Sequence[Value]:
        """The real and the imaginary part, or the number."""
        return self.b.parts(x) if self.kind in PARTS else [x]

    def done(self, name: str, given: str) -> str:
        """The IR of the routine."""
        self.b.do("ret void")
        return module(f"define void @{name}({given})", self.b)


def triangular(kind: str, name: str = "triangular", lanes: int = 1) -> str:
    """The rows of the solution in turn: from each those before it are taken."""
    text = Text(kind, lanes)
    b, p, n = text.b, text.p, text.n
    columns, down, across, first, step = [
        Value(f"%{name}", "i64") for name in ("columns", "down", "across", "first", "step")
    ]
    apart, unit = Value("%apart", "i64"), Value("%unit", "i1")
    read = b.add(b.mul(b.sub(n, integer(1)), b.add(down, across)), integer(1))
    t, x = [text.buffer(name, kind, size) for name, size in (("t", read), ("x", b.mul(n, apart)))]
    after = b.mul(step, across)
    strip = text.strip(MOST_SOLVED, 1 if lanes > 1 else VECTORS * b.width)

    def solved(mask: Value, *js: Index) -> Sequence[Value]:
        lanes_of = [j._replace(base=integer(k * b.width)) for k, j in enumerate(js)]

        def row(number: Index) -> None:
            i = b.add(first, b.mul(step, number.base))
            places = [p.plus(j, b.mul(i, apart)) for j in js]

            def term(earlier: Index, right: Value, *totals: Value) -> Sequence[Value]:
                factor = text.load(t, Index(right))
                pairs = zip(
                    totals, [text.load(strip, earlier, lane) for lane in lanes_of], strict=True
                )
                return [b.add(right, after), *[text.less(x, factor, y) for x, y in pairs]]

            begin = b.add(b.mul(i, down), b.mul(first, across))
            start = [begin, *[text.load(x, place, mask=mask) for place in places]]
            _, *totals = p.each(number.base, start, term, 0)
            pivot = text.load(t, Index(b.add(b.mul(i, down), b.mul(i, across))))
            divisor = b.select(unit, literal(1, kind), pivot)
            for place, lane, total in zip(places, lanes_of, totals, strict=True):
                value = text.rule(e.divide, total, divisor)
                text.store(x, place, value=value, mask=mask)
                text.store(strip, number, lane, value=value)

        text.count(integer(0), n, row)
        return ()

    def vectors(j: Value) -> Sequence[Value]:
        return solved(
            TRUE, *[Index(b.add(j, integer(k * b.width)), integer(1)) for k in range(VECTORS)]
        )

    def several() -> Sequence[Value]:
        width = VECTORS * b.width
        whole = b.mul(b.op("sdiv", columns, integer(width)), integer(width))
        p.looped(integer(0), whole, width, (), vectors)
        p.run(whole, columns, (), lambda j, mask: solved(mask, j))
        return ()

    def single() -> Sequence[Value]:
        p.each(columns, (), lambda j: solved(TRUE, j), 0)
        return ()

    if lanes > 1:
        single()
    else:
        b.branch(b.op("icmp sge", columns, integer(SIDE_BY_SIDE)), several, single)
    sizes = ", ".join([x.typed for x in (n, columns, apart, down, across, first, step, unit)])
    return text.done(name, f"ptr noalias readonly %t, ptr noalias %x, {sizes}")


def factor(kind: str, name: str = "factor", lanes: int = 1) -> str:
    """Column after column: the largest pivot comes first, and is removed from the others."""
    text = Text(kind, lanes)
    b, p, n = text.b, text.p, text.n
    a, exchanges = text.buffer("a", kind, n, n), text.buffer("exchanges", "i32", n)
    info = text.buffer("info", "i32", *[integer(1)] * (not text.lane))
    first_index = () if text.lane else (ZERO,)
    part, one = PARTS.get(kind, kind), integer(1)
    text.store(info, *first_index, value=integer(0, "i32"))

    def column(k: Index) -> None:
        after = b.add(k.base, one)

        def larger(i: Value, most: Value, place: Value) -> Sequence[Value]:
            size = text.size(text.load(a, k, Index(i)))
            above = b.op("fcmp ogt", size, most)
            return [b.select(above, size, most), b.select(above, i, place)]

        start = [text.every(x) for x in (literal(-1.0, part), k.base)]
        _, place = p.looped(k.base, n, 1, start, larger)
        text.store(exchanges, k, value=b.convert("trunc", b.op("add", place, one), "i32"))

        def exchange(j: Index) -> None:
            text.exchange(a, (j, k), (j, index_of(place)))

        def exchanged() -> Sequence[Value]:
            text.count(integer(0), n, exchange)
            return ()

        b.branch(b.any_lane(b.op("icmp ne", place, k.base)), exchanged)
        pivot = text.load(a, k, k)
        zero = text.rule(e.equal, pivot, literal(0, kind))
        before = text.load(info, *first_index)
        first = b.both(zero, b.op("icmp eq", before, integer(0, "i32")))
        here = b.convert("trunc", b.op("add", k.base, one), "i32")
        text.store(info, *first_index, value=b.select(first, here, before))
        divisor = b.select(zero, literal(1, kind), pivot)

        def scale(i: Index) -> None:
            text.store(a, k, i, value=text.rule(e.divide, text.load(a, k, i), divisor))

        def remove(j: Index) -> None:
            factor = text.load(a, j, k)

            def row(i: Index) -> None:
                value = text.less(text.load(a, j, i), factor, text.load(a, k, i))
                text.store(a, j, i, value=value)

            text.count(after, n, row)

        text.count(after, n, scale)
        text.count(after, n, remove)

    text.count(integer(0), n, column)
    return text.done(name, "ptr noalias %a, ptr noalias %exchanges, i64 %n, ptr noalias %info")


def symmetric(kind: str) -> str:
    """Column after column, each removed from those after it."""
    text = Text(kind)
    b, p, n = text.b, text.p, text.n
    a = Buffer(Value("%a", "ptr"), (n, n), kind)
    part, one = PARTS.get(kind, kind), integer(1)
    zero = literal(0, part)
    b.do("store i32 0, ptr %info")

    def column(k: Index) -> None:
        after = b.add(k.base, one)
        pivot = text.parts(text.load(a, k, k))[0]
        failed = b.op("fcmp ole", pivot, zero)  # nan is passed on, as OpenBLAS does
        before = b.now("i32", "load i32, ptr %info")
        first = b.both(failed, b.op("icmp eq", before, integer(0, "i32")))
        here = b.convert("trunc", b.op("add", k.base, one), "i32")
        b.do(f"store {b.select(first, here, before).typed}, ptr %info")
        root = b.call("sqrt", pivot)
        whole = b.complex(root, zero) if kind in PARTS else root
        p.store(a, (k, k), TRUE, whole)

        def scale(i: Index) -> None:
            parts = [b.op("fdiv", x, root) for x in text.parts(text.load(a, i, k))]
            p.store(a, (i, k), TRUE, b.complex(*parts) if kind in PARTS else parts[0])

        def remove(j: Index) -> None:
            factor = text.load(a, j, k)
            if kind in PARTS:
                factor = text.rule(e.conjugate, factor)

            def row(i: Index) -> None:
                value = text.less(text.load(a, i, j), text.load(a, i, k), factor)
                p.store(a, (i, j), TRUE, value)

            text.count(j.base, n, row)

        text.count(after, n, scale)
        text.count(after, n, remove)

    text.count(integer(0), n, column)
    return text.done("cholesky", "ptr noalias %a, i64 %n, ptr noalias %info")


def back(kind: str) -> str:
    """Element after element of l, the last first: l[i, j] l[j, j] = a[i, j] - Σ l[i, k] l[j, k]"""
    text = Text(kind)
    b, n, one = text.b, text.n, integer(1)
    lower, g = [text.buffer(name, kind, n, n) for name in ("l", "g")]

    def removed(i: Index, k: Index, share: Value, *rows: Index) -> None:
        for row in rows:
            left = text.less(text.load(g, i, k), share, text.load(lower, row, k))
            text.store(g, i, k, value=left)

    def row(number: Index) -> None:
        i = Index(b.sub(b.sub(n, one), number.base))
        share = b.op(
            "fdiv", b.op("fmul", text.load(g, i, i), literal(0.5, kind)), text.load(lower, i, i)
        )
        text.store(g, i, i, value=share)
        text.count(integer(0), i.base, lambda k: removed(i, k, share, i, i))

        def element(number: Index) -> None:
            j = Index(b.sub(b.sub(i.base, one), number.base))
            share = b.op("fdiv", text.load(g, i, j), text.load(lower, j, j))
            text.store(g, i, j, value=share)

            def before(k: Index) -> None:
                removed(i, k, share, j)
                removed(j, k, share, i)

            text.count(integer(0), j.base, before)
            removed(j, j, share, i)

        text.count(integer(0), i.base, element)

    text.count(integer(0), n, row)
    return text.done("pull_back", "ptr noalias readonly %l, ptr noalias %g, i64 %n")


WRITTEN: dict[str, Callable[[str], str]] = {
    "triangular": triangular,
    "triangular_vectorised": partial(triangular, name="triangular_vectorised", lanes=WIDTH),
    "factor": factor,
    "factor_vectorised": partial(factor, name="factor_vectorised", lanes=WIDTH),
    "cholesky": symmetric,
    "pull_back": back,
}
