"""Counts of values: in bins, as integers, distinct values, and membership."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from graphcore.frontend.arrange.moves import roll
from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import Dim, SizeLike
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, array, as_array, single
from graphcore.frontend.core.values_as_sizes import value_of
from graphcore.frontend.create.inputs import constant
from graphcore.frontend.create.ranges import arange, linspace
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.index.picked_positions import is_computed, kept_size, merge_dims
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.elementwise import equal, isnan, not_equal
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.pointwise.missing import may_be_null, notnull
from graphcore.frontend.reduce.reductions import max as largest
from graphcore.frontend.reduce.reductions import min as smallest
from graphcore.frontend.reduce.running import cumsum
from graphcore.frontend.reduce.segments import segment_sum
from graphcore.frontend.shape.dims import concat, stack, transpose, unstack
from graphcore.ir import Expression, Hidden
from graphcore.ir.help_text import fields, parameters
from graphcore.ir.names import apart

from .searching import Row, edges_of, searchsorted
from .sorting import argsort, put_back, sort

__all__ = [
    "bincount",
    "histogram",
    "isin",
    "unique",
    "unique_all",
]


@parameters(
    x="An integer tensor.",
    size="The number of integers counted.",
    dim="The dims that are counted together: one, several, or all those of `x` (None).",
    weights="The weight of each element; aligned by name.",
    name="The dim of the counts, which replaces the first of `dim`.",
)
def bincount(
    x: Operand,
    size: SizeLike,
    dim: Dim = None,
    weights: Operand | None = None,
    name: str = "bin",
) -> Tensor:
    """How often each of the integers 0, 1, ..., `size` - 1 occurs, or the sum of the weights there.

    Integers that are negative or too large are refused, now or at the call. Counts are int64;
    weights carry derivatives.

    GraphError if `x` is not an integer tensor, or has an integer that is negative or not less than
    `size`. Values that are not known yet are checked at the call.

    >>> gc.compile([], gc.bincount(gc.constant([2, 0, 2], "t"), size=4))()
    array([1, 0, 2, 0])
    """
    node = single(x)
    dims = arguments.dims_of(node, dim)
    found = segment_sum(np.int64(1) if weights is None else weights, wrap(node), size, dims, name)
    return transpose(found, *place_dims(node.type.dims, dims, name), ...)


def place_dims(dims: tuple[str, ...], gone: tuple[str, ...], new: str) -> tuple[str, ...]:
    """`dims` with `new` in place of the first that vanishes; last if none does."""
    return tuple(dict.fromkeys((*(new if dim in gone else dim for dim in dims), new)))


@fields
class Histogram(NamedTuple):
    """The number of elements in each bin, and the edges of the bins."""

    counts: Tensor
    edges: Tensor


@parameters(
    x="A tensor of real numbers.",
    bins="A number of bins of equal width; or the edges, an increasing list, or a tensor that "
    "increases along `name`.",
    dim="The dims that are counted together: one, several, or all those of `x` (None).",
    range="The lowest and the highest edge of bins of equal width. By default they are the "
    "smallest and the largest element, for each position along other dims.",
    weights="The weight of each element; aligned by name.",
    density="Whether counts are divided by their sum and by the width of the bin.",
    name="The dim of the bins, and of the edges.",
)
def histogram(
    x: Operand,
    bins: int | Row = 10,
    dim: Dim = None,
    *,
    range: tuple[Operand, Operand] | None = None,
    weights: Operand | None = None,
    density: bool = False,
    name: str = "bin",
) -> Histogram:
    """The number of elements between consecutive edges; the last bin includes its upper edge.

    Elements outside the edges, and nan, are ignored. Counts have derivatives with respect to
    weights, not to edges.

    GraphError if `x` is complex, if edges are not in increasing order, or if both `range` and edges
    are given.

    >>> x = gc.constant([0.0, 0.4, 0.5, 2.0], "t")
    >>> gc.compile([], list(gc.histogram(x, 2, range=(0, 1))))()
    [array([2, 1]), array([0. , 0.5, 1. ])]
    """
    value = wrap(single(x))
    dims = arguments.dims_of(value.node, dim)
    edges = edges_along(value, bins, dims, range, name)
    last = edges.sizes[name] - 1
    above = searchsorted(edges, value, name, "right")
    inside = where(equal(value, isel(edges, {name: -1})), last, above)
    counts = bincount(inside, last + 2, dims, weights, name).isel({name: slice(1, last + 1)})
    if density:
        low, high = isel(edges, {name: slice(None, -1)}), isel(edges, {name: slice(1, None)})
        counts = as_float(counts) / counts.sum(name) / (high - low)
    return Histogram(counts, edges)


def edges_along(x: Tensor, bins: Any, dims: tuple[str, ...], ends: Any, name: str) -> Tensor:
    """The edges of bins; those of equal width in the dtype of a mean of `x`."""
    arguments.require_order(x)
    if isinstance(bins, Base) and not bins.dims:
        bins = value_of("the number of bins", bins)
    if isinstance(bins, (int, np.integer, Expression)):
        low, high = (
            (smallest(x, dims), largest(x, dims)) if ends is None else histogram_range(x, ends)
        )
        return astype(evenly(x, bins, low, high, name), as_float(x).dtype)
    if ends is not None:
        cure = "leave the range out: the edges determine the bins"
        raise type_refusal("takes a range or edges, not both", x, cure=cure)
    if isinstance(bins, Base) or hasattr(bins, "dims"):
        given = single(bins)
        arguments.require_dims(given, (name,))
        return wrap(given)
    known = edges_of(bins, x)
    if known[0] > known[-1] or known.size < 2:
        cure = "give at least two edges, in increasing order"
        raise refusal(f"{brief(bins)} are not edges of bins", x, cure=cure)
    return wrap(array(known, (name,)))


def histogram_range(x: Tensor, ends: Any) -> tuple[Any, Any]:
    """The lowest and the highest edge that a user gave."""
    if isinstance(ends, np.ndarray) and ends.shape == (2,):
        ends = ends.tolist()
    if isinstance(ends, (tuple, list)) and len(ends) == 2:
        return ends[0], ends[1]
    cure = "give the lowest and the highest edge: range=(0, 1)"
    raise type_refusal(f"range={brief(ends)} is not a pair of edges", x, cure=cure)


def evenly(x: Tensor, bins: Any, low: Any, high: Any, name: str) -> Tensor:
    """Edges from `low` to `high`; if these are equal, from half below to half above."""
    if isinstance(bins, (int, np.integer)) and bins < 1:
        raise refusal(f"there are {bins} bins", x, cure="use one or more")
    if all(isinstance(end, (int, float, np.number)) for end in (low, high)):
        if not (low <= high and math.isfinite(high - low)):
            reason = f"range=({low}, {high}) is not an interval"
            raise refusal(reason, x, cure="use finite ends in order")
        apart = 0.5 if low == high else 0
        return linspace(low - apart, high + apart, bins + 1, dim=name)
    one = equal(low, high)
    return linspace(where(one, low - 0.5, low), where(one, high + 0.5, high), bins + 1, dim=name)


@fields
class UniqueAll(NamedTuple):
    """Distinct values, their first positions, the number of each element's value, and counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


DISTINCT = {
    "size": "A name for the number of values, which is computed. An integer or a size fixes it: "
    "excess (largest) ones are dropped.",
    "dim": "The dims that are searched together: one, several, or all (None).",
    "fill_value": "The value that fills the result if there are fewer, with count 0 and the "
    "position of the smallest value; by default the smallest value.",
    "name": "The dim of the distinct values.",
}


@parameters(**DISTINCT)
def unique(
    x: Operand,
    size: SizeLike = None,
    dim: Dim = None,
    *,
    fill_value: Operand | None = None,
    name: str = "unique",
) -> Tensor:
    """The distinct values in ascending order: the first result of `unique_all`.

    >>> x = gc.constant([3, 1, 3, 2], "t")
    >>> gc.compile([], [gc.unique(x), gc.unique(x, size=4, fill_value=-1)])()
    [array([1, 2, 3]), array([ 1,  2,  3, -1])]
    """
    return unique_all(x, size, dim, fill_value=fill_value, name=name).values


@parameters(**DISTINCT)
def unique_all(
    x: Operand,
    size: SizeLike = None,
    dim: Dim = None,
    *,
    fill_value: Operand | None = None,
    name: str = "unique",
) -> UniqueAll:
    """The distinct values in ascending order, nan last, and where they are; as `jax.numpy.unique`.

    The result has four tensors. They are the values, the positions of their first occurrences
    (row-major in `dim`), the number of the value of each element of `x`, and how often each value
    occurs. What is not used is not computed. The derivative of a value goes to its first
    occurrence.

    >>> gc.compile([], list(gc.unique_all(gc.constant([3, 1, 3, 2], "t"), size=3)))()
    [array([1, 2, 3]), array([1, 3, 0]), array([2, 0, 2, 1]), array([1, 1, 2])]
    """
    value = wrap(single(x))
    dims = arguments.dims_of(value.node, dim)
    arguments.require_dims(value.node, dims)
    new = arguments.new_dim(name, value.node, gone=dims)
    flat, row = merge_dims(value, dims)
    ordered, order = sort(flat, row), argsort(flat, row)
    first = starts(ordered, row)
    group = cumsum(first, row)
    many = kept_size(new, size, lambda: first.sum(row).node, "distinct")
    numbers = arange(1, many + 2, dim=new)
    bounds = searchsorted(group, numbers, row)
    begin, end = bounds.isel({new: slice(None, -1)}), bounds.isel({new: slice(1, None)})
    if not is_computed(size):  # there may be fewer values
        least = isel(ordered, {row: 0}) if fill_value is None else fill_value
        ordered = concat([ordered, least], row)
        order = concat([order, isel(order, {row: 0})], row)
    values, indices = (isel(part, {row: begin}) for part in (ordered, order))
    inverse = put_back(group - 1, flat, row)
    if row not in value.dims:
        inverse = unstack(inverse, {row: {dim: value.sizes[dim] for dim in dims}})
    to = place_dims(value.dims, dims, new)
    values, indices, counts = (transpose(part, *to) for part in (values, indices, end - begin))
    return UniqueAll(values, indices, transpose(inverse, *value.dims), counts)


def starts(ordered: Tensor, dim: str) -> Tensor:
    """Whether an element differs from the one before; all nan are equal."""
    before = roll(ordered, {dim: 1})
    differs = not_equal(ordered, before)
    if may_be_null(ordered):
        differs = differs & ~(isnan(ordered) & isnan(before))
    return differs | equal(arange(ordered.sizes[dim], dim=dim), 0)


@parameters(values="The values to look for: a list, an array, or a tensor of any dims.")
def isin(x: Operand, values: Any) -> Tensor:
    """Whether an element is among `values`: a list, an array, or a tensor of any dims.

    Values are compared by ==, so nan is never among them.

    >>> gc.compile([], gc.isin(gc.constant([3, 1, 5], "row"), [1, 2, 5]))()
    array([False,  True,  True])
    """
    value = wrap(single(x))
    if isinstance(values, Base) or hasattr(values, "dims"):
        among = wrap(single(values))
    else:
        among = constant(np.ravel(as_array(values, value)), "value")
    dim = apart(Hidden("value"), (*value.dims, *among.dims))
    ordered = sort(stack(among, {dim: among.dims}), dim)
    below, up_to = (searchsorted(ordered, value, dim, side) for side in ("left", "right"))
    return (below < up_to) & notnull(value)
