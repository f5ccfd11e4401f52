"""Diagonals of two dims, and the triangles below and above them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import DimPair, SizeLike, Whole
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.core.preferred_dtype import default
from graphcore.frontend.create.ranges import iota
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.elementwise import equal, greater_equal, less_equal
from graphcore.frontend.pointwise.formulas import keep_where
from graphcore.frontend.reduce import reductions
from graphcore.frontend.shape.dims import transpose
from graphcore.ir.help_text import parameters
from graphcore.ir.provenance import public_call
from graphcore.ir.sizes import Expression, maximum, minimum
from graphcore.ops import named

__all__ = [
    "diag",
    "diagonal",
    "eye",
    "trace",
    "tri",
    "tril",
    "triu",
]


ON_DIAGONAL = {
    "dims": "Two dims with their sizes; or their names, with sizes in `shape`.",
    "shape": "The sizes, if `dims` are names; a single size is that of both.",
    "k": "The diagonal: where the second position is `k` more than the first.",
    "dtype": "The dtype of the result; by default that of `default_dtype`, float64.",
}


@parameters(**ON_DIAGONAL)
def eye(
    dims: Mapping[str, SizeLike] | Iterable[str],
    shape: Iterable[SizeLike] | SizeLike = None,
    *,
    k: Whole = 0,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """Ones on a diagonal of two dims, zeros elsewhere.

    >>> gc.compile([], gc.eye({"row": 2, "col": 3}))()
    array([[1., 0., 0.],
           [0., 1., 0.]])
    >>> gc.compile([], gc.eye(("row", "col"), 2, dtype="bool"))()
    array([[ True, False],
           [False,  True]])
    """
    row, col = row_and_column(dims, shape)
    wanted = arguments.made_dtype(dtype, like, default())
    return astype(equal(shift(row, k), col), wanted)


@parameters(**ON_DIAGONAL)
def tri(
    dims: Mapping[str, SizeLike] | Iterable[str],
    shape: Iterable[SizeLike] | SizeLike = None,
    *,
    k: Whole = 0,
    dtype: npt.DTypeLike | None = None,
    like: Operand | None = None,
) -> Tensor:
    """Ones on and below a diagonal, zeros above it.

    >>> gc.compile([], gc.tri({"row": 2, "col": 3}, dtype="int64"))()
    array([[1, 0, 0],
           [1, 1, 0]])
    """
    row, col = row_and_column(dims, shape)
    wanted = arguments.made_dtype(dtype, like, default())
    return astype(greater_equal(shift(row, k), col), wanted)


def row_and_column(dims: object, shape: object) -> tuple[Tensor, Tensor]:
    """The positions along each of two dims."""
    if isinstance(shape, (int, str, Expression)):
        shape = (shape, shape)
    if isinstance(dims, int):
        dims = (dims, dims)
    if any(isinstance(size, int) for size in arguments.as_tuple(dims)):
        arguments.dims_sizes(dims)  # which refuses sizes without names, and says how to write them
    known = tuple(dims) if isinstance(dims, Mapping) else arguments.names(dims, new=True)
    if len(known) != 2:
        cure = f"gc.{public_call()}({{'row': 3, 'col': 3}})"
        raise refusal(f"dims {known} are not two", cure=cure)
    known, sizes = arguments.dims_sizes(dims, shape)
    row, col = map(iota, known, sizes)
    return row, col


def shift(row: Tensor, k: Whole) -> Tensor:
    """Positions plus `k`."""
    k = arguments.integer(k, "k", row)
    return row if k == 0 else row + k


@parameters(
    dims="The two dims, which are removed.",
    dim="The new dim.",
    offset="The diagonal: elements whose second position is `offset` more than the first.",
)
def diagonal(
    x: Operand, dims: DimPair = ("row", "col"), dim: str = "diag", offset: Whole = 0
) -> Tensor:
    """The elements on a diagonal of two dims, along one new last dim.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], [gc.diagonal(x), gc.diagonal(x, offset=1)])()
    [array([1, 5]), array([2, 6])]
    """
    node = single(x)
    row, col = arguments.two_dims(dims, node)
    name = arguments.new_dim(dim, node, gone=(row, col))
    offset = arguments.integer(offset, "offset", node)
    rest = tuple(known for known in node.type.dims if known not in (row, col))
    start = {row: slice(maximum(-offset, 0), None), col: slice(maximum(offset, 0), None)}
    node = isel(wrap(node), start).node
    place = iota(name, minimum(node.type.size(row), node.type.size(col))).node
    found = named.gather(node, place, place, dims=(row, col))
    return transpose(wrap(found), *rest, name)


@parameters(
    dims="The two dims, which are removed.",
    offset="The diagonal: elements whose second position is `offset` more than the first.",
)
def trace(x: Operand, dims: DimPair = ("row", "col"), offset: Whole = 0) -> Tensor:
    """Sum over a diagonal of two dims, where the second position is `offset` more than the first.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], [gc.trace(x), gc.trace(x, offset=1)])()
    [array(6), array(8)]
    """
    node = single(x)
    row, _ = arguments.two_dims(dims, node)
    return reductions.sum(diagonal(x, dims, row, offset), row)


@parameters(
    dim="The dim that runs along the diagonal; it is removed.",
    dims="The two new dims, both of the size of `dim` plus `|offset|`.",
    offset="The diagonal: where the second position is `offset` more than the first.",
)
def diag(
    x: Operand, dim: str | None = None, dims: DimPair = ("row", "col"), offset: Whole = 0
) -> Tensor:
    """`x` on a diagonal of two new last dims, zeros elsewhere.

    >>> gc.compile([], gc.diag(gc.constant([1, 2], "t"), dim="t", offset=1))()
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]])
    """
    node = single(x)
    name = arguments.dim_of(node, dim)
    new = arguments.two_dims(dims, node, new=True)
    offset = arguments.integer(offset, "offset", node)
    size = node.type.size(name)
    place = iota(name, size).node
    made = named.scatter(node, place, place, over=(name,), dims=new, sizes=(size, size))
    if offset == 0:
        return wrap(made)
    starts = maximum(-offset, 0), maximum(offset, 0)
    whole = size + starts[0] + starts[1]
    return wrap(named.embed(made, dims=new, starts=starts, sizes=(whole, whole), steps=(1, 1)))


@parameters(
    dims="The two dims.",
    k="The diagonal: where the second position is `k` more than the first.",
)
def tril(x: Operand, dims: DimPair = ("row", "col"), k: Whole = 0) -> Tensor:
    """`x` on and below a diagonal, zeros above it.

    The elements set to zero have derivative 0, whatever their values.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], gc.tril(x, k=1))()
    array([[1, 2, 0],
           [4, 5, 6]])
    """
    return masked_triangle(x, dims, k, greater_equal)


@parameters(
    dims="The two dims.",
    k="The diagonal: where the second position is `k` more than the first.",
)
def triu(x: Operand, dims: DimPair = ("row", "col"), k: Whole = 0) -> Tensor:
    """`x` on and above a diagonal, zeros below it.

    The elements set to zero have derivative 0, whatever their values.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], gc.triu(x))()
    array([[1, 2, 3],
           [0, 5, 6]])
    """
    return masked_triangle(x, dims, k, less_equal)


def masked_triangle(
    x: Operand, dims: DimPair, k: Whole, chosen: Callable[[Operand, Operand], Tensor]
) -> Tensor:
    """`x` where the positions along two dims compare as `chosen` says, zeros elsewhere."""
    node = single(x)
    known = arguments.two_dims(dims, node)
    row, col = (iota(dim, node.type.size(dim)) for dim in known)
    inside = chosen(shift(row, k), col)
    return keep_where(wrap(node), inside, np.zeros((), node.type.dtype))
