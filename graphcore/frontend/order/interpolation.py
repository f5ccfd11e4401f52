"""Interpolation between known points."""

from __future__ import annotations

import math

from graphcore.frontend.core.arguments import dim_of, require_order
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, common, single
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.index.indexing import isel, take_along
from graphcore.frontend.pointwise import elementwise as e
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.pointwise.missing import may_be_null, notnull
from graphcore.frontend.reduce.running import bfill, ffill
from graphcore.frontend.shape.dims import concat, transpose, with_size
from graphcore.ir import Hidden
from graphcore.ir.help_text import parameters

from .searching import Row, row_of, searchsorted
from .sorting import argsort

__all__ = [
    "interp",
    "interpolate_na",
]


@parameters(
    x="The points to evaluate. Its dims come first.",
    xp="The known points, a tensor or a list, increasing along `dim` unless there is a `period`. "
    "Other dims align by name.",
    fp="The values at the known points: a tensor with `dim`, or a list.",
    dim="The dim of the points.",
    left="The value below the first point; by default the value at that point.",
    right="The value above the last point; by default the value at that point.",
    period="The period of `xp`. The points may then be in any order, and `left` and `right` have "
    "no effect.",
)
def interp(
    x: Operand,
    xp: Row,
    fp: Row,
    dim: str | None = None,
    left: Operand | None = None,
    right: Operand | None = None,
    period: Operand | None = None,
) -> Tensor:
    """Linear interpolation at `x` between the points (xp, fp) along `dim`, as `numpy.interp`.

    Differentiable with respect to all operands; at a point the slope in `x` is that to the right.

    GraphError if `x` or `xp` is complex, or if `xp` or `fp` lacks `dim`.

    >>> x = gc.constant([0.5, 1.5, 9.0], "t")
    >>> gc.compile([], gc.interp(x, [0.0, 1.0, 2.0], [10.0, 20.0, 40.0], dim="point"))()
    array([15., 30., 40.])
    """
    rows = [v for v in (xp, fp) if isinstance(v, Base)]
    if dim is None:
        dim = dim_of(rows[0].node, None) if rows else Hidden("point")
    both = common(x, row_of(xp, dim))
    at, points = (as_float(wrap(node)) for node in both)
    require_order(at)
    require_order(points)
    given = single(row_of(fp, dim))
    for operand in (points.node, given):
        dim_of(operand, dim)
    values = as_float(wrap(with_size(given, dim, points.sizes[dim])))
    if period is not None:
        at, points, values = periodic(at, points, values, dim, period)
    above = searchsorted(points, at, dim, "right")
    upper = e.minimum(e.maximum(above, 1), points.sizes[dim] - 1)
    lower = e.maximum(upper - 1, 0)
    x0, x1 = (isel(points, {dim: i}) for i in (lower, upper))
    y0, y1 = (isel(values, {dim: i}) for i in (lower, upper))
    step = x1 - x0
    found = between(y0, y1, (at - x0) / where(e.equal(step, 0), 1, step))
    first, final = isel(points, {dim: 0}), isel(points, {dim: -1})
    found = where(at < first, isel(values, {dim: 0}) if left is None else left, found)
    found = where(at >= final, isel(values, {dim: -1}), found)
    if right is not None:
        found = where(at > final, right, found)
    return transpose(found, *at.dims, ...)


def periodic(
    at: Tensor, points: Tensor, values: Tensor, dim: str, period: Operand
) -> tuple[Tensor, Tensor, Tensor]:
    """All points within one period, sorted, with the last before and the first after them."""
    if isinstance(period, (int, float)) and not 0 < abs(period) < math.inf:
        cure = "give a number that is not 0, for instance period=360"
        raise refusal(f"period={period}", at, points, cure=cure)
    span = e.absolute(period)
    at, points = e.mod(at, span), e.mod(points, span)
    order = argsort(points, dim)
    points, values = (take_along(x, order, dim) for x in (points, values))
    before, after = {dim: slice(-1, None)}, {dim: slice(0, 1)}
    around = concat([isel(points, before) - span, points, isel(points, after) + span], dim)
    return at, around, concat([isel(values, before), values, isel(values, after)], dim)


def between(a: Tensor, b: Tensor, share: Tensor) -> Tensor:
    """a + share (b - a), and its limit where b - a is not finite."""
    gap = b - a
    limit = where(e.equal(share, 0), a, (1 - share) * a + share * b)
    return where(e.isfinite(gap), a + share * gap, limit)


@parameters(
    dim="The dim of the gaps.",
    points="Where the elements are: a tensor that increases along `dim`. By default 0, 1, 2, ...",
)
def interpolate_na(x: Operand, dim: str | None = None, points: Operand | None = None) -> Tensor:
    """`x` with nan replaced by linear interpolation between its neighbours along a dim.

    Before the first and after the last element that is not nan, nan stay. As
    `xarray.DataArray.interpolate_na`.

    >>> x = gc.constant([1.0, float("nan"), float("nan"), 7.0, float("nan")], "t")
    >>> gc.compile([], gc.interpolate_na(x, "t"))()
    array([ 1.,  3.,  5.,  7., nan])
    """
    value = wrap(single(x))
    name = dim_of(value.node, dim)
    if not may_be_null(value):
        return value
    given = arange(value.sizes[name], dim=name) if points is None else points
    place = astype(wrap(single(given)), value.real.dtype)
    dim_of(place.node, name)
    there = notnull(value)
    known = where(there, place, math.nan)
    left, right = ffill(known, name), bfill(known, name)
    inside = right > left
    share = where(inside, (place - left) / where(inside, right - left, 1), 0)
    found = between(ffill(value, name), bfill(value, name), share)
    filled = where(there, value, where(inside, found, math.nan))
    return transpose(filled, *value.dims, ...)
