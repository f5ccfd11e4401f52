"""Functions of square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphcore.frontend.arrange.diagonals import eye
from graphcore.frontend.core.arguments import DimPair, two_dims, whole
from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.reduce.contraction import dot
from graphcore.frontend.shape.dims import broadcast_like, rename, transpose
from graphcore.ir.help_text import fields, parameters
from graphcore.ir.names import Hidden, apart
from graphcore.ir.sizes import minimum, same
from graphcore.ops.named import matrices

from .factors import svd
from .matrix_arguments import MATRICES, ROW_COL, SQUARE, matrix_of, matrix_to_matrix
from .solving import inv

__all__ = [
    "expm",
    "logm",
    "matrix_power",
    "polar",
    "sqrtm",
]


@fields
class Polar(NamedTuple):
    """Orthonormal columns or rows, and a Hermitian positive semidefinite matrix."""

    unitary: Tensor
    positive: Tensor


@parameters(**SQUARE)
def expm(x: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Matrix exponential `e^x` of square matrices; all other dims are batch.

    >>> gc.compile([], gc.linalg.expm(gc.constant([[0.0, 1.0], [0.0, 0.0]], ("row", "col"))))()
    array([[1., 1.],
           [0., 1.]])
    """
    return matrix_to_matrix(matrices.expm, x, dims)


@parameters(**SQUARE)
def logm(x: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Principal logarithm of square matrices; for real matrices nan where it is not real.

    Cast to complex if the result may be complex.

    >>> gc.compile([], gc.linalg.logm(gc.constant([[1.0, 1.0], [0.0, 1.0]], ("row", "col"))))()
    array([[0., 1.],
           [0., 0.]])
    """
    return matrix_to_matrix(matrices.logm, x, dims)


@parameters(**SQUARE)
def sqrtm(x: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Principal square root of square matrices; for real matrices nan where it is not real.

    Cast to complex if the result may be complex.

    >>> gc.compile([], gc.linalg.sqrtm(gc.constant([[4.0, 0.0], [0.0, 9.0]], ("row", "col"))))()
    array([[2., 0.],
           [0., 3.]])
    """
    return matrix_to_matrix(matrices.sqrtm, x, dims)


@parameters(**SQUARE, n="The exponent, a known integer.")
def matrix_power(x: Operand, n: int, dims: Sequence[str] = ROW_COL) -> Tensor:
    """The `n`-th power of square matrices, or of their inverse if `n` is negative.

    >>> x = gc.constant([[1, 1], [0, 1]], ("row", "col"))
    >>> gc.compile([], gc.linalg.matrix_power(x, 5))()
    array([[1, 5],
           [0, 1]])
    """
    node = single(x)
    row, col = two_dims(dims, node)
    times = whole(n, "n", node, least=None)
    base = transpose(wrap(node), ..., row, col)
    if times < 0:
        inverse = rename(inv(base, (row, col)), {row: col, col: row})
        base, times = inverse, -times
    found: Tensor | None = None
    while times:
        if times & 1:
            found = base if found is None else matrix_product(found, base, (row, col))
        times >>= 1
        base = matrix_product(base, base, (row, col)) if times else base
    if found is None:
        one = astype(eye({row: base.sizes[row], col: base.sizes[row]}), base.dtype)
        return transpose(broadcast_like(one, base), *base.dims)
    return found


def matrix_product(a: Tensor, b: Tensor, dims: DimPair) -> Tensor:
    """The matrix product of two tensors with the same two dims."""
    row, col = dims
    inner = apart(Hidden("inner"), (*a.dims, *b.dims))
    found = dot(rename(a, {col: inner}), rename(b, {row: inner}), dim=inner)
    return transpose(found, ..., row, col)


@parameters(**MATRICES)
def polar(x: Operand, dims: Sequence[str] = ROW_COL) -> Polar:
    """Polar factors of matrices, `x = u p`: u has orthonormal columns, and `p = u^H x`.

    Of all matrices with orthonormal columns `u` is the nearest to `x`. It has the dims of `x`; `p`
    has that of the columns, and the same with a prime. All derivatives are exact at equal singular
    values. For a matrix of unknown shape only the first derivative is exact. Where `x` is
    singular, `u` has no derivative (Higham 1986).

    >>> u, p = gc.linalg.polar(gc.constant([[0.0, -2.0], [3.0, 0.0]], ("row", "col")))
    >>> gc.compile([], [u, p])()
    [array([[ 0., -1.],
           [ 1.,  0.]]), array([[3., 0.],
           [0., 2.]])]
    >>> p.dims
    ('col', "col'")
    """
    node, (row, col) = matrix_of(x, dims)
    unitary = unitary_factor(wrap(node), (row, col))
    other = apart(col, node.type.dims)
    positive = dot(conjugate(unitary), rename(wrap(node), {col: other}), dim=row)
    return Polar(unitary, positive)


def unitary_factor(x: Tensor, dims: DimPair) -> Tensor:
    """The first polar factor; by singular values where it is unknown which dim is longer."""
    (m, n), whole = (x.sizes[dim] for dim in dims), x.node
    if same(minimum(m, n), n):
        return wrap(matrices.polar(whole, dims=dims, new=dims))
    if same(minimum(m, n), m):
        factor = matrices.polar(conjugate(x).node, dims=dims[::-1], new=dims[::-1])
        return transpose(conjugate(wrap(factor)), ..., *dims)
    rank = apart(Hidden("rank"), whole.type.dims)
    u, _, vh = svd(x, dims, new=rank)
    return dot(u, vh, dim=rank)
