"""Search in sorted elements, and the positions of nonzero elements."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import Dim, SizeLike
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, wrap
from graphcore.frontend.core.lift import Operand, array, as_array, common, single
from graphcore.frontend.index.picked_positions import element_positions
from graphcore.frontend.pointwise.elementwise import not_equal
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import transpose
from graphcore.ir import Hidden
from graphcore.ir.help_text import parameters
from graphcore.ops import named

__all__ = [
    "digitize",
    "nonzero",
    "searchsorted",
]

Side = Literal["left", "right"]
Row: TypeAlias = "Operand | list[Any] | tuple[Any, ...] | range | npt.NDArray[Any]"
"""A tensor with a given dim, or a list along that dim."""


def row_of(values: Row, dim: object) -> Operand:
    """`values`; an unnamed list becomes a tensor along `dim`."""
    if isinstance(values, np.ndarray) and not values.ndim:
        return values[()]
    if isinstance(values, (list, tuple, range, np.ndarray)):
        dim = Hidden("point") if dim is None else dim
        return wrap(array(as_array(values), arguments.names(dim)))
    return values


@parameters(
    x="A tensor sorted along `dim`, or a list.",
    values="The values to insert.",
    dim="The dim along which `x` is sorted.",
    side='Whether a value goes before ("left") or after ("right") equal elements.',
)
def searchsorted(x: Row, values: Operand, dim: str | None = None, side: Side = "left") -> Tensor:
    """Positions at which to insert `values` into sorted `x` along `dim`, so that it stays sorted.

    That is the number of elements < v (`side="left"`) or <= v (`side="right"`); nan counts as the
    largest. Other dims align by name, so each row of `x` is searched for its own values. The dims
    are those of `x` without `dim`, then the new ones of `values`.

    >>> values = gc.constant([2.0, 9.0], "row")
    >>> gc.compile([], gc.searchsorted([1.0, 2.0, 2.0, 3.0], values, dim="t"))()
    array([1, 4])
    """
    rows, wanted = common(row_of(x, dim), values)
    name = arguments.dim_of(rows, dim)
    arguments.check_word("side", side, ("left", "right"), rows)
    return wrap(named.searchsorted(rows, wanted, dim=name, side=side))


@parameters(
    bins="The edges: an increasing or decreasing list, or a tensor that increases along `dim`, "
    "whose other dims align with those of `x`.",
    dim="The dim of the edges, if they are a tensor.",
    right="Which edge belongs to a bin.",
)
def digitize(x: Operand, bins: Row, dim: str | None = None, right: bool = False) -> Tensor:
    """The number of the bin of each element: i where `bins[i - 1] <= x < bins[i]`.

    With `right`, bins include their right edge instead of their left. Elements below all edges get
    0; elements above, and nan, get the number of edges. The dims of `x` come first.

    GraphError if the edges are a list that is not sorted, or a tensor without `dim`.

    >>> gc.compile([], gc.digitize(gc.constant([0.5, 1.0, 7.0], "t"), [0, 1, 2]))()
    array([1, 2, 3])
    """
    side: Side = "left" if right else "right"
    value = wrap(single(x))
    if isinstance(bins, Base) or hasattr(bins, "dims"):
        if dim is None:
            raise refusal("bins are a tensor", value, cure="name the dim of the edges: dim='edge'")
        return transpose(searchsorted(bins, value, dim, side), *value.dims, ...)
    if dim is not None:
        raise refusal(f"dim={dim!r} where the edges are a list", value, cure="leave it out")
    edges, dim = edges_of(bins, value), Hidden("edge")
    if edges[0] <= edges[-1]:
        return searchsorted(edges, value, dim, side)
    return edges.size - searchsorted(edges[::-1], value, dim, side)


def edges_of(bins: Any, x: Tensor) -> npt.NDArray[Any]:
    """Edges known now, refused unless they are sorted."""
    edges = as_array(bins, x)
    ordered = edges.ndim == 1 and edges.size > 0 and edges.dtype.kind in "biuf"
    if ordered and (np.all(edges[1:] >= edges[:-1]) or np.all(edges[1:] <= edges[:-1])):
        return edges
    reason = f"{brief(bins)} are not edges of bins"
    raise refusal(reason, x, cure="give sorted numbers, or a tensor and its dim")


@parameters(
    x="A tensor; nan is nonzero.",
    size="A name for the number of positions, which is computed. An integer or a size fixes it: "
    "excess positions are dropped.",
    dim="The dims that are searched together: one, several, or all (None).",
    fill_value="The position that is returned if there are fewer.",
    name="The dim of the positions.",
)
def nonzero(
    x: Operand,
    size: SizeLike = None,
    dim: Dim = None,
    fill_value: Operand = 0,
    name: str = "nonzero",
) -> dict[str, Tensor]:
    """The positions of nonzero elements, for each dim, in row-major order.

    `x.isel(gc.nonzero(x))` are these elements. Their number is computed, unless a size is given.

    >>> x = gc.constant([[0, 1, 0], [2, 0, 3]], ("row", "col"))
    >>> gc.compile([], gc.nonzero(x))()
    {'row': array([0, 1, 1]), 'col': array([1, 0, 2])}
    >>> gc.compile([], gc.nonzero(x, size=2))()
    {'row': array([0, 1]), 'col': array([1, 0])}
    """
    node = single(x)
    dims = arguments.dims_of(node, dim, ordered=True)
    new = arguments.new_dim(name, node, gone=dims)
    found, there = element_positions(not_equal(wrap(node), 0).node, dims, new, size)
    if there is None:
        return found
    return {dim: where(there, at, fill_value) for dim, at in found.items()}
