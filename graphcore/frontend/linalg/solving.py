"""Systems of linear equations; all dims that are not named are batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphcore.analysis.values import is_zero
from graphcore.frontend.core.arguments import DimPair, dim_of, two_dims, whole
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand
from graphcore.frontend.create.ranges import vander
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.pointwise.elementwise import equal
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.reduce.contraction import dot
from graphcore.frontend.reduce.norms import norm
from graphcore.frontend.shape.dims import transpose
from graphcore.ir import Node
from graphcore.ir.help_text import parameters
from graphcore.ops import elementwise, leaf, named
from graphcore.ops.named import matrices

from .matrix_arguments import MATRICES, ROW_COL, SQUARE, floats, matrix_of

__all__ = [
    "cho_solve",
    "inv",
    "lstsq",
    "pinv",
    "polyfit",
    "solve",
    "solve_triangular",
    "solve_tridiagonal",
]


@parameters(
    a="Square matrices.",
    b="Vectors along the dim of the rows of `a`.",
    dims="The dims of `a`, rows first; in the other order the transposed system is solved.",
    check="Whether a singular matrix is an error at the call; otherwise the solution is nan.",
)
def solve(a: Operand, b: Operand, dims: Sequence[str] = ROW_COL, *, check: bool = True) -> Tensor:
    """Solution of `a x = b`: `b` has the dim of the rows of `a`, `x` that of its columns.

    All other dims are batch, and align by name: those that only `b` has are several right-hand
    sides of one matrix, which is factored once. So is a matrix that is the same at all steps of a
    loop.

    GraphError if a matrix is singular, at the call, unless `check` is False; or if `b` has the dim
    of the columns of `a`.

    >>> a = gc.constant([[2.0, 0.0], [1.0, 4.0]], ("row", "col"))
    >>> b = gc.constant([[2.0, 9.0], [4.0, 2.0]], ("batch", "row"))
    >>> gc.compile([], gc.linalg.solve(a, b))()
    array([[1., 2.],
           [2., 0.]])
    >>> gc.linalg.solve(a, b).dims
    ('batch', 'col')
    """
    matrix, right = floats(a, b)
    row, col = sides(dims, matrix, right)
    return wrap(matrices.solve(matrix, right, dims=(row, col, row), new=(col,), check=check))


def sides(dims: Sequence[str], a: Node, b: Node) -> DimPair:
    """The dims of a system; `b` has the first."""
    row, col = two_dims(dims, a)
    dim_of(b, row)
    if col in b.type.dims:
        cure = f"rename {col!r} in it: in the solution that dim replaces {row!r}"
        raise refusal(f"the right-hand side has dim {col!r} already", a, b, cure=cure)
    return row, col


@parameters(
    a="Square matrices.",
    b="Vectors along the dim of the rows of `a`; other dims are batch.",
    dims="The dims of `a`, rows first. In the other order the transposed system is solved, whose "
    "lower triangle is the upper triangle of `a`.",
    lower="Whether to read the lower triangle, for rows and columns as in `dims`.",
    unit_diagonal="Whether the diagonal is taken to be ones, and not read.",
    check="Whether a singular matrix is an error at the call; otherwise the solution is inf or "
    "nan.",
)
def solve_triangular(
    a: Operand,
    b: Operand,
    dims: Sequence[str] = ROW_COL,
    *,
    lower: bool = False,
    unit_diagonal: bool = False,
    check: bool = True,
) -> Tensor:
    """Solution of `t x = b` for the upper or lower triangle t of `a`; the rest is not read.

    GraphError if a matrix is singular, at the call, unless `check` is False. Also if `a` is known
    to be zero in that triangle, such as the upper one of a Cholesky factor.

    >>> a = gc.constant([[2.0, 0.0], [1.0, 4.0]], ("row", "col"))
    >>> b = gc.constant([2.0, 9.0], "row")
    >>> gc.compile([], gc.linalg.solve_triangular(a, b, lower=True))()
    array([1., 2.])
    """
    matrix, right = floats(a, b)
    row, col = sides(dims, matrix, right)
    triangle = triangle_of(matrix)
    other = Triangle(row, col, lower=not lower)
    if triangle is not None and other in (triangle, triangle.swapped()):
        have, read = ("upper", "lower") if lower else ("lower", "upper")
        reason = (
            f"the matrix is {have} triangular in dims {row!r}, {col!r}, and the {read} "
            "triangle would be read"
        )
        cure = f"write lower={not lower}; for the transposed system dims=({col!r}, {row!r})"
        raise refusal(reason, matrix, right, cure=cure)
    how = {"lower": bool(lower), "unit": bool(unit_diagonal), "check": check}
    node = matrices.solve_triangular(matrix, right, dims=(row, col, row), new=(col,), **how)
    return wrap(node)


class Triangle(NamedTuple):
    """The dims of triangular matrices, rows first, and which triangle is not zero."""

    row: str
    col: str
    lower: bool

    def swapped(self) -> Triangle:
        """The same, with rows and columns exchanged."""
        return Triangle(self.col, self.row, not self.lower)


def triangle_of(x: Node) -> Triangle | None:
    """What is known of triangular matrices from the op that made them, if it makes such."""
    renamed: list[dict[str, str]] = []
    while x.op in KEEPING:
        renamed += [dict(x.attrs["names"])] if x.op is named.rename else []
        (x,) = x.inputs
    match x:
        case Node(matrices.cholesky):
            lower, dims = True, x.type.dims[-2:]
        case Node(leaf.project, [several], {"index": index}) if (several.op, index) in FACTORS:
            lower, dims = FACTORS[several.op, index], x.type.dims[-2:]
        case Node(
            elementwise.where, [Node(op, [Node(leaf.iota) as row, Node(leaf.iota) as col]), a, zero]
        ) if op in MASKS and is_zero(zero):
            lower, dims = MASKS[op], (row.type.dims[0], col.type.dims[0])
            if triangle_of(a) in (Triangle(*dims, not lower), Triangle(*dims[::-1], lower)):
                return None  # diagonal: both triangles
        case _:
            return None
    row_dim, col_dim = dims
    for names in reversed(renamed):
        row_dim, col_dim = names.get(row_dim, row_dim), names.get(col_dim, col_dim)
    return Triangle(row_dim, col_dim, lower)


KEEPING = {named.rename, named.transpose, *(elementwise.conjugate, elementwise.negative)}
"""Ops that keep zeros where they are, under other names."""

FACTORS = {(matrices.qr, 1): False, (matrices.lu, 1): True, (matrices.lu, 2): False}
"""Whether the triangular results of factorisations are lower."""

MASKS = {elementwise.greater_equal: True, elementwise.less_equal: False}
"""Whether what a comparison of rows with columns leaves is lower."""


@parameters(
    factor="Lower triangular factors, as `cholesky` gives them.",
    b="Vectors along the dim of the rows of `factor`; other dims are batch.",
    dims="The dims of `factor`, rows first.",
)
def cho_solve(factor: Operand, b: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Solution of `a x = b`, given the Cholesky factor l of `a = l l^H`.

    `x` has the dims of `b`; only the lower triangle of `factor` is read.

    >>> a, b = gc.constant([[4.0, 2.0], [2.0, 5.0]], ("row", "col")), gc.constant([8.0, 8.0], "row")
    >>> gc.compile([], gc.linalg.cho_solve(gc.linalg.cholesky(a), b))()
    array([1.5, 1. ])
    """
    node, (row, col) = matrix_of(factor, dims)
    half = solve_triangular(wrap(node), b, (row, col), lower=True)
    return solve_triangular(conjugate(wrap(node)), half, (col, row))


@parameters(
    lower="The diagonal below the main one, along `dim`. Its first element is not read.",
    diagonal="The main diagonal, along `dim`.",
    upper="The diagonal above the main one, along `dim`. Its last element is not read.",
    b="The right-hand side, along `dim`.",
    dim="The dim of the system; all other dims are batch.",
)
def solve_tridiagonal(
    lower: Operand, diagonal: Operand, upper: Operand, b: Operand, dim: str | None = None
) -> Tensor:
    """Solution of `lower[i] x[i-1] + diagonal[i] x[i] + upper[i] x[i+1] = b[i]` along `dim`.

    >>> one, b = gc.ones({"cell": 3}), gc.constant([5.0, 10.0, 9.0], "cell")
    >>> gc.compile([], gc.linalg.solve_tridiagonal(one, 3 * one, one, b, "cell"))()
    array([0.9047619 , 2.28571429, 2.23809524])
    """
    nodes = floats(lower, diagonal, upper, b)
    for node in nodes:
        dim = dim_of(node, dim)
    return wrap(matrices.solve_tridiagonal(*nodes, dims=(dim,) * 4, new=(dim,)))


@parameters(
    **SQUARE,
    check="Whether a singular matrix is an error at the call; otherwise the result is nan.",
)
def inv(x: Operand, dims: Sequence[str] = ROW_COL, *, check: bool = True) -> Tensor:
    """Inverse of square matrices. Its rows run along the columns of `x`: dims (..., col, row).

    A singular matrix is an error at the call; without `check` its inverse is nan. A product with an
    inverse is computed as a solve.

    >>> x = gc.constant([[2.0, 0.0], [1.0, 4.0]], ("row", "col"))
    >>> gc.compile([], gc.linalg.inv(x))()
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    >>> gc.linalg.inv(x).dims
    ('col', 'row')
    """
    node, (row, col) = matrix_of(x, dims)
    return wrap(matrices.inv(node, dims=(row, col), new=(col, row), check=check))


@parameters(
    x="The points: a tensor with `dim`.",
    y="The values at the points, with `dim`; other dims are batch.",
    deg="The degree of the polynomials: an integer.",
    dim="The dim of the points.",
    new="The dim of the coefficients.",
)
def polyfit(
    x: Operand, y: Operand, deg: int, dim: str | None = None, *, new: str = "degree"
) -> Tensor:
    """Coefficients of the polynomials of least squares, the highest power first, along a last dim.

    As `numpy.polyfit`.

    >>> x, y = gc.constant([0.0, 1.0, 2.0], "t"), gc.constant([1.0, 3.0, 5.0], "t")
    >>> gc.linalg.polyfit(x, y, 1).eval().round(6)
    array([2., 1.])
    """
    points, values = floats(x, y)
    name = dim_of(points, dim)
    dim_of(values, name)
    powers = vander(wrap(points), whole(deg, "deg", points) + 1, new)
    scale = norm(powers, name)  # columns of one length are better conditioned
    scale = where(equal(scale, 0), 1, scale)
    columns, scale = (astype(v, values.type.dtype) for v in (powers / scale, scale))
    return transpose(lstsq(columns, wrap(values), (name, new)) / scale, ..., new)


@parameters(**MATRICES, rtol="Singular values of at most `rtol` times the largest count as 0.")
def pinv(x: Operand, dims: Sequence[str] = ROW_COL, *, rtol: float | None = None) -> Tensor:
    """Pseudo-inverse of matrices (Moore-Penrose), of any rank: dims (..., col, row).

    Singular values of at most `rtol` times the largest count as 0; by default `rtol` is the
    rounding error to expect. The derivative is that at constant rank.

    >>> x = gc.constant([[1.0, 2.0], [2.0, 4.0]], ("row", "col"))
    >>> gc.compile([], gc.linalg.pinv(x))().round(6)
    array([[0.04, 0.08],
           [0.08, 0.16]])
    """
    node, (row, col) = matrix_of(x, dims)
    return wrap(matrices.pinv(node, dims=(row, col), new=(col, row), rtol=rtol))


@parameters(
    a="Matrices.",
    b="Vectors along the dim of the rows of `a`; other dims are batch.",
    dims="The dims of `a`, rows first.",
    rtol="Singular values of at most `rtol` times the largest count as 0.",
)
def lstsq(
    a: Operand, b: Operand, dims: Sequence[str] = ROW_COL, *, rtol: float | None = None
) -> Tensor:
    """Minimum-norm least-squares solution of `a x = b`, along the columns of `a`.

    >>> a = gc.constant([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], ("row", "col"))
    >>> gc.compile([], gc.linalg.lstsq(a, gc.constant([1.0, 3.0, 5.0], "row")))().round(6)
    array([1., 2.])
    """
    matrix, right = floats(a, b)
    row, col = sides(dims, matrix, right)
    return dot(pinv(wrap(matrix), (row, col), rtol=rtol), wrap(right), dim=row)
