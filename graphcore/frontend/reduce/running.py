"""Running sums and other running reductions along dims."""

from __future__ import annotations

import math

from graphcore.frontend.core.arguments import Dim, dim_of, dims_of, require_dims, whole
from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.create.inputs import full
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.index.indexing import take_along
from graphcore.frontend.index.slices import flip
from graphcore.frontend.pointwise.elementwise import maximum
from graphcore.frontend.pointwise.formulas import keep_where, where
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.pointwise.missing import isnull, may_be_null, notnull
from graphcore.frontend.shape.dims import concat, keep_labels
from graphcore.ir import Op
from graphcore.ir.help_text import parameters
from graphcore.ops import named

from .masking import REDUCED, Mask, Masked, mask_operand, over, running_extreme

ALONG = REDUCED | {"dim": "The dims to run along, in turn: one name, several, or None for all."}

__all__ = [
    "bfill",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "ffill",
]


@parameters(**ALONG)
def cumsum(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Running sum along dims, in turn.

    Small integers and bool are widened, as in NumPy. Elements left out add nothing.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], gc.cumsum(x, dim="col"))()
    array([[ 1,  3,  6],
           [ 4,  9, 15]])
    """
    return accumulate(mask_operand(x, dim, where, skipna), named.cumsum, 0, dim, skipna)


@parameters(**ALONG)
def cumprod(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Running product along dims, in turn.

    Small integers and bool are widened, as in NumPy. Elements left out change nothing.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], gc.cumprod(x, dim="col"))()
    array([[  1,   2,   6],
           [  4,  20, 120]])
    """
    return accumulate(mask_operand(x, dim, where, skipna), named.cumprod, 1, dim, skipna)


def accumulate(data: Masked, op: Op, neutral: complex, dim: Dim, skipna: bool) -> Tensor:
    """`op` along each dim in turn; with `skipna`, nan from earlier dims is skipped as well.

    As in xarray: inf - inf along one dim counts as missing along the next.
    """
    found = data.fill(neutral)
    if not (skipna and may_be_null(data.x)):
        return over(op, found, data.dims)
    require_dims(data.x.node, data.dims)
    for i, name in enumerate(dims_of(data.x.node, dim, ordered=True)):
        kept = choose(isnull(found), neutral, found) if i > 0 else found
        found = over(op, kept, (name,))
    return found


@parameters(
    dim="The dim to run along.",
    include_initial="Whether the result begins with 0, so that the dim is one longer.",
)
def cumulative_sum(x: Operand, dim: str | None = None, *, include_initial: bool = False) -> Tensor:
    """Running sum along one dim; `include_initial` starts it with 0, so the dim is one longer.

    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], gc.cumulative_sum(x, "t", include_initial=True))()
    array([0, 1, 3, 6])
    """
    name = dim_of(single(x), dim)
    found = cumsum(x, name)
    return after(0, found, name) if include_initial else found


@parameters(
    dim="The dim to run along.",
    include_initial="Whether the result begins with 1, so that the dim is one longer.",
)
def cumulative_prod(x: Operand, dim: str | None = None, *, include_initial: bool = False) -> Tensor:
    """Running product along one dim; `include_initial` starts it with 1, so the dim is one longer.

    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], gc.cumulative_prod(x, "t", include_initial=True))()
    array([1, 1, 2, 6])
    """
    name = dim_of(single(x), dim)
    found = cumprod(x, name)
    return after(1, found, name) if include_initial else found


def after(first: complex, x: Tensor, dim: str) -> Tensor:
    """`x` with the number `first` put before it along `dim`."""
    return concat([full({**x.sizes, dim: 1}, first, x.dtype), x], dim)


@parameters(**ALONG)
def cummax(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Largest element so far along dims, in turn.

    After a nan the result is nan, unless it is left out; before the first element counted it is nan
    as well. Tied elements share the derivative evenly. As `numpy.maximum.accumulate`.

    >>> gc.compile([], gc.cummax(gc.constant([1, 3, 2, 5], "t"), "t"))()
    array([1, 3, 3, 5])
    """
    return running_extreme(mask_operand(x, dim, where, skipna), named.cummax, 1)


@parameters(**ALONG)
def cummin(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Smallest element so far along dims, in turn.

    After a nan the result is nan, unless it is left out; before the first element counted it is nan
    as well. Tied elements share the derivative evenly. As `numpy.minimum.accumulate`.

    >>> gc.compile([], gc.cummin(gc.constant([4, 3, 5, 1], "t"), "t"))()
    array([4, 3, 3, 1])
    """
    return running_extreme(mask_operand(x, dim, where, skipna), named.cummin, -1)


@parameters(**ALONG)
def logcumsumexp(
    x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False
) -> Tensor:
    """`log(cumsum(exp(x)))` along dims, one after the other, without overflow.

    The result is -inf as long as all of `x` is. Floats keep their dtype; elements left out add
    nothing.

    >>> gc.compile([], gc.special.logcumsumexp(gc.constant([0.0, 0.0, 1000.0], "t"), dim="t"))()
    array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    data = mask_operand(x, dim, where, skipna)
    return data.reduce(named.logcumsumexp, -math.inf)


@parameters(
    dim="The dim to fill along.",
    limit="The number of consecutive nan that are replaced at most; None means no limit.",
)
def ffill(x: Operand, dim: str | None = None, limit: int | None = None) -> Tensor:
    """`x` with nan replaced by the last value before it along `dim`; leading nan stay.

    >>> x = gc.constant([1.0, float("nan"), 3.0, float("nan")], "t")
    >>> gc.compile([], gc.ffill(x, "t"))()
    array([1., 1., 3., 3.])
    """
    value = wrap(single(x))
    name = dim_of(value.node, dim)
    if not may_be_null(value):
        return value
    place = arange(value.sizes[name], dim=name)
    last = cummax(where(notnull(value), place, -1), name)
    found = last >= 0
    if limit is not None:
        most = whole(limit, "limit", value, least=1)
        found = found & (place - last <= most)
    filled = keep_where(take_along(value, maximum(last, 0), name), found)
    return wrap(keep_labels(filled.node, value.node, (name,)))


@parameters(
    dim="The dim to fill along.",
    limit="The number of consecutive nan that are replaced at most; None means no limit.",
)
def bfill(x: Operand, dim: str | None = None, limit: int | None = None) -> Tensor:
    """`x` with nan replaced by the next value after it along `dim`; trailing nan stay.

    >>> x = gc.constant([1.0, float("nan"), 3.0, float("nan")], "t")
    >>> gc.compile([], gc.bfill(x, "t"))()
    array([ 1.,  3.,  3., nan])
    """
    name = dim_of(single(x), dim)
    return flip(ffill(flip(x, name), name, limit), name)
