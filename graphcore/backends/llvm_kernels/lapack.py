"""Factors and solutions of matrices: calls of BLAS and LAPACK, one for each of a batch.

BLAS reads columns first, so that it takes a matrix that lies row by row as its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from graphcore.backends.numpy_backend.linalg import SINGULAR
from graphcore.ir import Node, TensorType
from graphcore.ops import elementwise as e
from graphcore.ops import linalg
from graphcore.ops import tensor as t

from . import blocked, capsules, dense, panels, small_matrices
from .addressing import Buffer, Index
from .arithmetic import kind_of, literal, rule_of
from .batches import each, each_shared, entries, work_of_batch
from .blocked import Ways
from .builder import TRUE, Value, integer
from .entrance import Address
from .places import At
from .results import finished
from .storing import reaches
from .writer import Homes, Writer

ROUTINES = {
    linalg.cholesky: ("potrf",),
}
"""The routines that an op needs."""


def has_routines(node: Node, names: Sequence[str]) -> bool:
    """Whether SciPy has the routines that an op on matrices needs."""
    return all(capsules.address(name, kind_of(node.inputs[0])) for name in names)


def is_for_routines(node: Node) -> bool:
    """Whether an op is on floats of a precision for which there are routines."""
    return kind_of(node) in capsules.LETTERS


def is_matrix_transpose(x: Node) -> bool:
    """Whether a node is a transpose of matrices, all of a batch in place."""
    n = x.type.ndim
    return x.op is t.transpose and x.attrs["perm"] == (*range(n - 2), n - 1, n - 2)


def lying(x: Node) -> Node:
    """The node that has to lie in memory for an operand: the operand of a transpose of matrices."""
    return x.inputs[0] if is_matrix_transpose(x) else x


# ---- calls


CALL = 2**12
"""The work of calling a routine, in instructions."""


class Call:
    """A routine for values of a kind, and the cells that it reads its arguments from."""

    def __init__(self, w: Writer, name: str, kind: str) -> None:
        address = capsules.address(name, kind)
        assert address is not None, f"there is no {name} of {kind}"
        self.w, self.b, self.kind = w, w.b, kind
        self.routine = w.program.shared((name, kind), Address(address))

    def cell(self, *values: Value) -> Value:
        """A place on the stack that holds values."""
        b, type = self.b, values[0].type
        level, name = b.part.level if b.part else 0, f"%{b.name('cell')}"
        b.lines[level].insert(0, f"  {name} = alloca {type}, i32 {len(values)}")
        for n, x in enumerate(values):
            b.do(f"{name}.{n} = getelementptr {type}, ptr {name}, i64 {n}")
            b.do(f"store {x.typed}, ptr {name}.{n}", x)
        return Value(name, "ptr", 0, level)

    def info(self) -> Value:
        """What a routine says of its end: 0 is well."""
        return self.cell(integer(0, "i32"))

    def size(self, x: Value) -> Value:
        """An integer of 32 bits, which larger sizes have been refused for."""
        return self.cell(self.b.convert("trunc", x, "i32"))

    def stride(self, x: Value) -> Value:
        """How far apart columns are, which is at least 1."""
        return self.size(self.b.call("smax", x, integer(1)))

    def number(self, x: float) -> Value:
        """A factor."""
        part = {"c64": "f32", "c128": "f64"}.get(self.kind, self.kind)
        parts = [literal(x, part), literal(0.0, part)][: 1 + (part != self.kind)]
        return self.cell(*parts)

    def __call__(self, *args: str | Value) -> None:
        """Letters, cells and pointers, as the routine has them."""
        self.w.call(
            self.routine,
            *[x if isinstance(x, Value) else self.cell(integer(ord(x), "i8")) for x in args],
        )
        self.b.signals.work += CALL


def check_sizes(
    w: Writer, node: Node, *sizes: Value, reason: str = "an axis of 2**31 or more"
) -> None:
    """Leave if a size has more than 31 bits."""
    b = w.b
    for x in sizes:
        if x.number is None or x.number >= 2**31:
            wrong = b.op("icmp sge", x, integer(2**31))
            w.program.failures.failed(b, wrong, node, reason)


def matrix(w: Writer, buffer: Buffer, type: TensorType, at: Value) -> Buffer:
    """A matrix of a batch."""
    one = TensorType(type.dtype, type.shape[-2:])
    return buffer._replace(pointer=w.row(buffer.pointer, one, at), shape=buffer.shape[-2:])


# ---- factors and solutions


def may_be_in_panels(node: Node, most: int = panels.MOST_BY_LAPACK) -> bool:
    """Whether an op on matrices may work in panels: on known ones of more rows than `most` does."""
    kinds = dense.KINDS if node.op in MATRICES else blocked.KINDS
    a = node.inputs[0]
    n = a.type.shape[-1]
    return kind_of(a) in kinds and not (isinstance(n, int) and n <= most)


def cholesky(w: Writer, node: Node, homes: Homes) -> None:
    """l with a = l lᴴ, in the buffer of the result. LAPACK, by columns, sees the transpose of l."""
    b, (a,), buffer = w.b, node.inputs, w.home(node)
    n, by_lapack = w.size(node.type.shape[-1]), buffer.kind not in dense.KINDS
    if by_lapack:
        check_sizes(w, node, n)

    store_lower(w, a, buffer)
    call = Call(w, "potrf", buffer.kind)

    def one(at: Value, index: tuple[Value, ...]) -> None:
        own, info = matrix(w, buffer, node.type, at), call.info()

        def called() -> None:
            call("U", call.size(n), own.pointer, call.stride(n), info)

        def larger() -> None:
            if by_lapack:
                return called()
            rows = node.type.shape[-1]
            panels_of = partial(panels.cholesky, w, buffer.kind, rows, own.pointer, info)
            return small_matrices.either(w, n, called, panels_of, panels.MOST_BY_LAPACK)

        small = partial(small_matrices.cholesky, w, buffer.kind, own.pointer, n, info)
        small_matrices.either(w, n, small, larger, small_matrices.MOST_ROWS)

        def lost() -> Sequence[Value]:
            without_result(w, node, "the matrix is not positive definite", index, own, [a])
            return ()

        b.branch(is_set(w, info), lost)

    def work() -> Value:
        """None where LAPACK uses threads of its own."""
        values, many = work_of_batch(w, batch, [n]), small_matrices.MOST_SOLVED + 1
        return b.select(reaches(b, n, many), integer(0), values) if by_lapack else values

    batch = node.type.shape[:-2]
    each_shared(w, batch, work, lambda: one)
    finished(w, node, homes, buffer)


def store_lower(w: Writer, x: Node, buffer: Buffer) -> None:
    """The lower triangles of matrices, and 0 above them."""
    p, b = w.places, w.b

    def lower(index: At, mask: Value) -> None:
        below = b.op("icmp sle", p.spelled(index[-1]), p.spelled(index[-2]))
        value = b.select(below, p.at(x, index, mask), literal(0, kind_of(x)))
        p.store(buffer, index, mask, value)

    with w.sharing.aside():
        w.everywhere(x.type.shape, lower)


def cholesky_cotangent(w: Writer, node: Node, homes: Homes) -> None:
    """In the buffer of the result, which has the cotangents of the factors before."""
    (factor, g), buffer, rows = node.inputs, w.home(node), node.type.shape[-1]
    n = w.size(rows)
    store_lower(w, g, buffer)

    def one(at: Value, _: tuple[Value, ...]) -> None:
        own, lower = matrix(w, buffer, node.type, at), matrix(w, w.lying(factor), node.type, at)
        given = w, buffer.kind, lower.pointer, own.pointer
        small = partial(small_matrices.pull_back, *given, n)
        larger = partial(panels.cholesky_cotangent, *given, rows)
        small_matrices.either(w, n, small, larger, small_matrices.MOST_PULLED_BACK)

    batch = node.type.shape[:-2]
    each_shared(w, batch, partial(work_of_batch, w, batch, [n]), lambda: one)
    finished(w, node, homes, buffer)


def solve_triangular(w: Writer, node: Node, homes: Homes) -> None:
    """x with t x = b, in the buffer of the result: xᵀ tᵀ = bᵀ."""
    attrs, (a, right) = node.attrs, node.inputs
    buffer, factor = w.home(node), w.lying(lying(a))
    n, columns = map(w.size, node.type.shape[-2:])
    w.copy(right, [buffer], stored=True)
    if attrs["check"] and not attrs["unit"]:
        refuse_singular(w, node, n, columns)
    batch, ways = node.type.shape[:-2], Ways(attrs["lower"], is_matrix_transpose(a), attrs["unit"])

    def where(index: tuple[Value, ...]) -> tuple[Value, Value]:
        at = w.places.place([*map(Index, index)], [*map(w.size, batch)]).base
        t, x = matrix(w, factor, a.type, at), matrix(w, buffer, node.type, at)
        return t.pointer, x.pointer

    scratch = w.new(node, blocked.scratch_for(buffer.kind, node.type.shape[-2], ways.transposed))
    blocked.solve_triangular(w, buffer.kind, node.type.shape, where, ways, scratch)
    finished(w, node, homes, buffer)


def refuse_singular(w: Writer, node: Node, n: Value, columns: Value) -> None:
    """Leave at the first matrix with 0 on its diagonal, if there is anything to solve."""
    b, a = w.b, node.inputs[0]
    wanted = b.op("icmp sgt", columns, integer(0))

    def one(at: Value, index: tuple[Value, ...]) -> None:
        def place(i: Index) -> Sequence[Value]:
            value = w.places.at(a, (*map(Index, index), i, i))
            zero = rule_of(e.equal, value.kind)(b, value, literal(0, value.kind))
            w.program.failures.failed(b, b.both(zero, wanted), node, SINGULAR, index)
            return ()

        w.places.each(n, (), place, 0)

    each(w, node.type.shape[:-2], one)


# ---- matrices without a result


def without_result(
    w: Writer,
    node: Node,
    reason: str,
    index: tuple[Value, ...],
    own: Buffer,
    known: Sequence[Node],
) -> None:
    """Leave, as a matrix has no result, or put nan into that.

    With `check` it is an error, if all that is `known` is finite.
    """
    b, nan = w.b, literal(float("nan"), own.kind)
    if node.attrs["check"]:
        finite: Value = TRUE
        for x in known:
            finite = b.both(finite, is_finite(w, x, index))
        w.program.failures.failed(b, finite, node, reason, index)
    rows, columns = own.shape
    entries(w, rows, columns, lambda i, j: w.places.store(own, (i, j), TRUE, nan))


def is_set(w: Writer, info: Value) -> Value:
    """Whether a routine has returned anything but 0."""
    found = w.b.now("i32", f"load i32, {info.typed}", 0, info)
    return w.b.now("i1", f"icmp ne {found.typed}, 0", 0, found)


def is_finite(w: Writer, x: Node, index: tuple[Value, ...]) -> Value:
    """Whether a matrix of a batch is finite."""
    p, b = w.places, w.b
    rows, columns = map(w.size, x.type.shape[-2:])

    def row(i: Index, now: Value) -> Sequence[Value]:
        def column(j: Index, now: Value) -> Sequence[Value]:
            value = p.at(x, (*map(Index, index), i, j))
            return [b.op("and", now, rule_of(e.isfinite, value.kind)(b, value))]

        return p.each(columns, [now], column, 0)

    return p.each(rows, [TRUE], row, 0)[0]


def side_by_side(
    w: Writer, rows: Value, columns: Value, body: Callable[[Index, Index, Value], None]
) -> None:
    """body(i, j, mask) for the entries of a matrix, several of a row at once."""

    def row(i: Index) -> Sequence[Value]:
        def several(j: Index, mask: Value) -> Sequence[Value]:
            body(i, j, mask)
            return ()

        w.places.lanes(columns, (), several)
        return ()

    w.places.each(rows, (), row, 0)


MATRICES = {
    linalg.cholesky: cholesky,
    linalg.cholesky_cotangent: cholesky_cotangent,
    linalg.solve_triangular: solve_triangular,
}
