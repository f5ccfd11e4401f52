"""Factors of larger matrices, and cotangents of Cholesky's: panel after panel.

Threads share the rows and columns of a panel. From one of Cholesky's the products of the panels
before it are removed; its block on the diagonal is factored, and the rows below are solved.
Cotangents take the same steps from the last to the first (Murray 2016, "Differentiation of the
Cholesky decomposition", section 4). Blocks are computed in memory where columns lie side by side.
The bits depend on the size of the matrix alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from graphcore.ir import Size, TensorType

from . import blocked, dense, lu_routines, panel_routines, removal
from .addressing import Buffer, moved
from .batches import in_ranges
from .builder import FALSE, TRUE, WIDTH, Value, integer
from .conversions import DTYPES
from .machine import levels
from .small_matrices import MOST_PULLED_BACK
from .writer import Writer

PANEL = 128
"""The columns of a panel."""
APART = PANEL + WIDTH
"""How far rows of the block on the diagonal lie apart, so that they do not compete for a cache."""
BAND = 96
"""How many rows below it are solved together, and how many a thread takes at least."""
MOST_BY_LAPACK = 96
"""The most rows that LAPACK factors: of more it does so by threads of its own."""


def address(name: str, kind: str) -> int:
    """Where a routine is: one for panels, or those that solve and remove."""
    if name in lu_routines.WRITTEN:
        return lu_routines.code(name, kind)[name]
    if name in panel_routines.WRITTEN:
        return panel_routines.code(name, kind)[name]
    return removal.code(kind)[name] if name == "remove" else blocked.code(kind)[name]


class Routines:
    """What works on panels of a matrix with `n` rows, which lie row by row.

    Routines are made for matrices of more than `most` rows.
    """

    def __init__(self, w: Writer, kind: str, size: Size, most: int) -> None:
        self.w, self.b, self.kind, self.size, self.most = w, w.b, kind, size, most
        self.n = w.size(size)

    def at(self, matrix: Value, row: Value, column: Value) -> Value:
        """Where an element lies."""
        return moved(self.b, matrix, self.b.add(self.b.mul(row, self.n), column), self.kind)

    def over(self, *sizes: Value, shared: Callable[[], None]) -> None:
        """A loop that threads share, of products of such sizes."""

        def work() -> Value:
            products = self.b.mul(self.b.mul(sizes[0], sizes[1]), sizes[2])
            return self.b.op("sdiv", products, integer(dense.PRODUCTS_PER_VALUE))

        self.w.sharing.over(work, shared, once=True)

    def run(self, name: str, *given: Value) -> None:
        """Call one of the routines for panels, or of those that solve and multiply."""
        w, kind = self.w, self.kind
        make = partial(address, name, kind)
        w.call(w.program.routine(name, kind, make, self.size, self.most), *given)


class Panels(Routines):
    """The same for matrices that are symmetric, with memory: `blocks` of it for the diagonal's."""

    def __init__(self, w: Writer, kind: str, size: Size, most: int, blocks: int) -> None:
        super().__init__(w, kind, size, most)
        shapes = dense.scratch_for(levels()[0]), (PANEL, BAND), *[(PANEL, APART)] * blocks
        self.types = [TensorType(DTYPES[kind], shape) for shape in shapes]
        self.taken, memory = zip(*map(w.program.take, self.types), strict=True)
        self.scratch, self.band, *self.blocks = memory

    def of_thread(self, *memory: Value) -> list[Value]:
        """The scratch memory, or that of a band, of each thread in the loop that is shared."""
        types = dict(zip((self.scratch, self.band), self.types, strict=False))
        own, bytes = self.w.sharing.own, self.w.program.bytes
        return [own(pointer, partial(bytes, types[pointer])) for pointer in memory]

    def solve_rows(
        self, x: Value, corner: Value, rows: Value, many: Value, transposed: bool,
        memory: Sequence[Value],
    ) -> None:  # fmt: skip
        """Rows from x on become the y with y tᵀ = x, or y t = x, for the lower t at a corner."""
        b, run, n, one, apart = self.b, self.run, self.n, integer(1), integer(BAND)
        scratch, band = memory
        ways = (n, one, FALSE, FALSE) if transposed else (one, n, TRUE, FALSE)

        def some(i: Value) -> Sequence[Value]:
            size, own = b.call("smin", b.sub(rows, i), apart), self.at(x, i, integer(0))
            run("copy_transposed", own, band, size, many, n, apart, FALSE)
            run("solve", corner, band, scratch, many, size, apart, *ways)
            run("copy_transposed", band, own, many, size, apart, n, FALSE)
            return ()

        self.w.places.looped(integer(0), rows, BAND, (), some)

    def give_back(self) -> None:
        """Let others take the memory."""
        for memory in self.taken:
            self.w.program.give_back(memory)


def cholesky(w: Writer, kind: str, size: Size, a: Value, info: Value) -> None:
    """The lower triangle becomes l with a = l lᵀ, and 0 stays above; `info` becomes 1 without l."""
    panels = Panels(w, kind, size, MOST_BY_LAPACK, 1)
    b, run, at, n, (block,) = w.b, panels.run, panels.at, panels.n, panels.blocks
    zero, one = integer(0), integer(1)

    def panel(k: Value) -> Sequence[Value]:
        many = b.call("smin", b.sub(n, k), integer(PANEL))
        left, below = b.sub(n, k), b.add(k, many)

        def removed() -> None:
            (scratch,) = panels.of_thread(panels.scratch)

            def rows(_: object, first: Value, size: Value) -> None:
                row = b.add(k, first)
                x, y, z = at(a, row, zero), at(a, k, zero), at(a, row, k)
                strides = n, one, one, n, n, k
                run("remove", x, y, z, z, scratch, size, k, many, *strides, FALSE)

            in_ranges(w, (), left, integer(BAND), rows)

        def solved() -> None:
            memory = panels.of_thread(panels.scratch, panels.band)

            def rows(_: object, first: Value, size: Value) -> None:
                x = at(a, b.add(below, first), k)
                panels.solve_rows(x, at(a, k, k), size, many, True, memory)

            in_ranges(w, (), b.sub(n, below), integer(BAND), rows)

        corner = at(a, k, k)
        panels.over(left, k, many, shared=removed)
        run("copy_transposed", corner, block, many, many, n, integer(APART), FALSE)
        run("factor", block, panels.scratch, info, many, integer(APART))
        run("copy_transposed", block, corner, many, many, integer(APART), n, TRUE)
        panels.over(b.sub(n, below), many, many, shared=solved)
        return ()

    w.places.looped(zero, n, PANEL, (), panel)
    panels.give_back()


def cholesky_cotangent(w: Writer, kind: str, lower: Value, g: Value, size: Size) -> None:
    """The lower triangle of g becomes the cotangent of a = l lᵀ for that of l; 0 stays above.

    With the rows r of l before the block d on the diagonal, and b and c below them, the last first:
    c̄ = c̄ d⁻¹, b̄ -= c̄ r, [r̄ d̄] -= c̄ᵀ [b c], d̄ is pulled back, and r̄ -= (d̄ + d̄ᵀ) r.
    """
    panels = Panels(w, kind, size, MOST_PULLED_BACK, 3)
    b, run, at, n, (block, own, both) = w.b, panels.run, panels.at, panels.n, panels.blocks
    zero, one, apart = integer(0), integer(1), integer(APART)
    count = b.op("sdiv", b.add(n, integer(PANEL - 1)), integer(PANEL))

    def panel(number: Value) -> Sequence[Value]:
        k = b.mul(b.sub(b.sub(count, one), number), integer(PANEL))
        many = b.call("smin", b.sub(n, k), integer(PANEL))
        below = b.add(k, many)
        left = b.sub(n, below)

        def solved() -> None:
            memory = panels.of_thread(panels.scratch, panels.band)

            def rows(_: object, first: Value, size: Value) -> None:
                row = b.add(below, first)
                x, y, z = at(g, row, k), at(lower, k, zero), at(g, row, zero)
                panels.solve_rows(x, at(lower, k, k), size, many, False, memory)
                strides = n, one, n, one, n, many
                run("remove", x, y, z, z, memory[0], size, many, k, *strides, FALSE)

            in_ranges(w, (), left, integer(BAND), rows)

        def removed(
            x: Value, y: Value, inner: Value, columns: Value, steps: Sequence[Value]
        ) -> None:
            (scratch,) = panels.of_thread(panels.scratch)

            def some(_: object, first: Value, size: Value) -> None:
                right, z = at(y, zero, first), at(g, k, first)
                strides = *steps, n, one, n, inner
                run("remove", x, right, z, z, scratch, many, inner, size, *strides, FALSE)

            in_ranges(w, (), columns, integer(blocked.COLUMNS), some)

        of_below = at(g, below, k), at(lower, below, zero), left, below, (one, n)
        panels.over(left, below, many, shared=solved)
        panels.over(left, below, many, shared=partial(removed, *of_below))
        run("copy_transposed", at(lower, k, k), block, many, many, n, apart, FALSE)
        run("copy_transposed", at(g, k, k), own, many, many, n, apart, FALSE)
        run("pull_back", block, own, both, panels.scratch, many, apart)
        run("copy_transposed", own, at(g, k, k), many, many, apart, n, TRUE)
        run("add_transpose", own, both, many, apart)
        of_block = both, at(lower, k, zero), many, k, (apart, one)
        panels.over(many, k, many, shared=partial(removed, *of_block))
        return ()

    w.places.looped(zero, count, 1, (), panel)
    panels.give_back()


def lu(
    w: Writer, kind: str, size: Size, a: Value, exchanges: Value, info: Value, scratch: Buffer
) -> None:
    """The matrix becomes l and u with a p = l u; `info` the number of the first pivot that is 0.

    The columns of a panel of rows are exchanged as its pivots need it; threads share the rows
    below, which they eliminate. Columns of the rows above are exchanged at the end.
    """
    routines = Routines(w, kind, size, MOST_BY_LAPACK)
    b, run, at, n, zero = w.b, routines.run, routines.at, routines.n, integer(0)

    def after(k: Value) -> Value:
        return b.call("smin", b.add(k, integer(PANEL)), n)

    def panel(k: Value) -> Sequence[Value]:
        below = after(k)
        many, left = b.sub(below, k), b.sub(n, below)

        def eliminated() -> None:
            own = w.own(scratch)

            def rows(_: object, first: Value, size: Value) -> None:
                x = at(a, b.add(below, first), zero)
                run("eliminate", x, at(a, k, zero), exchanges, own.pointer, size, k, many, n)

            in_ranges(w, (), left, integer(BAND), rows)

        run("lu", at(a, k, zero), exchanges, scratch.pointer, info, k, many, n)
        routines.over(left, many, left, shared=eliminated)
        return ()

    def exchanged(k: Value) -> Sequence[Value]:
        below = after(k)
        run("exchange", at(a, k, zero), exchanges, b.sub(below, k), below, b.sub(n, below), n)
        return ()

    b.do(f"store i32 0, {info.typed}", info)
    w.places.looped(zero, n, PANEL, (), panel)
    w.places.looped(zero, n, PANEL, (), exchanged)
