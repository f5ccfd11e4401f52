"""Medians and quantiles, against NumPy and xarray."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X

METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased"),
    *("normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)
INTEGERS = Input("row col", -9, 9, "int64")
SHARE = Input("row batch", 0.1, 0.9)


def median(dim: Any, skipna: bool = False) -> Any:
    return lambda x: x.median(dim, skipna=skipna)


def quantile(q: Any, dim: Any, method: Any = "linear", skipna: bool = False) -> Any:
    def theirs(x: Any) -> Any:
        if x.size:
            found = x.quantile(q, dim, method=method, skipna=skipna)
        else:  # nan, if any
            found = x.median(dim) + xarray.DataArray(
                np.zeros_like(q), dims=["quantile"][: np.ndim(q)]
            )
            found = found.transpose("quantile", ...) if np.ndim(q) else found
        return found.astype(x.dtype if x.dtype.kind == "f" else "float64")

    return theirs


def by_row(x: Any, q: Any) -> Any:
    """A quantile of its own for each row and place of the batch; of none it is nan."""
    found = np.full((x.sizes["row"], q.sizes["batch"]), np.nan, x.dtype)
    for row, place in np.ndindex(*found.shape):
        if x.sizes["col"]:
            found[row, place] = np.quantile(x.values[row], q.values[row, place])
    return xarray.DataArray(found, dims=("row", "batch"))


CASES: dict[str, Case] = {
    "median": Case(lambda x: x.median("row"), median("row")),
    "median even": Case(lambda x: x.median("col"), median("col")),
    "median of several": Case(lambda x: x.median(["col", "row"]), median(["col", "row"])),
    "median all": Case(gc.median, median(None), batch=False),
    "median integers": Case(lambda x: x.median("col"), median("col"), (INTEGERS,)),
    "median skipna": Case(
        lambda x: x.where(x < 0.5).median("col", skipna=True),
        lambda x: median("col", True)(x.where(x < 0.5)), (Input("row col", -2, 1),)
    ),
    "median where": Case(
        lambda x, v: x.median("row", where=v < 1),
        lambda x, v: median("row", True)(x.where(v < 1)), (X, V)
    ),
    **{
        f"quantile {method}": Case(
            lambda x, m=method: x.quantile([0.07, 0.3, 0.85], "row", method=m),
            quantile([0.07, 0.3, 0.85], "row", method),
        )
        for method in METHODS
    },
    "quantile number": Case(lambda x: x.quantile(0.7, "col"), quantile(0.7, "col")),
    "quantile ends": Case(lambda x: x.quantile([0, 1], "col"), quantile([0, 1], "col")),
    "quantile all": Case(lambda x: x.quantile(0.7), quantile(0.7, None), batch=False),
    "quantile of several": Case(
        lambda x: x.quantile([0.2, 0.7], ["row", "col"]), quantile([0.2, 0.7], ["row", "col"])
    ),
    "quantile integers": Case(lambda x: x.quantile(0.7, "col"), quantile(0.7, "col"), (INTEGERS,)),
    "quantile skipna": Case(
        lambda x: x.where(x < 0.5).quantile([0.2, 0.7], "col", skipna=True),
        lambda x: quantile([0.2, 0.7], "col", skipna=True)(x.where(x < 0.5)),
        (Input("row col", -2, 1),),
    ),
    "quantile by tensor": Case(lambda x, q: gc.quantile(x, q, "col"), by_row, (X, SHARE)),
}  # fmt: skip
