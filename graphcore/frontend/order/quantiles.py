"""Medians and quantiles over dims: values at places of the order, or between two of them."""

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
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.elementwise import ceil, equal, floor, maximum, minimum, rint
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.pointwise.missing import isnull, may_be_null
from graphcore.frontend.reduce.masking import Mask, Masked, as_float, masked, over
from graphcore.frontend.shape.dims import concat, transpose
from graphcore.ir.dtypes import FLOAT, INT
from graphcore.ir.sizes import Size, lower_bound
from graphcore.ir.sizes import maximum as most
from graphcore.ops import named

from .interpolation import between
from .searching import merged
from .sorting import sort

__all__ = [
    "median",
    "quantile",
]

Places: TypeAlias = "Callable[[Tensor, Any], tuple[Tensor, Tensor]]"


def median(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Median over one dim, several, or all (None): the middle value, or the mean of the two.

    Floats keep their dtype, the rest become float64; nan if any value that takes part is, or if
    none takes data. A derivative goes to the values in the middle, of ties to those that a stable
    sort brings there.

    >>> import graphcore as gc
    >>> gc.compile([], gc.median(gc.constant([4.0, 1.0, 9.0, 2.0], "t")))()
    array(3.)
    """
    order = sorted_rows(masked("median", x, dim, where, skipna), skipna)
    low, high = order.at((order.size - 1) // 2), order.at(order.size // 2)
    return order.unspoiled(midpoint(low, high))


def quantile(
    x: Operand,
    q: Operand | Sequence[float] | npt.NDArray[Any],
    dim: Dim = None,
    *,
    method: str = "linear",
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Quantiles over one dim, several, or all (None): the value below which a share `q` lies.

    Floats keep their dtype, the rest become float64; nan if any value that takes part is, or if
    none takes data. A derivative goes to the values between which the quantile lies, of ties to
    those that a stable sort brings there.

    Parameters
    ----------
    x
        A tensor of real numbers.
    q
        A share between 0 and 1; a list of them, along a new first dim "quantile"; or a tensor,
        whose dims come first and are shared with those of `x`. A value of a tensor that is no
        share gives nan.
    dim
        The dims.
    method
        How to choose between two values, as in NumPy (Hyndman & Fan 1996): "inverted_cdf",
        "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
        "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint"
        or "nearest".
    where
        What takes data.
    skipna
        Whether to leave nan out.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"batch": None, "t": 5})
    >>> gc.quantile(x, [0.1, 0.5, 0.9], dim="t")
    <Tensor: f64[quantile=3, batch]>
    """
    data = masked("quantile", x, dim, where, skipna)
    check_word("quantile", "method", method, (*CHOSEN, *LINEAR), data.x)
    share, valid = share_of(data, q)
    order = sorted_rows(data, skipna)
    if method in LINEAR:
        alpha, beta = LINEAR[method]
        at = share * (order.size - 1) + share * (2 - alpha - beta) + (alpha - 1)
        low = floor(at)
        a, b = order.near(low), order.near(low + 1)
        found = between(a, b, astype(at - low, a.dtype))
    else:
        low, high = map(order.near, CHOSEN[method](share, order.size))
        found = low if low is high else midpoint(low, high)
    found = order.unspoiled(found)
    if valid is not None:
        found = choose(valid, found, math.nan)
    return transpose(found, *share.dims, ...)


LINEAR: dict[str, tuple[float, float]] = {
    "linear": (1, 1),
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""Methods that go linearly from one value to the next: alpha and beta of the place
q (n + 1 - alpha - beta) + alpha - 1, which counts from 0."""


def nearest_even(at: Tensor) -> Tensor:
    """The place above, or the one at hand where it is exact and, counted from 1, even."""
    low = floor(at)
    return choose(equal(at, low) & equal(low % 2, 1), low, low + 1)


def twice(place: Callable[[Tensor, Any], Tensor]) -> Places:
    """One place stands for both."""
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
"""Methods that choose a value, or the middle of two: their places for q of n values."""


class Order(NamedTuple):
    """The values that take data, in order along `dim`: the first `size` of `values`.

    `size` is a tensor where it differs from row to row. `spoiled` rows are nan.
    """

    values: Tensor
    dim: str
    size: Any
    spoiled: Tensor | None

    def at(self, place: Size | Tensor) -> Tensor:
        """The value at a place, as a float."""
        return as_float(isel(self.values, {self.dim: place}))

    def near(self, place: Tensor) -> Tensor:
        """The value at a place, or at the end that it lies beyond. The last of none is nan."""
        return self.at(astype(minimum(maximum(place, 0), self.size - 1), INT))

    def unspoiled(self, found: Tensor) -> Tensor:
        """`found`, but nan in spoiled rows."""
        return found if self.spoiled is None else choose(self.spoiled, math.nan, found)


def sorted_rows(data: Masked, skipna: bool) -> Order:
    """The values of each row in order. What takes no part is nan, so that it comes last."""
    x, dims = data.x, data.dims
    require_dims(data.function, x.node, dims)
    require_order(data.function, x)
    if data.mask is not None:
        x = choose(data.mask, as_float(x), math.nan)
    x, dim = merged(x, dims)
    size = x.sizes[dim]
    if (lower_bound(size) or 0) < 1:  # then a nan stands for the lack of values
        x, size = concat([as_float(x), math.nan], dim), most(size, 1)
    values = sort(x, dim)
    if data.mask is None:
        last = isel(values, {dim: size - 1})
        spoiled = isnull(last) if may_be_null(last) else None
        return Order(values, dim, size, spoiled)
    lost = None if skipna else over(named.any_, data.mask & isnull(data.x), data.dims)
    return Order(values, dim, data.size(), lost)


def midpoint(a: Tensor, b: Tensor) -> Tensor:
    """(a + b) / 2, without overflow."""
    return 0.5 * a + 0.5 * b


def share_of(data: Masked, q: Any) -> tuple[Tensor, Tensor | None]:
    """The shares as float64, and where those of a tensor are shares at all."""
    if isinstance(q, Base) or hasattr(q, "dims"):
        given = astype(q, FLOAT)
        valid = (given >= 0) & (given <= 1)
        return choose(valid, given, 0.0), valid
    known = as_array(data.function, q, data.x)
    values = known.astype(FLOAT) if known.dtype.kind in "biuf" else np.array([math.nan])
    if values.ndim > 1 or not np.all((values >= 0) & (values <= 1)):
        cure = "use a number, a list of numbers, or a tensor"
        reason = f"q={q!r} is no share, between 0 and 1, nor a list of them"
        raise refusal(data.function, reason, data.x, cure=cure)
    if values.ndim == 0:
        return wrap(array(data.function, values, ())), None
    if "quantile" in data.x.dims and "quantile" not in data.dims:
        cure = "rename it, or give q as a tensor with a dim of another name"
        raise refusal(data.function, "there is a dim 'quantile' already in", data.x, cure=cure)
    return wrap(array(data.function, values, ("quantile",))), None
