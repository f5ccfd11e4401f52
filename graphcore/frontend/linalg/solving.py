"""Systems of linear equations. Dims say what a vector is; all that is not named is batch."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.frontend.core.arguments import DimPair, dim_of, two_dims
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.reduce.contraction import dot
from graphcore.ir.node import Node
from graphcore.ops.named import matrices

from .matrices import ROW_COL, floats

__all__ = [
    "cho_solve",
    "inv",
    "lstsq",
    "pinv",
    "solve",
    "solve_triangular",
    "solve_tridiagonal",
]


def solve(a: Operand, b: Operand, dims: Sequence[str] = ROW_COL, *, check: bool = True) -> Tensor:
    """x with a x = b: where `b` has the dim of the rows of `a`, `x` has that of its columns.

    All other dims are batch, and align by name: those that `b` alone has are many right-hand sides
    of one matrix, which is factored once.

    Parameters
    ----------
    a
        Square matrices.
    b
        Vectors along the dim of the rows of `a`.
    dims
        The dims of `a`, that of the rows first; in the other order the transposed system is solved.
    check
        Whether a singular matrix is an error at the call; else nan.

    Examples
    --------
    >>> import graphcore as gc
    >>> a = gc.tensor("a", {"row": 3, "col": 3})
    >>> b = gc.tensor("b", {"batch": None, "row": 3})
    >>> gc.linalg.solve(a, b)
    <Tensor: f64[batch, col=3]>
    """
    matrix, right = floats("solve", a, b)
    row, col = sides("solve", dims, matrix, right)
    return wrap(matrices.solve(matrix, right, dims=(row, col, row), new=(col,), check=check))


def sides(function: str, dims: Sequence[str], a: Node, b: Node) -> DimPair:
    """The dims of a system, of which `b` has the first."""
    row, col = two_dims(function, dims, a)
    dim_of(function, b, row)
    if col in b.type.dims:
        cure = f"rename {col!r} in it: the solution has that dim in place of {row!r}"
        raise refusal(function, f"the right-hand side has dim {col!r} already", a, b, cure=cure)
    return row, col


def solve_triangular(
    a: Operand,
    b: Operand,
    dims: Sequence[str] = ROW_COL,
    *,
    lower: bool = False,
    unit_diagonal: bool = False,
    check: bool = True,
) -> Tensor:
    """x with t x = b, for the upper triangle t of `a`, or the lower one. The rest is never read.

    Parameters
    ----------
    a
        Square matrices.
    b
        Vectors along the dim of the rows of `a`; other dims are batch.
    dims
        The dims of `a`, that of the rows first; in the other order the transposed system is solved,
        in which a lower triangle is an upper one.
    lower
        Which triangle, of matrices whose rows are as `dims` says.
    unit_diagonal
        Whether the diagonal counts as ones, and is not read either.
    check
        Whether a singular matrix is an error at the call; else inf or nan.

    Examples
    --------
    >>> import graphcore as gc
    >>> a = gc.constant([[2.0, 0.0], [1.0, 4.0]], ("row", "col"))
    >>> b = gc.constant([2.0, 9.0], "row")
    >>> gc.compile([], gc.linalg.solve_triangular(a, b, lower=True))()
    array([1., 2.])
    """
    matrix, right = floats("solve_triangular", a, b)
    row, col = sides("solve_triangular", dims, matrix, right)
    how = {"lower": bool(lower), "unit": bool(unit_diagonal), "check": check}
    node = matrices.solve_triangular(matrix, right, dims=(row, col, row), new=(col,), **how)
    return wrap(node)


def cho_solve(factor: Operand, b: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """x with a x = b, given the Cholesky factor l of a = l l^H, by two triangular solves.

    `x` has the dims of `b`; of `factor` the lower triangle is read.

    >>> import graphcore as gc
    >>> a, b = gc.constant([[4.0, 2.0], [2.0, 5.0]], ("row", "col")), gc.constant([8.0, 8.0], "row")
    >>> gc.compile([], gc.linalg.cho_solve(gc.linalg.cholesky(a), b))()
    array([1.5, 1. ])
    """
    (node,) = floats("cho_solve", factor)
    row, col = two_dims("cho_solve", dims, node)
    half = solve_triangular(wrap(node), b, (row, col), lower=True)
    return solve_triangular(conjugate(wrap(node)), half, (col, row))


def solve_tridiagonal(
    lower: Operand, diagonal: Operand, upper: Operand, b: Operand, dim: str
) -> Tensor:
    """x with lower[i] x[i-1] + diagonal[i] x[i] + upper[i] x[i+1] = b[i] along `dim`.

    The first of `lower` and the last of `upper` are not read. Other dims are batch.

    >>> import graphcore as gc
    >>> one, b = gc.ones({"cell": 3}), gc.constant([5.0, 10.0, 9.0], "cell")
    >>> gc.compile([], gc.linalg.solve_tridiagonal(one, 3 * one, one, b, "cell"))()
    array([0.9047619 , 2.28571429, 2.23809524])
    """
    nodes = floats("solve_tridiagonal", lower, diagonal, upper, b)
    for node in nodes:
        dim_of("solve_tridiagonal", node, dim)
    return wrap(matrices.solve_tridiagonal(*nodes, dims=(dim,) * 4, new=(dim,)))


def inv(x: Operand, dims: Sequence[str] = ROW_COL, *, check: bool = True) -> Tensor:
    """Inverse of square matrices. Its rows run along the columns of `x`: dims (..., col, row).

    A singular matrix is an error at the call; without `check` it gives nan. A product of an inverse
    is computed as a solve.

    >>> import graphcore as gc
    >>> gc.linalg.inv(gc.tensor("x", {"row": 3, "col": 3}))
    <Tensor: f64[col=3, row=3]>
    """
    (node,) = floats("inv", x)
    row, col = two_dims("inv", dims, node)
    return wrap(matrices.inv(node, dims=(row, col), new=(col, row), check=check))


def pinv(x: Operand, dims: Sequence[str] = ROW_COL, *, rtol: float | None = None) -> Tensor:
    """Pseudo-inverse of matrices (Moore-Penrose), of any rank: dims (..., col, row).

    Singular values of at most `rtol` times the largest count as 0, by default what rounding may
    leave. The derivative is that at constant rank.

    >>> import graphcore as gc
    >>> gc.linalg.pinv(gc.tensor("x", {"row": 5, "col": 3}))
    <Tensor: f64[col=3, row=5]>
    """
    (node,) = floats("pinv", x)
    row, col = two_dims("pinv", dims, node)
    return wrap(matrices.pinv(node, dims=(row, col), new=(col, row), rtol=rtol))


def lstsq(
    a: Operand, b: Operand, dims: Sequence[str] = ROW_COL, *, rtol: float | None = None
) -> Tensor:
    """The x of least |a x - b|, and of these the least: along the columns of `a`.

    >>> import graphcore as gc
    >>> a, b = gc.tensor("a", {"row": 5, "col": 3}), gc.tensor("b", {"row": 5})
    >>> gc.linalg.lstsq(a, b)
    <Tensor: f64[col=3]>
    """
    matrix, right = floats("lstsq", a, b)
    row, col = sides("lstsq", dims, matrix, right)
    return dot(pinv(wrap(matrix), (row, col), rtol=rtol), wrap(right), dim=row)
