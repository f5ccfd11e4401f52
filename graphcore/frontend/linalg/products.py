"""Products of matrices with vectors and matrices that keep the names of their dims."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.frontend.core.arguments import names, require_dims, two_dims
from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.lift import Operand, common
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.reduce.contraction import dot
from graphcore.frontend.shape.dims import rename, transpose, with_size
from graphcore.ir import Node
from graphcore.ir.help_text import parameters
from graphcore.ir.names import hidden_names
from graphcore.ir.sizes import same

from .matrix_arguments import ROW_COL

__all__ = ["apply", "congruence"]


@parameters(
    a="Matrices; their other dims are batch.",
    x="A tensor; its other dims are batch.",
    dims="The dims of the matrices, rows first.",
    along="The dim of the vectors; by default that of the columns of `a`.",
)
def apply(
    a: Operand, x: Operand, dims: Sequence[str] = ROW_COL, along: str | None = None
) -> Tensor:
    """Matrices applied to the vectors along a dim of `x`, which keeps its name: `a x`.

    Its size becomes the number of rows. Where sizes are known only at the call the matrices are
    square; `gc.dot(a, x)` is the same product along the dim of the rows, of any size.

    GraphError if a dim is missing, or if the matrices have not as many columns as the vectors
    elements.

    >>> f = gc.constant([[1, 1], [0, 1]], ("new", "state"))
    >>> x = gc.constant([3, 4], "state")
    >>> gc.linalg.apply(f, x, ("new", "state"))
    <Tensor: i64[state=2]>
    >>> gc.linalg.apply(f, x, ("new", "state")).eval()
    array([7, 4])
    """
    matrix, vectors = common(a, x)
    row, col = two_dims(dims, matrix)
    (own,) = (col,) if along is None else names(along, vectors)
    require_dims(vectors, (own,))
    in_use = (*matrix.type.dims, *vectors.type.dims)
    new = hidden_names((row,), in_use)
    differ = same(matrix.type.size(row), matrix.type.size(col)) is False
    mapping = wrap(matrix) if differ else square(matrix, row, col)
    found = dot(rename(mapping, {row: new[row], col: own}), wrap(vectors), dim=own)
    batch = [dim for dim in matrix.type.dims if dim not in (row, col, *vectors.type.dims)]
    return transpose(rename(found, {new[row]: own}), *batch, *vectors.type.dims)


@parameters(
    a="Matrices; their other dims are batch. They are square, unless `new` is given.",
    p="Square matrices of as many rows as `a` has columns; their other dims are batch.",
    dims="The dims of `a`, rows first.",
    of="The dims of `p`, rows first.",
    new="The dims of the result, rows first, by default those of `p`.",
)
def congruence(
    a: Operand,
    p: Operand,
    dims: Sequence[str] = ROW_COL,
    of: Sequence[str] = ROW_COL,
    *,
    new: Sequence[str] | None = None,
) -> Tensor:
    """`a p aᴴ`: matrices `p` between `a` and its conjugate transpose, under the dims of `p`.

    It is the covariance of `a x`, where `p` is that of `x`.

    GraphError if a dim is missing or sizes do not agree.

    >>> f = gc.constant([[1, 1], [0, 1]], ("new", "state"))
    >>> p = gc.constant([[2, 0], [0, 1]], ("state", "other"))
    >>> gc.linalg.congruence(f, p, ("new", "state"), ("state", "other")).eval()
    array([[3, 1],
           [1, 1]])
    """
    matrix, middle = common(a, p)
    row, col = two_dims(dims, matrix)
    left, right = two_dims(of, middle)
    named = two_dims(of if new is None else new)
    outer = wrap(matrix) if new is not None else square(matrix, row, col)
    apart = hidden_names((left, right), (*matrix.type.dims, *middle.type.dims))
    first = rename(outer, {row: apart[left], col: left})
    second = rename(conjugate(outer), {row: apart[right], col: right})
    found = dot(first, wrap(middle), second, dim=(left, right))
    found = rename(found, {apart[left]: named[0], apart[right]: named[1]})
    return transpose(found, ..., *named)


def square(x: Node, row: str, col: str) -> Tensor:
    """`x`, refused now or at the call unless its two dims have one size."""
    return wrap(with_size(x, row, x.type.size(col)))
