"""Medians and quantiles over dims: sorted elements, or values between two of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from graphcore.frontend.core.arguments import Dim, check_word, require_dims, require_order
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, array, as_array
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.index.picked_positions import merge_dims
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.elementwise import ceil, equal, floor, maximum, minimum, rint
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.pointwise.missing import isnull, may_be_null
from graphcore.frontend.reduce.masking import REDUCED, Mask, Masked, mask_operand, over
from graphcore.frontend.shape.dims import concat, label, transpose
from graphcore.ir.dtypes import FLOAT, INT
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import Size, lower_bound
from graphcore.ir.sizes import maximum as most
from graphcore.ops import named

from .interpolation import between
from .sorting import sort

__all__ = [
    "median",
    "quantile",
]

Places: TypeAlias = "Callable[[Tensor, Any], tuple[Tensor, Tensor]]"


@parameters(**REDUCED)
def median(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Median over dims: the middle element, or the mean of the two.

    Floats keep their dtype, all others become float64. The median is nan if any element counted is,
    or if there is none. The derivative goes to the middle elements; of tied ones to those that a
    stable sort puts there.

    >>> gc.compile([], gc.median(gc.constant([4.0, 1.0, 9.0, 2.0], "t")))()
    array(3.)
    """
    return median_of(sorted_rows(mask_operand(x, dim, where, skipna), skipna))


def median_of(order: Order) -> Tensor:
    """The middle of sorted elements."""
    low, high = order.at((order.size - 1) // 2), order.at(order.size // 2)
    return order.or_nan(midpoint(low, high))


@parameters(
    x="A tensor of real numbers.",
    q='A number between 0 and 1. A list of them gives a new first dim "quantile". The dims of a '
    "tensor come first and align with those of `x`; where it is not between 0 and 1, the result is "
    "nan.",
    dim="The dims to reduce: one name, several, or None for all.",
    method='How to choose between two elements, as in NumPy (Hyndman & Fan 1996): "inverted_cdf", '
    '"averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", '
    '"weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint" or '
    '"nearest".',
)
def quantile(
    x: Operand,
    q: Operand | Sequence[float] | npt.NDArray[Any],
    dim: Dim = None,
    *,
    method: str = "linear",
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Quantiles over dims: the value below which a fraction `q` of the elements is.

    Floats keep their dtype, all others become float64. A quantile is nan if any element counted is,
    or if there is none. The derivative goes to the elements on both sides of the quantile; of
    tied ones to those that a stable sort puts there.

    GraphError if `x` is complex, if `q` is known now and not between 0 and 1, or if the method is
    unknown.

    >>> x = gc.constant([[1.0, 2.0, 3.0], [5.0, 4.0, 9.0]], ("row", "t"))
    >>> gc.compile([], gc.quantile(x, [0.25, 0.5], dim="t"))()
    array([[1.5, 4.5],
           [2. , 5. ]])
    """
    data = mask_operand(x, dim, where, skipna)
    check_word("method", method, (*CHOSEN, *LINEAR), data.x)
    share, valid = share_of(data, q)
    found = quantile_of(sorted_rows(data, skipna), share, valid, method)
    return first_by_fraction(found, share, q)


def quantile_of(order: Order, share: Tensor, valid: Tensor | None, method: str) -> Tensor:
    """The quantiles of sorted elements, nan where a share is not `valid`."""
    check_word("method", method, (*CHOSEN, *LINEAR), order.values)
    if method in LINEAR:
        alpha, beta = LINEAR[method]
        at = share * (order.size - 1) + share * (2 - alpha - beta) + (alpha - 1)
        low = floor(at)
        a, b = order.near(low), order.near(low + 1)
        found = between(a, b, astype(at - low, a.dtype))
    else:
        low, high = map(order.near, CHOSEN[method](share, order.size))
        found = low if low is high else midpoint(low, high)
    found = order.or_nan(found)
    return found if valid is None else choose(valid, found, math.nan)


LINEAR: dict[str, tuple[float, float]] = {
    "linear": (1, 1),
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""Methods that interpolate linearly between two values: alpha and beta of the position
q (n + 1 - alpha - beta) + alpha - 1, which counts from 0."""


def nearest_even(at: Tensor) -> Tensor:
    """The next position, or the present one where it is exact and, counted from 1, even."""
    low = floor(at)
    return choose(equal(at, low) & equal(low % 2, 1), low, low + 1)


def twice(place: Callable[[Tensor, Any], Tensor]) -> Places:
    """Both positions are the same."""
    return lambda q, n: (place(q, n),) * 2


CHOSEN: dict[str, Places] = {
    "inverted_cdf": twice(lambda q, n: ceil(q * n - 1)),
    "averaged_inverted_cdf": lambda q, n: (ceil(q * n - 1), floor(q * n - 1) + 1),
    "closest_observation": twice(lambda q, n: nearest_even(q * n - 1.5)),
    "lower": twice(lambda q, n: floor(q * (n - 1))),
    "higher": twice(lambda q, n: ceil(q * (n - 1))),
    "midpoint": lambda q, n: (floor(q * (n - 1)), ceil(q * (n - 1))),
    "nearest": twice(lambda q, n: rint(q * (n - 1))),
}
"""Methods that choose a value, or the middle of two: their positions for quantile q of n values."""


class Order(NamedTuple):
    """The elements counted, sorted along `dim`: `size` of `values`, from `start` on.

    `size` and `start` are tensors where they differ from row to row. Rows where `nan_rows` holds
    are nan.
    """

    values: Tensor
    dim: str
    size: Any
    nan_rows: Tensor | None
    start: Any = 0

    def at(self, place: Size | Tensor) -> Tensor:
        """The element at a position, as a float."""
        return as_float(isel(self.values, {self.dim: self.start + place}))

    def near(self, place: Tensor) -> Tensor:
        """The element at a position, clipped to the ends. Without any element it is nan."""
        return self.at(astype(minimum(maximum(place, 0), self.size - 1), INT))

    def or_nan(self, found: Tensor) -> Tensor:
        """`found`, and nan in rows that are nan."""
        return found if self.nan_rows is None else choose(self.nan_rows, math.nan, found)


def sorted_rows(data: Masked, skipna: bool) -> Order:
    """Each row sorted. Elements left out are nan, so they come last."""
    x, dims = data.x, data.dims
    require_dims(x.node, dims)
    require_order(x)
    if data.mask is not None:
        x = choose(data.mask, as_float(x), math.nan)
    x, dim = merge_dims(x, dims)
    size = x.sizes[dim]
    if (lower_bound(size) or 0) < 1:  # a nan then represents an empty row
        x, size = concat([as_float(x), math.nan], dim), most(size, 1)
    values = sort(x, dim)
    if data.mask is None:
        last = isel(values, {dim: size - 1})
        nan_rows = isnull(last) if may_be_null(last) else None
        return Order(values, dim, size, nan_rows)
    lost = None if skipna else over(named.any_, data.mask & isnull(data.x), data.dims)
    return Order(values, dim, data.size(), lost)


def midpoint(a: Tensor, b: Tensor) -> Tensor:
    """(a + b) / 2, without overflow."""
    return 0.5 * a + 0.5 * b


def first_by_fraction(found: Tensor, share: Tensor, q: Any) -> Tensor:
    """Quantiles with the dims of the fractions first, and labelled by those that are known."""
    found = transpose(found, *share.dims, ...)
    if isinstance(q, Base) or hasattr(q, "dims"):
        return found
    return label(found, "quantile", np.asarray(q, np.float64))


def share_of(data: Masked, q: Any, *more: str) -> tuple[Tensor, Tensor | None]:
    """The fractions as float64, and for a tensor where they are between 0 and 1.

    Results have the dims of `data` that are left, and `more`.
    """
    if isinstance(q, Base) or hasattr(q, "dims"):
        given = astype(q, FLOAT)
        valid = (given >= 0) & (given <= 1)
        return choose(valid, given, 0.0), valid
    known = as_array(q, data.x)
    values = known.astype(FLOAT) if known.dtype.kind in "biuf" else np.array([math.nan])
    if values.ndim > 1 or not np.all((values >= 0) & (values <= 1)):
        cure = "use a number, a list of numbers, or a tensor"
        reason = f"q={q!r} is not a number between 0 and 1, or a list of such numbers"
        raise refusal(reason, data.x, cure=cure)
    if values.ndim == 0:
        return wrap(array(values, ())), None
    if "quantile" in {*data.x.dims} - {*data.dims} | {*more}:
        cure = "rename it, or give q as a tensor with a dim of another name"
        raise refusal("there is a dim 'quantile' already", data.x, cure=cure)
    return wrap(array(values, ("quantile",))), None
