"""Values between known ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import dim_of
from .base import wrap
from .elementwise import equal, isfinite, maximum, minimum
from .formulas import where
from .indexing import isel
from .lift import Operand, common, single
from .masking import as_float
from .searching import Row, require_order, row_of, searchsorted
from .shape import agreed, transpose

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "interp",
]


def interp(
    x: Operand,
    xp: Row,
    fp: Row,
    dim: str,
    left: Operand | None = None,
    right: Operand | None = None,
) -> Tensor:
    """Linear interpolation at `x` between the points (xp, fp) along `dim`, as `numpy.interp`.

    Differentiable in all operands; at a point the slope in `x` is that to the right.

    Parameters
    ----------
    x
        Where. Its dims come first.
    xp
        The known places, which increase along `dim`, or a list along it. Other dims align by name.
    fp
        The values there: a tensor with `dim`, or a list.
    dim
        The dim of the points.
    left, right
        The values below the first place and above the last; by default those at the ends.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.constant([0.5, 1.5, 9.0], "t")
    >>> gc.compile([], gc.interp(x, [0.0, 1.0, 2.0], [10.0, 20.0, 40.0], dim="point"))()
    array([15., 30., 40.])
    """
    at, places = map(wrap, common("interp", x, row_of("interp", xp, dim)))
    require_order("interp", at)
    require_order("interp", places)
    given = single("interp", row_of("interp", fp, dim))
    for operand in (places.node, given):
        dim_of("interp", operand, dim)
    values = as_float(wrap(agreed(given, dim, places.sizes[dim])))
    above = searchsorted(places, at, dim, "right")
    upper = minimum(maximum(above, 1), places.sizes[dim] - 1)
    lower = maximum(upper - 1, 0)
    x0, x1 = (isel(places, {dim: i}) for i in (lower, upper))
    y0, y1 = (isel(values, {dim: i}) for i in (lower, upper))
    step = x1 - x0
    found = between(y0, y1, (at - x0) / where(equal(step, 0), 1, step))
    first, final = isel(places, {dim: 0}), isel(places, {dim: -1})
    found = where(at < first, isel(values, {dim: 0}) if left is None else left, found)
    found = where(at >= final, isel(values, {dim: -1}), found)
    if right is not None:
        found = where(at > final, right, found)
    return transpose(found, *at.dims, ...)


def between(a: Tensor, b: Tensor, share: Tensor) -> Tensor:
    """a + share (b - a), and its limit where b - a is not finite."""
    gap = b - a
    limit = where(equal(share, 0), a, (1 - share) * a + share * b)
    return where(isfinite(gap), a + share * gap, limit)
