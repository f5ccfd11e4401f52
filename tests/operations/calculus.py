"""Differences, slopes, integrals and running values along a dim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate
import scipy.special
import xarray

import graphcore as gc
from tests.operations.case import ROWS, Case, Input, X, alike

TIMES = Input("row", -2, 2)


def along(dim: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy of arrays and an axis, on DataArrays whose dims are alike."""

    def theirs(x: Any, *more: Any) -> Any:
        values = function(x.values, *[other.values for other in more], axis=x.dims.index(dim))
        kept = x.dims if values.ndim == x.ndim else [d for d in x.dims if d != dim]
        return xarray.DataArray(values, dims=kept)

    return theirs


def spread(t: Any) -> Any:
    """Points that ascend, by no less than a half each."""
    return (t * t + 0.5).cumsum("row")


def prefixes(x: Any, axis: int) -> Any:
    moved = np.moveaxis(x, axis, 0)
    found = [scipy.special.logsumexp(moved[: i + 1], axis=0) for i in range(len(moved))]
    return np.moveaxis(np.array(found), 0, axis).astype(x.dtype) if x.size else x


CASES: dict[str, Case] = {
    "diff": alike(lambda x: x.diff("row")),
    "diff twice": alike(lambda x: x.diff("col", n=2)),
    "diff never": Case(lambda x: gc.diff(x * 1, "col", n=0), lambda x: x.diff("col", n=0)),
    "diff of bool": Case(lambda x: (x > 0).diff("row"), lambda x: along("row", np.diff)(x > 0)),
    "trapezoid": Case(
        lambda y: gc.trapezoid(y, dx=0.5, dim="col"),
        along("col", lambda y, axis: np.trapezoid(y, dx=0.5, axis=axis)),
    ),
    "trapezoid of points": Case(
        lambda y, x: gc.trapezoid(y, x, dim="row"),
        along("row", lambda y, x, axis: np.trapezoid(y, x, axis=axis)),
        (X, X),
    ),
    "cumulative_trapezoid": Case(
        lambda y, x: gc.cumulative_trapezoid(y, x, dim="col", initial=0),
        along("col", lambda y, x, axis:
              scipy.integrate.cumulative_trapezoid(y, x, axis=axis, initial=0)),
        (X, X), fixed=("col",),
    ),
    "cumulative_trapezoid even": Case(
        lambda y: gc.cumulative_trapezoid(y, dx=2, dim="row"),
        along("row", lambda y, axis: scipy.integrate.cumulative_trapezoid(y, dx=2, axis=axis)),
        **ROWS,
    ),
    **{
        f"gradient {order}": Case(
            lambda x, order=order: gc.gradient(x, "row", 0.25, edge_order=order),
            along("row", lambda x, axis, order=order:
                  np.gradient(x, 0.25, axis=axis, edge_order=order)),
            **ROWS,
        )
        for order in (1, 2)
    },
    **{
        f"gradient uneven {order}": Case(
            lambda x, t, order=order: gc.gradient(x, "row", spread(t), edge_order=order),
            lambda x, t, order=order: along("row", lambda x, t, axis:
                np.gradient(x, t, axis=axis, edge_order=order))(x, spread(t)),
            (X, TIMES), **ROWS,
        )
        for order in (1, 2)
    },
    "cumulative_sum": Case(
        lambda x: gc.cumulative_sum(x, "row", include_initial=True),
        along("row", lambda x, axis: np.cumulative_sum(x, axis=axis, include_initial=True)),
    ),
    "cumulative_sum short": Case(lambda x: gc.cumulative_sum(x, "col"), lambda x: x.cumsum("col")),
    "cumulative_prod": Case(
        lambda x: gc.cumulative_prod(x, "col", include_initial=True),
        along("col", lambda x, axis: np.cumulative_prod(x, axis=axis, include_initial=True)),
    ),
    "cumulative_prod short": Case(
        lambda x: gc.cumulative_prod(x, "row"), lambda x: x.cumprod("row")
    ),
    "cummax": Case(lambda x: gc.cummax(x, "row"), along("row", np.maximum.accumulate)),
    "cummax several": Case(
        lambda x: gc.cummax(x, ["row", "col"]),
        lambda x: along("col", np.maximum.accumulate)(along("row", np.maximum.accumulate)(x)),
    ),
    "cummax where": Case(
        lambda x: gc.cummax(x, "col", where=x < 10), along("col", np.maximum.accumulate)
    ),
    "cummin": Case(lambda x: gc.cummin(x, "col"), along("col", np.minimum.accumulate)),
    "logcumsumexp": Case(lambda x: gc.special.logcumsumexp(x, "row"), along("row", prefixes)),
    "logcumsumexp several": Case(
        lambda x: gc.special.logcumsumexp(x), lambda x: along("col", prefixes)(
            along("row", prefixes)(x)), batch=False,
    ),
}  # fmt: skip
