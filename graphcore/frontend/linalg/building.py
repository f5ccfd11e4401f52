"""Matrices built from vectors and from other matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphcore.frontend.arrange.diagonals import trace
from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import SizeLike
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, common, single
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.index.slices import flip
from graphcore.frontend.pointwise.complex import conjugate
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.reduce.contraction import cross
from graphcore.frontend.shape.dims import concat, rename, stack, transpose, with_size
from graphcore.frontend.window.padding import pad
from graphcore.ir.help_text import parameters
from graphcore.ir.names import Hidden, all_apart, apart

from .matrix_arguments import MATRICES, ROW_COL, swap_dims

__all__ = [
    "block_diag",
    "cross",
    "fill_triangular",
    "kron",
    "matrix_transpose",
    "outer",
    "toeplitz",
    "trace",
]


@parameters(**MATRICES)
def matrix_transpose(x: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Matrices transposed: rows and columns are exchanged, under the same two dims.

    `transpose` only reorders dims; this swaps rows and columns.

    >>> x = gc.constant([[1, 2], [3, 4]], ("row", "col"))
    >>> gc.compile([], gc.linalg.matrix_transpose(x))()
    array([[1, 3],
           [2, 4]])
    """
    node = single(x)
    return transpose(swap_dims(wrap(node), arguments.two_dims(dims, node)), *node.type.dims)


@parameters(
    x="Vectors along the first of `dims`.",
    y="Vectors along the second of `dims`, or along the first.",
    dims="The dims of the result, rows first.",
)
def outer(x: Operand, y: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Outer product of vectors: `x` along the first of `dims`, `y` along the second.

    Where `y` lacks the second dim, its vectors run along the first, which is renamed.

    >>> x = gc.constant([1, 2], "row")
    >>> gc.compile([], gc.linalg.outer(x, x))()
    array([[1, 2],
           [2, 4]])
    """
    left, right = common(x, y)
    row, col = arguments.two_dims(dims)
    arguments.dim_of(left, row)
    other = wrap(right)
    if col not in right.type.dims:
        arguments.dim_of(right, row)
        other = rename(other, {row: col})
    return transpose(wrap(left) * other, ..., row, col)


@parameters(
    x="Matrices, or vectors.",
    y="Matrices or vectors along the same dims.",
    dims="The dims of matrices, rows first; or the dim of vectors.",
)
def kron(x: Operand, y: Operand, dims: str | Sequence[str] = ROW_COL) -> Tensor:
    """Kronecker product of matrices, or of vectors along one dim: blocks `x[i, j] * y`.

    >>> x, y = gc.constant([1, 10], "row"), gc.constant([1, 2, 3], "row")
    >>> gc.compile([], gc.linalg.kron(x, y, "row"))()
    array([ 1,  2,  3, 10, 20, 30])
    """
    left, right = common(x, y)
    own = arguments.names(dims, left)
    for dim in own:
        arguments.dim_of(left, dim)
        arguments.dim_of(right, dim)
    in_use = (*left.type.dims, *right.type.dims)
    coarse, fine = (
        all_apart({dim: Hidden(f"{dim}{mark}") for dim in own}, in_use) for mark in "<>"
    )
    found = rename(wrap(left), coarse) * rename(wrap(right), fine)
    for dim in own:
        found = stack(found, {dim: (coarse[dim], fine[dim])})
    return transpose(found, ..., *own)


@parameters(
    xs="Matrices along `dims`, or several of them.",
    dims="Their dims, rows first.",
)
def block_diag(*xs: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Matrices along a diagonal, zeros elsewhere; other dims broadcast by name.

    >>> x, y = (gc.constant(v, ("row", "col")) for v in ([[1, 2]], [[3]]))
    >>> gc.compile([], gc.linalg.block_diag(x, y))()
    array([[1, 2, 0],
           [0, 0, 3]])
    """
    if not xs:
        raise refusal("takes at least one matrix", cure="give the matrices")
    nodes = common(*xs)
    row, col = arguments.two_dims(dims, nodes[0])
    blocks = [wrap(node) for node in nodes]
    for node in nodes:
        arguments.two_dims(dims, node)
    widths = [block.sizes[col] for block in blocks]
    wide = []
    for i, block in enumerate(blocks):
        around = (sum(widths[:i]), sum(widths[i + 1 :]))
        wide.append(pad(block, {col: around}, constant_values=0))
    return transpose(concat(wide, row), ..., row, col)


@parameters(
    column="The first column, along `dim`.",
    row="The first row, along `dim`; its first element is not read. By default the conjugate of "
    "the column.",
    dim="The dim of the vectors, and of the rows of the result.",
    new="The dim of the columns of the result.",
)
def toeplitz(
    column: Operand, row: Operand | None = None, *, dim: str | None = "row", new: str = "col"
) -> Tensor:
    """Toeplitz matrices, constant along each diagonal, from their first column and first row.

    >>> gc.compile([], gc.linalg.toeplitz(gc.constant([1, 2, 3], "row")))()
    array([[1, 2, 3],
           [2, 1, 2],
           [3, 2, 1]])
    """
    down, right = common(column, column if row is None else row)
    across = conjugate(wrap(right)) if row is None else wrap(right)
    name = arguments.dim_of(down, dim)
    arguments.dim_of(across.node, dim)
    rest = isel(flip(across, name), {name: slice(None, -1)})
    n, m = wrap(down).sizes[name], across.sizes[name]
    columns = arguments.new_dim(new, down, across.node)
    positions = arange(n, dim=name) - arange(m, dim=columns) + (m - 1)
    inner = apart(Hidden("diagonal"), (*down.type.dims, *across.dims, new))
    values = rename(concat([rest, wrap(down)], name), {name: inner})
    return transpose(isel(values, {inner: positions}), ..., name, new)


@parameters(
    x="A tensor with n (n + 1) / 2 elements along `dim`; other dims are batch, and come first.",
    dim="The dim of the elements.",
    dims="The dims of the matrices, rows first.",
    size="The number of rows n; needed if the number of elements is known only at the call.",
)
def fill_triangular(
    x: Operand,
    dim: str | None = None,
    dims: Sequence[str] = ROW_COL,
    *,
    size: SizeLike = None,
) -> Tensor:
    """Lower triangular matrices of the elements along a dim, row by row, zeros elsewhere.

    The order is that of `x[np.tril_indices(n)]`.

    GraphError if no matrix has so many elements.

    >>> gc.linalg.fill_triangular(gc.constant([1.0, 2.0, 3.0], "packed")).eval()
    array([[1., 0.],
           [2., 3.]])
    """
    node = single(x)
    name = arguments.dim_of(node, dim)
    row, col = arguments.two_dims(dims, node, new=True)
    have = node.type.size(name)
    if size is not None:
        n = arguments.size_of(row, size)
    elif isinstance(have, int):
        n = (math.isqrt(8 * have + 1) - 1) // 2
    else:
        cure = "give the number of rows: size=3"
        raise refusal(f"the size of {name!r} is not known", node, cure=cure)
    packed = with_size(node, name, n * (n + 1) // 2)
    i, j = arange(n, dim=row), arange(n, dim=col)
    lower = i >= j
    place = where(lower, i * (i + 1) // 2 + j, 0)
    return transpose(where(lower, isel(wrap(packed), {name: place}), 0), ..., row, col)
