"""Values in order, and where they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats
import xarray

import graphcore as gc
from tests.operations.case import ROWS, Case, Input, X, Y

TIED = Input("row col", -3, 3, "int64")
LIMITS = Input("col six")


def along(dim: str, function: Any) -> Any:
    """A function of NumPy along one axis, for results of the same dims."""
    return lambda x: xarray.DataArray(function(x.values, x.dims.index(dim)), dims=x.dims)


def descending(values: Any, axis: int) -> Any:
    """The stable order from the largest on."""
    last = values.shape[axis] - 1
    return last - np.flip(np.argsort(np.flip(values, axis), axis, kind="stable"), axis)


def rank(x: Any, dim: str, pct: bool = False) -> Any:
    ranks = scipy.stats.rankdata(x.values, axis=x.dims.index(dim), nan_policy="omit")
    ranks = x.copy(data=ranks.reshape(x.shape))
    wanted = ranks / x.notnull().sum(dim) if pct else ranks
    return wanted.transpose(*x.dims).astype(x.dtype if x.dtype.kind == "f" else "float64")


def searched(x: Any, values: Any, dim: str, side: str) -> Any:
    """Row by row; a dim of the same name in `values` is another one."""
    found = xarray.apply_ufunc(
        lambda row, value: np.searchsorted(row, value, side),
        x.rename({dim: "sorted"}),
        values,
        input_core_dims=[["sorted"], []],
        vectorize=True,
        output_dtypes=[np.int64],
    )
    return found.transpose(*dict.fromkeys((*(d for d in x.dims if d != dim), *values.dims)))


CASES: dict[str, Case] = {
    "argsort": Case(lambda x: x.argsort("row"), along("row", np.argsort)),
    "argsort ties": Case(
        lambda x: x.argsort("col"),
        along("col", lambda x, axis: np.argsort(x, axis, kind="stable")), (TIED,),
    ),
    "argsort descending": Case(
        lambda x: x.argsort("col", descending=True), along("col", descending), (TIED,)
    ),
    "sort": Case(lambda x: x.sort("row"), along("row", np.sort)),
    "sort last": Case(lambda x: gc.sort(x, "col"), along("col", np.sort)),
    "sort descending": Case(
        lambda x: x.sort("col", descending=True),
        along("col", lambda x, axis: np.flip(np.sort(x, axis), axis)),
    ),
    "sort integers": Case(lambda x: x.sort("row"), along("row", np.sort), (TIED,)),
    "top_k": Case(
        lambda x: gc.top_k(x, 2, "row").values,
        lambda x: xarray.DataArray(np.flip(np.sort(x.values, 0), 0)[:2], dims=x.dims),
        batch=False, **ROWS
    ),
    "top_k indices": Case(
        lambda x: x.top_k(2, "row").indices,
        lambda x: xarray.DataArray(descending(x.values, 0)[:2], dims=x.dims), (TIED,),
        batch=False, **ROWS
    ),
    "rank": Case(lambda x: x.rank("row"), lambda x: rank(x, "row")),
    "rank ties": Case(lambda x: x.rank("col"), lambda x: rank(x, "col"), (TIED,)),
    "rank pct": Case(
        lambda x: x.rank("col", pct=True), lambda x: rank(x, "col", True)
    ),
    **{
        f"searchsorted {side}": Case(
            lambda x, v, side=side: gc.searchsorted(x.sort("col"), v, "col", side),
            lambda x, v, side=side: searched(along("col", np.sort)(x), v, "col", side),
            inputs,
        )
        for side, inputs in {
            "left": (X, Y), "right": (TIED, Input("batch", -3, 3, "int64"))
        }.items()
    },
    "searchsorted own": Case(
        lambda x, v: gc.searchsorted(x.sort("col"), v, "col"),
        lambda x, v: searched(along("col", np.sort)(x), v, "col", "left"), (X, Input("batch row")),
    ),
}  # fmt: skip
