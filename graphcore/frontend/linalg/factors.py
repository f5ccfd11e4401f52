"""Matrix factorisations, eigenvalues and singular values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphcore.frontend.core.arguments import check_word, names
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.shape.dims import transpose
from graphcore.ir.help_text import fields, parameters
from graphcore.ops.named import matrices

from .matrix_arguments import (
    MATRICES,
    ROW_COL,
    SQUARE,
    matrix_of,
    matrix_to_matrix,
    of_matrix,
    swap_dims,
)

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "lu",
    "qr",
    "svd",
    "svdvals",
]


@fields
class QR(NamedTuple):
    """Orthonormal columns, and an upper triangular matrix."""

    q: Tensor
    r: Tensor


@fields
class LU(NamedTuple):
    """The permutation of the rows for which a matrix is `lower` times `upper`."""

    permutation: Tensor
    lower: Tensor
    upper: Tensor


@fields
class SVD(NamedTuple):
    """Orthonormal columns, singular values, and orthonormal rows."""

    u: Tensor
    s: Tensor
    vh: Tensor


@fields
class Eigen(NamedTuple):
    """Eigenvalues and eigenvectors."""

    values: Tensor
    vectors: Tensor


@parameters(
    x="Matrices; all dims but two are batch, which come first in the result.",
    dims="Their dims, rows first.",
    upper="Whether to read the upper triangle instead, and return upper u with `x = u^H u`.",
    check="Whether a matrix that is not positive definite is an error at the call; otherwise its "
    "factor is nan.",
)
def cholesky(
    x: Operand, dims: Sequence[str] = ROW_COL, *, upper: bool = False, check: bool = True
) -> Tensor:
    """Cholesky factor of Hermitian positive definite matrices: lower l with `x = l l^H`.

    Only the lower triangle is read; the derivative with respect to the rest is exactly 0.

    GraphError if a matrix is not positive definite, at the call, unless `check` is False.

    >>> x = gc.constant([[4.0, 2.0], [2.0, 5.0]], ("row", "col"))
    >>> gc.compile([], gc.linalg.cholesky(x))()
    array([[2., 0.],
           [1., 2.]])
    """
    if not upper:
        return matrix_to_matrix(matrices.cholesky, x, dims, check=check)
    node, (row, col) = matrix_of(x, dims)
    flipped = swap_dims(conjugate(wrap(node)), (row, col))
    lower = matrix_to_matrix(matrices.cholesky, flipped, (row, col), check=check)
    return transpose(swap_dims(conjugate(lower), (row, col)), ..., row, col)


@parameters(
    **MATRICES,
    mode='With "reduced" q has as many columns as x has rows or columns, whichever are fewer. With '
    '"complete" q is square, and the derivative of the added columns is the minimum-norm one.',
    new="The dim of the columns of q and of the rows of r.",
)
def qr(
    x: Operand, dims: Sequence[str] = ROW_COL, *, mode: str = "reduced", new: str = "rank"
) -> QR:
    """QR factors of matrices: `x = q r`, with `q^H q = 1` and upper triangular r.

    >>> q, r = gc.linalg.qr(gc.constant([[3.0, 1.0], [4.0, 2.0]], ("row", "col")))
    >>> gc.compile([], abs(r))()
    array([[5. , 2.2],
           [0. , 0.4]])
    >>> q.dims, r.dims
    (('row', 'rank'), ('rank', 'col'))
    """
    node, (row, col) = matrix_of(x, dims)
    check_word("mode", mode, ("reduced", "complete"), node)
    op = matrices.qr if mode == "reduced" else matrices.qr_complete
    made = op(node, dims=(row, col), new=(row, new, new, col))
    return QR(wrap(made[0]), wrap(made[1]))


@parameters(**MATRICES, new="The dim of the columns of `lower` and of the rows of `upper`.")
def lu(x: Operand, dims: Sequence[str] = ROW_COL, *, new: str = "pivot") -> LU:
    """LU factors of matrices: `x` with its rows permuted by `permutation` is lower times upper.

    `lower` has ones on its diagonal. The permutation runs along the dim of the rows; it is
    piecewise constant and has no derivative.

    >>> x = gc.constant([[1.0, 2.0], [4.0, 4.0]], ("row", "col"))
    >>> gc.compile([], list(gc.linalg.lu(x)))()
    [array([1, 0]), array([[1.  , 0.  ],
           [0.25, 1.  ]]), array([[4., 4.],
           [0., 1.]])]
    """
    node, (row, col) = matrix_of(x, dims)
    made = matrices.lu(node, dims=(row, col), new=(row, row, new, new, col))
    return LU(*[wrap(made[i]) for i in range(3)])


@parameters(
    **MATRICES,
    full_matrices="Whether u and vh are square, completed by vectors without a singular value.",
    new='The dim of the values, by default "rank". For full matrices three dims: of the columns of '
    'u, of the values and of the rows of vh. Their default is ("left", "rank", "right").',
)
def svd(
    x: Operand,
    dims: Sequence[str] = ROW_COL,
    *,
    full_matrices: bool = False,
    new: str | Sequence[str] | None = None,
) -> SVD:
    """Singular values of matrices and their vectors: `x = u diag(s) vh`, with s descending.

    The vectors of equal singular values are not unique. Their first derivative is the minimum-norm
    one. So it is exact for `u vh` and for functions of the values alone. The second derivative is
    inf or nan. For higher orders use `polar`, `pinv` or `expm`.

    >>> u, s, vh = gc.linalg.svd(gc.constant([[0.0, 3.0], [-4.0, 0.0], [0.0, 0.0]], ("row", "col")))
    >>> gc.compile([], s)()
    array([4., 3.])
    >>> u.dims, vh.dims
    (('row', 'rank'), ('rank', 'col'))
    """
    node, (row, col) = matrix_of(x, dims)
    known = ("left", "rank", "right") if full_matrices else ("rank",)
    own = known if new is None else names(new, new=True)
    if len(own) != len(known):
        reason = f"new={new!r} names {len(own)} dims, {len(known)} are new"
        raise refusal(reason, node, cure=f"name {len(known)}, such as {known}")
    left, rank, right = own if full_matrices else own * 3
    op = matrices.svd_full if full_matrices else matrices.svd
    made = op(node, dims=(row, col), new=(row, left, rank, right, col))
    return SVD(*[wrap(made[i]) for i in range(3)])


@parameters(**MATRICES, new="The dim of the values.")
def svdvals(x: Operand, dims: Sequence[str] = ROW_COL, *, new: str = "rank") -> Tensor:
    """Singular values of matrices, in descending order, along the dim `new`.

    >>> gc.compile([], gc.linalg.svdvals(gc.constant([[0.0, 3.0], [-4.0, 0.0]], ("row", "col"))))()
    array([4., 3.])
    """
    return wrap(of_matrix(matrices.svdvals, x, dims, new))


OF_HERMITIAN = SQUARE | {"lower": "Whether the lower triangle is read, or the upper one."}


@parameters(**OF_HERMITIAN, new="The dim of the values, and the second dim of the vectors.")
def eigh(
    x: Operand, dims: Sequence[str] = ROW_COL, *, lower: bool = True, new: str = "eigen"
) -> Eigen:
    """Eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    Only one triangle is read; the derivative with respect to the rest is exactly 0.

    The derivative of the vectors of equal eigenvalues is inf or nan; the other vectors have a
    derivative. Values count as equal if they differ by at most 16 units of rounding of the largest
    (in float64 by 3.6e-15 of it). The derivatives of vectors lose digits as eigenvalues approach
    each other.

    Some functions of the matrix have all derivatives, also at equal eigenvalues. These are written
    as `v f(w) v^H`, as that times vectors, as its diagonal or as the sum of `f(w)`. `f` acts on
    each eigenvalue. What else it depends on must be the same for all eigenvalues of a matrix,
    without dims that the matrix lacks. Leave values out by `gc.where(w > least, f(w), 0)`, not by
    slices, and call `eigh` in the body of the loop that uses it. `cholesky`, `solve`, `expm`,
    `logm`, `sqrtm` and `polar` have all derivatives there as well, and need no vectors.

    >>> w, v = gc.linalg.eigh(gc.constant([[2.0, 1.0], [1.0, 2.0]], ("row", "col")))
    >>> gc.compile([], w)().round(6)
    array([1., 3.])
    >>> v.dims
    ('row', 'eigen')

    The inverse of a matrix with equal eigenvalues, and its derivative:

    >>> x = gc.tensor("x", {"row": 2, "col": 2})
    >>> w, v = gc.linalg.eigh(x)
    >>> inverse = gc.dot(v, 1 / w, v.rename(row="col"), dim="eigen")
    >>> slope = gc.compile([x], gc.grad(gc.linalg.trace(inverse), x))([[2.0, 0.0], [0.0, 2.0]])
    >>> slope.tolist() == [[-0.25, 0], [0, -0.25]]
    True
    """
    node, row, col = read_triangle(x, dims, lower)
    made = matrices.eigh(node.node, dims=(row, col), new=(new, row, new))
    return Eigen(wrap(made[0]), wrap(made[1]))


@parameters(**OF_HERMITIAN, new="The dim of the values.")
def eigvalsh(
    x: Operand, dims: Sequence[str] = ROW_COL, *, lower: bool = True, new: str = "eigen"
) -> Tensor:
    """Eigenvalues of Hermitian matrices, in ascending order, along the dim `new`.

    One triangle is read. Where eigenvalues are equal, sums of a function of each have all
    derivatives. A single one has the first derivative that belongs to the vectors found, and its
    second is inf or nan.

    >>> x = gc.constant([[2.0, 0.0], [1.0, 2.0]], ("row", "col"))
    >>> gc.compile([], gc.linalg.eigvalsh(x))()
    array([1., 3.])
    """
    node, row, col = read_triangle(x, dims, lower)
    return wrap(matrices.eigvalsh(node.node, dims=(row, col), new=(new,)))


def read_triangle(x: Operand, dims: Sequence[str], lower: bool) -> tuple[Tensor, str, str]:
    """Matrices whose lower triangle is the one to read, and their dims."""
    node, (row, col) = matrix_of(x, dims)
    return wrap(node) if lower else swap_dims(conjugate(wrap(node)), (row, col)), row, col


@parameters(**SQUARE, new="The dim of the values, and the second dim of the vectors.")
def eig(x: Operand, dims: Sequence[str] = ROW_COL, *, new: str = "eigen") -> Eigen:
    """Eigenvalues and eigenvectors of square matrices, complex, in LAPACK's order.

    Each vector has length 1 and its largest element is real. The derivative of the vectors of equal
    eigenvalues is inf or nan. Values count as equal if they differ by at most 16 units of rounding
    of the largest. `inv`, `solve`, `expm`, `logm` and `sqrtm` have derivatives there.

    >>> w, v = gc.linalg.eig(gc.constant([[0.0, -1.0], [1.0, 0.0]], ("row", "col")))
    >>> gc.compile([], w)()
    array([0.+1.j, 0.-1.j])
    >>> v.dims
    ('row', 'eigen')
    """
    node, (row, col) = matrix_of(x, dims)
    made = matrices.eig(node, dims=(row, col), new=(new, row, new))
    return Eigen(wrap(made[0]), wrap(made[1]))


@parameters(**SQUARE, new="The dim of the values.")
def eigvals(x: Operand, dims: Sequence[str] = ROW_COL, *, new: str = "eigen") -> Tensor:
    """Eigenvalues of square matrices, complex, along the dim `new`, in LAPACK's order.

    >>> x = gc.constant([[0.0, -1.0], [1.0, 0.0]], ("row", "col"))
    >>> gc.compile([], gc.linalg.eigvals(x))()
    array([0.+1.j, 0.-1.j])
    """
    return wrap(of_matrix(matrices.eigvals, x, dims, new))
