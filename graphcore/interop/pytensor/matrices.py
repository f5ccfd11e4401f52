"""Rules of linear algebra; `Blockwise` is the rule of its core op on tensors with more dims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.frontend.core.base import Tensor

from .refused import Unsaid
from .rules import Apply, apply, lifted, rule
from .values import Value, axes, axis, full, is_known, lift, new_names, number, numbers, renamed

ROW, COL = axis(0), axis(1)
M = (ROW, COL)


@rule("Blockwise", "BlockwiseWithCoreShape")
def blockwise(node: Apply, *operands: Value) -> Sequence[Value]:
    """A core op for each position along the first axes, which are dims of other names."""
    op = node.op
    n = op.batch_ndim(node)
    core = op._create_dummy_core_node(node.inputs)
    names = new_names([f"batch {i}" for i in range(n)], *operands)
    batch = {axis(i): name for i, name in enumerate(names)}
    inner = [core_operand(x, v.type, n, batch) for x, v in zip(operands, node.inputs, strict=True)]
    outer = dict(zip(names, axes(n), strict=True))
    sizes = {dim: k for x in inner if isinstance(x, Tensor) for dim, k in x.sizes.items()}
    found: list[Value] = []
    for y, v in zip(apply(core, inner), core.outputs, strict=True):
        made = lift(y, v.type)
        alike = {dim: sizes[dim] for dim in names if dim in sizes and dim not in made.dims}
        core_dims = {axis(i): axis(n + i) for i in range(v.type.ndim)}
        found.append(renamed(gc.full(alike, made) if alike else made, core_dims | outer))
    return found


def core_operand(x: Value, type: Any, n: int, batch: dict[str, str]) -> Value:
    """An operand of a core op: its first axes have the names of the batch."""
    if is_known(x) and all(size == 1 for size in type.shape[:n]):
        return x.reshape(x.shape[n:])
    core = {axis(n + i): axis(i) for i in range(type.ndim - n)}
    return renamed(lift(x, type), batch | core)


@rule("Dot")
@lifted
def dot(node: Apply, x: Tensor, y: Tensor) -> Value:
    """A product of matrices and vectors."""
    n, m = (v.type.ndim for v in node.inputs)
    along, right = new_names(["along", "right"], x, y)
    x, y = full(x, node.inputs[0].type, [n - 1]), full(y, node.inputs[1].type, [max(m - 2, 0)])
    x = renamed(x, {axis(n - 1): along})
    y = renamed(y, {axis(0): along, axis(1): right})
    return renamed(gc.dot(x, y, dim=along), {right: axis(n - 1)})


@rule("BatchedDot")
@lifted
def batched_dot(node: Apply, x: Tensor, y: Tensor) -> Value:
    """A product of matrices for each position along the first axis."""
    x, y = full(x, node.inputs[0].type), full(y, node.inputs[1].type)
    (along,) = new_names(["along"], x, y)
    return gc.dot(renamed(x, {axis(2): along}), renamed(y, {axis(1): along}), dim=along)


# ---- systems of equations


def solved(name: str, solve: Callable[[Any, Tensor, Tensor], Tensor]) -> None:
    """Registers a solver of `a x = b`, where a has the dims "row" and "col", and b "row"."""

    @rule(name)
    def made(node: Apply, a: Value, b: Value) -> Value:
        matrix, right = full(a, node.inputs[0].type), full(b, node.inputs[1].type)
        row, col = new_names(["row", "col"], matrix, right)
        matrix = renamed(matrix, {ROW: row, COL: col}).rename({row: "row", col: "col"})
        solution = solve(node.op, matrix, renamed(right, {ROW: "row"}))
        return renamed(solution, {"col": ROW, "row": ROW})


solved("Solve", lambda op, a, b: general(op, a, b))
solved("SolveTriangular", lambda op, a, b: triangular(op, a, b))
solved("CholeskySolve", lambda op, a, b: from_factor(a, b, op.lower))


def general(op: Any, a: Tensor, b: Tensor) -> Tensor:
    """The solution for a matrix of some kind."""
    if getattr(op, "assume_a", "gen") != "pos":
        return gc.linalg.solve(read(op, a), b, check=False)
    return from_factor(gc.linalg.cholesky(a, upper=not op.lower, check=False), b, op.lower)


def read(op: Any, a: Tensor) -> Tensor:
    """A matrix; where it is said to be symmetric, what one of its triangles says."""
    kind = getattr(op, "assume_a", "gen")
    if kind not in ("sym", "her"):
        return a
    return hermitian(a, op.lower) if kind == "her" else symmetric(a, op.lower)


def symmetric(a: Tensor, lower: bool) -> Tensor:
    """The symmetric matrix that has this triangle of `a`."""
    part = gc.tril if lower else gc.triu
    return part(a) + part(a, k=-1 if lower else 1).rename(row="col", col="row")


def hermitian(a: Tensor, lower: bool) -> Tensor:
    """The Hermitian matrix that has this triangle of `a`."""
    part = gc.tril if lower else gc.triu
    return part(a) + gc.conj(part(a, k=-1 if lower else 1)).rename(row="col", col="row")


def triangular(op: Any, a: Tensor, b: Tensor) -> Tensor:
    """The solution for one triangle of a matrix."""
    part = gc.tril if op.lower else gc.triu
    own = {"lower": op.lower, "unit_diagonal": op.unit_diagonal, "check": False}
    try:
        return gc.linalg.solve_triangular(a, b, **own)
    except gc.GraphError:  # the other triangle is known to be the one that is not zero
        return gc.linalg.solve_triangular(part(a * 1), b, **own)


def from_factor(a: Tensor, b: Tensor, lower: bool) -> Tensor:
    """The solution of `l l^H x = b`, where l is a factor, or its conjugate transposed."""
    if not lower:
        a = gc.conj(a).rename(row="col", col="row")
    half = gc.linalg.solve_triangular(a, b, lower=True, check=False)
    return gc.linalg.solve_triangular(gc.conj(a), half, ("col", "row"), check=False)


# ---- functions of a matrix


def of_matrix(name: str, function: Callable[[Any, Tensor], Value | Sequence[Value]]) -> None:
    """Registers a function of an op and a matrix with the dims "d0", "d1"."""

    @rule(name)
    def made(node: Apply, x: Value) -> Value | Sequence[Value]:
        return function(node.op, full(x, node.inputs[0].type))


def swapped(x: Tensor) -> Tensor:
    """A matrix whose dims come the other way round."""
    return x.rename({ROW: COL, COL: ROW})


def cholesky(op: Any, x: Tensor) -> Tensor:
    """The triangular factor; nan where the matrix is not positive definite."""
    return gc.linalg.cholesky(x, M, upper=not op.lower, check=False)


def factors_qr(op: Any, x: Tensor) -> list[Value]:
    """Q and R, as the mode says."""
    if op.mode == "raw" or op.pivoting:
        what = "the raw form of QR" if op.mode == "raw" else "QR with pivots"
        raise Unsaid(f"{what} has no counterpart", 'use mode="economic" or "full"')
    mode = "reduced" if op.mode == "economic" else "complete"
    q, r = gc.linalg.qr(x, M, mode=mode, new="rank")
    r = r.rename({"rank": ROW})
    return [r] if op.mode == "r" else [q.rename({"rank": COL}), r]


def factors_svd(op: Any, x: Tensor) -> list[Value]:
    """The singular values and their vectors."""
    if not op.compute_uv:
        return [gc.linalg.svdvals(x, M, new="rank").rename(rank=ROW)]
    new = ("left", "rank", "right") if op.full_matrices else "rank"
    u, s, vh = gc.linalg.svd(x, M, full_matrices=op.full_matrices, new=new)
    left, right = ("left", "right") if op.full_matrices else ("rank", "rank")
    return [u.rename({left: COL}), s.rename(rank=ROW), vh.rename({right: ROW})]


def factors_lu(op: Any, x: Tensor) -> list[Value]:
    """L and U, and the permutation as a matrix, as positions, or in the rows of L."""
    permutation, lower, upper = gc.linalg.lu(x, M, new="pivot")
    lower, upper = lower.rename(pivot=COL), upper.rename(pivot=ROW)
    back = gc.argsort(permutation, ROW)
    if op.permute_l:
        return [lower.isel({ROW: back}), upper]
    if op.p_indices:
        return [back, lower, upper]
    columns = gc.arange(back.sizes[ROW], dim=COL)
    return [gc.astype(gc.equal(back, columns), x.dtype.type().real.dtype), lower, upper]


def packed_lu(op: Any, x: Tensor) -> list[Value]:
    """L and U in one matrix, and LAPACK's pivots: the row that each row is swapped with."""
    permutation, lower, upper = gc.linalg.lu(x, M, new="pivot")
    both = gc.tril(lower.rename(pivot=COL), M, k=-1) + upper.rename(pivot=ROW)
    rows = gc.arange(x.sizes[ROW], dim="row")

    def swap(order: Tensor, step: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        i, wanted = step
        at = gc.sum(gc.where(gc.equal(order, wanted), rows, 0), "row")
        return exchange(order, i, at), at

    steps = gc.arange(x.sizes[ROW], dim="step")
    _, pivots = gc.scan(swap, rows, (steps, permutation.rename({ROW: "step"})), "step")
    return [both, pivots.rename(step=ROW)]


def exchange(order: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """`order` with two of its elements exchanged."""
    rows = gc.arange(order.sizes["row"], dim="row")
    a, b = (gc.sum(gc.where(gc.equal(rows, k), order, 0), "row") for k in (i, j))
    return gc.where(gc.equal(rows, i), b, gc.where(gc.equal(rows, j), a, order))


@rule("PivotToPermutations")
@lifted
def permutation(node: Apply, pivots: Tensor) -> Value:
    """The permutation that swaps of rows make, or its inverse."""
    steps = full(pivots, node.inputs[0].type).rename({ROW: "step"})
    n = steps.sizes["step"]
    each = gc.arange(n, dim="step"), gc.astype(steps, "int64")
    order, _ = gc.scan(
        lambda order, step: (exchange(order, *step), None), gc.arange(n, dim="row"), each, "step"
    )
    order = order.rename(row=ROW)
    return order if node.op.inverse else gc.argsort(order, ROW)


def eigen(op: Any, x: Tensor) -> list[Value]:
    """Eigenvalues and eigenvectors."""
    w, v = gc.linalg.eig(x, M, new="eigen")
    return [w.rename(eigen=ROW), v.rename(eigen=COL)]


def is_lower(op: Any) -> bool:
    """Whether an op reads the lower triangle."""
    return bool(getattr(op, "lower", getattr(op, "UPLO", "L") == "L"))


@rule("Eigh", "Eigvalsh")
def eigen_hermitian(node: Apply, x: Value, *metric: Value) -> Sequence[Value]:
    """Eigenvalues, and eigenvectors, of a Hermitian matrix."""
    matrix, lower = full(x, node.inputs[0].type), is_lower(node.op)
    names = {ROW: "row", COL: "col"}
    if metric:
        other = full(metric[0], node.inputs[1].type).rename(names)
        found = generalized(hermitian(matrix.rename(names), lower), other, lower)
    elif len(node.outputs) == 1:
        found = [gc.linalg.eigvalsh(matrix, M, lower=lower, new="eigen")]
    else:
        found = [*gc.linalg.eigh(matrix, M, lower=lower, new="eigen")]
    names = {"row": ROW, "eigen": COL}
    w, *vectors = found
    return [w.rename(eigen=ROW), *[renamed(v, names) for v in vectors]]


def generalized(a: Tensor, b: Tensor, lower: bool) -> list[Tensor]:
    """`a v = w b v`: with `b = l l^H`, it is `c (l^H v) = w (l^H v)` for `c = l^-1 a l^-H`."""
    factor = gc.linalg.cholesky(b, upper=not lower, check=False)
    if not lower:
        factor = gc.conj(factor).rename(row="col", col="row")
    half = gc.linalg.solve_triangular(factor, a.rename(col="other"), lower=True, check=False)
    turned = gc.conj(half).rename(other="row", col="other")
    c = gc.linalg.solve_triangular(factor, turned, lower=True, check=False)
    w, v = gc.linalg.eigh(gc.conj(c), ("other", "col"), new="eigen")
    right = gc.conj(factor), v.rename(other="col")
    return [w, gc.linalg.solve_triangular(*right, ("col", "row"), check=False)]


of_matrix("Cholesky", cholesky)
of_matrix("Det", lambda op, x: gc.linalg.det(x, M))
of_matrix("Eig", eigen)
of_matrix("Expm", lambda op, x: gc.linalg.expm(x, M))
of_matrix("LU", factors_lu)
of_matrix("LUFactor", packed_lu)
of_matrix("MatrixInverse", lambda op, x: swapped(gc.linalg.inv(x, M, check=False)))
of_matrix("MatrixPinv", lambda op, x: swapped(gc.linalg.pinv(x, M)))
of_matrix("QR", factors_qr)
of_matrix("SLogDet", lambda op, x: [*gc.linalg.slogdet(x, M)])
of_matrix("SVD", factors_svd)


@rule("BlockDiagonal")
def block_diagonal(node: Apply, *xs: Value) -> Value:
    """Matrices along a diagonal, zeros elsewhere."""
    return gc.linalg.block_diag(*[full(x, v.type) for x, v in zip(xs, node.inputs)], dims=M)


@rule("Convolve1d", "Convolve2d")
def convolved(node: Apply, x: Value, y: Value, whole: Value) -> Value:
    """A convolution, whole or where both overlap fully."""
    a, b = (full(z, v.type) for z, v in zip((x, y), node.inputs))
    dims = axes(node.op.ndim)
    if is_known(whole):
        return gc.signal.convolve(a, b, dims, "full" if np.asarray(whole) else "valid")
    is_full = lift(whole, node.inputs[2].type)
    made = gc.signal.convolve(a, b, dims, "full")
    for dim in dims:  # the sizes say which it is, and where both overlap fully
        n, m = (gc.full({}, x.sizes[dim]) for x in (a, b))
        start = gc.where(is_full, 0, gc.minimum(n, m) - 1)
        stop = gc.where(is_full, n + m - 1, gc.maximum(n, m))
        ends = number(start, "where both overlap"), number(stop, "where both overlap")
        made = made.isel({dim: slice(*ends)})
    return made


def spectrum(y: Tensor, n: int) -> Tensor:
    """Real and imaginary parts along a new last axis."""
    parts = [part.expand_dims({axis(n): 1}) for part in (gc.real(y), gc.imag(y))]
    return gc.concat(parts, axis(n))


@rule("RFFTOp")
def rfft(node: Apply, x: Value, sizes: Value) -> Value:
    """The Fourier transform along all axes but the first."""
    n = node.inputs[0].type.ndim
    lengths = dict(zip(axes(n - 1, 1), numbers(sizes, n - 1, "a length")))
    return spectrum(gc.fft.rfftn(full(x, node.inputs[0].type), [*lengths], lengths), n)


@rule("IRFFTOp")
def irfft(node: Apply, x: Value, sizes: Value) -> Value:
    """The inverse transform along all axes but the first, without its factor 1/n."""
    n = node.inputs[0].type.ndim - 1
    lengths = dict(zip(axes(n - 1, 1), numbers(sizes, n - 1, "a length")))
    parts = full(x, node.inputs[0].type)
    whole = parts.isel({axis(n): 0}) + 1j * parts.isel({axis(n): 1})
    return gc.fft.irfftn(whole, [*lengths], lengths, norm="forward")
