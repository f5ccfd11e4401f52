"""Triangles of more rows than `small_matrices` solves: by products of blocks, which threads share.

The first half of the rows is solved, its product with the block of the triangle beside the others
is removed from these, and they are solved, each half in the same way. Threads share the columns.
What is computed for a column depends on the size of the triangle alone, and so do the bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from graphcore.ir import Shape, Size, TensorType

from . import dense, removal, small_matrices
from .addressing import Buffer, moved
from .batches import in_ranges
from .builder import FALSE, PARTS, TRUE, Builder, Value, integer
from .conversions import DTYPES
from .elementary import compiled, module
from .machine import Code, cached, levels
from .writer import Writer

KINDS = *dense.KINDS, *PARTS
ROWS = 48
"""The most rows of a triangle that are solved one after the other."""
MULTIPLE = 8
"""Halves have a multiple of so many rows."""
COLUMNS = 96
"""How many columns a thread solves at least."""


class Ways(NamedTuple):
    """Which triangle it is, whether it lies transposed, and whether 1 is on its diagonal."""

    lower: bool
    transposed: bool
    unit: bool


def scratch_for(kind: str, rows: Size, is_transposed: bool) -> TensorType:
    """The memory that solving a triangle of so many rows needs."""
    is_small = isinstance(rows, int) and rows <= small_matrices.MOST_SOLVED
    is_copied = not is_small and (kind in PARTS or dense.is_copied(rows, is_transposed))
    return TensorType(DTYPES[kind], dense.scratch_for(levels()[0]) if is_copied else (0,))


def solve_triangular(
    w: Writer, kind: str, shape: Shape,
    where: Callable[[tuple[Value, ...]], tuple[Value, Value]], ways: Ways, scratch: Buffer,
) -> None:  # fmt: skip
    """x of a shape becomes the y with t y = x; `where` says where those of a batch begin."""
    b, (*batch, rows, _), (n, columns) = w.b, shape, map(w.size, shape[-2:])

    def ranges() -> None:
        by_halves = partial(solve_by_halves, w, kind, rows, w.own(scratch).pointer, ways)

        def some(index: tuple[Value, ...], first: Value, many: Value) -> None:
            t, x = where(index)
            given = t, moved(b, x, first, kind), n, many, columns
            small_matrices.either(
                w,
                n,
                lambda: small_matrices.solve_triangular(w, kind, *given, *ways),
                lambda: by_halves(*given),
                small_matrices.MOST_SOLVED,
            )

        in_ranges(w, tuple(batch), columns, integer(COLUMNS), some)

    def work() -> Value:
        """Of few columns as of some: their rows wait for each other."""
        per_value = integer(dense.PRODUCTS_PER_VALUE)
        each = b.op("sdiv", b.mul(b.mul(n, n), b.add(columns, per_value)), per_value)
        return b.mul(each, w.program.count(tuple(batch)))

    w.sharing.over(work, ranges, once=True)


def solve_by_halves(
    w: Writer, kind: str, rows: Size, scratch: Value, ways: Ways,
    t: Value, x: Value, n: Value, columns: Value, apart: Value,
) -> None:  # fmt: skip
    """The same for some columns of one matrix, whose rows lie `apart`."""
    one = integer(1)
    steps = [one, n] if ways.transposed else [n, one]
    hows = [FALSE if ways.lower else TRUE, TRUE if ways.unit else FALSE]
    make = lambda: code(kind)["solve"]
    routine = w.program.routine("solve", kind, make, rows, small_matrices.MOST_SOLVED)
    w.call(routine, t, x, scratch, n, columns, apart, *steps, *hows)


@cached
def code(kind: str) -> Code:
    """The machine code of `solve` for values of a kind."""
    return compiled(solve(kind), "solve")


def solve(kind: str) -> str:
    """The IR of `solve`, which calls itself: x becomes the y with t y = x, as in `Ways`.

    The strides of t are `down`, from row to row, and `across`, from column to column; one of them
    is 1. Rows of x lie `apart`. `scratch` is memory of the shape `dense.scratch_for`, which is used
    for complex values, and if `dense.is_copied` says so.
    """
    b, one = Builder(), integer(1)
    names = "n", "columns", "apart", "down", "across"
    n, columns, apart, down, across = sizes = [Value(f"%{name}", "i64") for name in names]
    t, x, scratch = pointers = [Value(f"%{name}", "ptr") for name in ("t", "x", "scratch")]
    upper, unit = ways = [Value(f"%{name}", "i1") for name in ("upper", "unit")]

    def at_once() -> Sequence[Value]:
        first = b.select(upper, b.sub(n, one), integer(0))
        order = first, b.select(upper, integer(-1), one)
        routine = small_matrices.code("triangular", kind)["triangular"]
        call(b, routine, t, x, n, columns, apart, down, across, *order, unit)
        return ()

    def by_halves() -> Sequence[Value]:
        size, rest = halves(b, n)
        first, second = b.select(upper, rest, integer(0)), b.select(upper, integer(0), size)

        def part(begin: Value, many: Value) -> Value:
            rows = moved(b, x, b.mul(begin, apart), kind)
            corner = moved(b, t, b.mul(begin, b.add(down, across)), kind)
            call(
                b, "@solve", corner, rows, scratch, many, columns, apart, down, across, upper, unit
            )
            return rows

        solved = part(first, size)
        block = moved(b, t, b.add(b.mul(second, down), b.mul(first, across)), kind)
        left = moved(b, x, b.mul(second, apart), kind)
        steps = down, across, apart, one, apart, size
        remove = removal.code(kind)["remove"]
        call(b, remove, block, solved, left, left, scratch, rest, size, columns, *steps, FALSE)
        part(second, rest)
        return ()

    b.branch(b.op("icmp sle", n, integer(ROWS)), at_once, by_halves)
    b.do("ret void")
    given = ", ".join([value.typed for value in (*pointers, *sizes, *ways)])
    return module(f"define void @solve({given})", b)


def halves(b: Builder, n: Value) -> tuple[Value, Value]:
    """How many of n rows the first half has, and how many are left."""
    half = b.op("sdiv", b.add(n, integer(2 * MULTIPLE - 1)), integer(2 * MULTIPLE))
    size = b.mul(half, integer(MULTIPLE))
    return size, b.sub(n, size)


def call(b: Builder, routine: str | int, *given: Value) -> None:
    """Call a routine by its name, or by its address."""
    text = routine if isinstance(routine, str) else f"inttoptr (i64 {routine} to ptr)"
    b.do(f"call void {text}({', '.join([x.typed for x in given])})", *given)
