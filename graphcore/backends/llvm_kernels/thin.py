"""Products of small and of narrow matrices by a routine of our own: others take longer to begin.

BLAS, and `dense`, copy operands into another order first, which pays only where they are read many
times. Here four rows of the result are computed at once, as vectors along its rows: for each value
of these rows of x, a row of y is read as it lies, from the fastest cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from graphcore.backends.rounding import GROUP

from .addressing import Buffer, Index
from .arithmetic import literal
from .builder import FALSE, TRUE, Builder, Value, integer
from .elementary import compiled, module
from .machine import Code, cached, levels
from .places import Places

LANES = {"f64": 8, "f32": 16}
ROWS = 4
"""How many rows of the result are computed at once."""
LONGEST_SUM = 512
"""The most products that are added up, in groups of GROUP: `dense` adds up more in blocks."""
MOST_VALUES = {"x86-64-v4": 64, "x86-64-v3": 1024}
"""The most values of y, or of the result, for which our routine is faster, by the level of x86-64.

Measured beside OpenBLAS 0.3 with AVX2, in float64: 20 times as fast for 4 x 4 x 4 (rows, inner,
columns), 3 for 16 x 16 x 16, 1.2 for 32 x 32 x 32, 2 for 10 x 500 x 10, 1.5 for 20 x 400 x 20 and
1.1 for 10_000 x 20 x 20; but 0.9 for 1000 x 64 x 32 and 0.6 for 64 x 32 x 64. With AVX-512, beside
`dense`: 1.4 for 8 x 8 x 8, 1.1 for 4 x 4 x 4, but 0.8 for 16 x 16 x 16 and 0.7 for 1000 x 10 x 10.
"""


def is_quicker(b: Builder, kind: str, rows: Value, inner: Value, columns: Value) -> Value:
    """Whether our routine is quicker than BLAS for matrices of these sizes."""
    if kind not in LANES or (inner.number is not None and inner.number > LONGEST_SUM):
        return FALSE
    most, numbers = MOST_VALUES[levels()[0]], [rows.number, inner.number, columns.number]
    known = [n for n in numbers if n is not None]
    if len(known) == len(numbers):
        return TRUE if min(known[:2]) * known[2] <= most else FALSE
    read = b.mul(b.call("smin", rows, inner), columns)
    short = b.op("icmp sle", inner, integer(LONGEST_SUM))
    return b.both(short, b.op("icmp sle", read, integer(most)))


@cached
def code(kind: str) -> Code:
    """The machine code of the routine for values of a kind."""
    return compiled(thin(kind), "thin")


def thin(kind: str) -> str:
    """The IR of `thin`: z = x y, where the values of x lie `down` and `right` of each other.

    Rows of z follow each other, and those of y are `apart`.
    """
    b = Builder(LANES[kind])
    names = "rows", "inner", "columns", "down", "right", "apart"
    rows, inner, columns, down, right, apart = [Value(f"%{name}", "i64") for name in names]
    p, zero, one = Places(b, integer), literal(0.0, kind), integer(1)
    last = b.sub(rows, one)
    count = b.add(b.add(b.mul(last, down), b.mul(b.sub(inner, one), right)), one)
    x = Buffer(Value("%x", "ptr"), (count,), kind)
    y = Buffer(Value("%y", "ptr"), (inner, apart), kind)
    z = Buffer(Value("%z", "ptr"), (rows, columns), kind)

    def columns_of(j: Value, masked: bool) -> Sequence[Value]:
        """The columns from j on, as one vector."""
        mask = p.left(columns, j) if masked else TRUE

        def group(first: Value) -> Sequence[Value]:
            places = [b.call("smin", b.add(first, integer(n)), last) for n in range(ROWS)]
            starts = [b.mul(i, down) for i in places]

            def term(k: Value, *sums: Value) -> Sequence[Value]:
                value = p.load(y, (Index(k), Index(j, one)), mask)
                far = b.mul(k, right)
                factors = [p.load(x, (Index(b.add(start, far)),), TRUE) for start in starts]
                pairs = zip(factors, sums, strict=True)
                return [b.call("fma", b.widen(factor), value, sum) for factor, sum in pairs]

            zeros = [b.widen(zero)] * ROWS

            def some(first: Value, *totals: Value) -> Sequence[Value]:
                end = b.call("smin", b.add(first, integer(GROUP)), inner)
                sums = p.looped(first, end, 1, zeros, term)
                return [b.op("fadd", *pair) for pair in zip(totals, sums, strict=True)]

            found = p.looped(integer(0), inner, GROUP, zeros, some)
            with p.stores.together():
                for i, sum in zip(places, found, strict=True):
                    p.store(z, (Index(i), Index(j, one)), mask, sum)
            return ()

        p.looped(integer(0), rows, ROWS, (), group)
        return ()

    whole, half = b.op("and", columns, integer(-b.width)), b.width // 2
    p.looped(integer(0), whole, b.width, (), partial(columns_of, masked=False))
    with b.side_by_side(half):
        p.looped(whole, columns, half, (), partial(columns_of, masked=True))
    b.do("ret void")
    sizes = ", ".join([f"i64 %{name}" for name in names])
    given = f"ptr noalias readonly %x, ptr noalias readonly %y, ptr noalias %z, {sizes}"
    return module(f"define void @thin({given})", b)
