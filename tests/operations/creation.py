"""Tensors made of nothing."""

from __future__ import annotations

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, V, bare

CASES: dict[str, Case] = {
    "arange": Case(
        lambda x: x * gc.arange(x.sizes["row"], dim="row"), lambda x: x * bare(xarray.DataArray(
            np.arange(x.sizes["row"]), dims="row"))
    ),
    "linspace": Case(
        lambda x, y: gc.linspace(x, y, 5, dim="t"),
        lambda x, y: xarray.DataArray(
            np.linspace(x.values, y.values, 5), dims=("t", "row")), (V, V), batch=False
    ),
    "full": Case(
        lambda x: gc.full({"new": 2}, x), lambda x: x.expand_dims(new=2)
    ),
    "likes": Case(
        lambda x: gc.ones_like(x) + gc.zeros_like(x) + gc.full_like(x, 2.5) * x,
        lambda x: 1 + 2.5 * x,
    ),
    "constant": Case(
        lambda x: x * gc.constant([1.0, 2.0, 3.0], "t") + gc.ones({"t": 3}) + gc.zeros({"u": 2}),
        lambda x: x * xarray.DataArray([1.0, 2.0, 3.0], dims="t")
        + xarray.DataArray(np.ones(3), dims="t") + xarray.DataArray(np.zeros(2), dims="u"),
    ),
}  # fmt: skip
