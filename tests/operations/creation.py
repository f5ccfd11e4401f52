"""Tensors made of nothing."""

from __future__ import annotations

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, bare


def singly(x: gc.Tensor) -> gc.Tensor:
    with gc.default_dtype("float32"):
        return x + gc.ones({})


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
    "linspace integers": Case(
        lambda x, y: gc.linspace(x, y, 5, dim="t", endpoint=False, dtype="int32"),
        lambda x, y: xarray.DataArray(
            np.linspace(x.values, y.values, 5, endpoint=False, dtype="int32"), dims=("t", "row")
        ),
        (Input("row", 0, 99, "uint8"), Input("row", 0, 99, "uint8")),
        batch=False,
    ),
    "logspace": Case(
        lambda x, y: gc.logspace(x, y, 4, dim="t", base=2.0),
        lambda x, y: xarray.DataArray(
            np.logspace(x.values, y.values, 4, base=2.0), dims=("t", "row")), (V, V), batch=False
    ),
    "logspace base": Case(
        lambda x: gc.logspace(-1, 2, 4, dim="t", endpoint=False, base=x),
        lambda x: xarray.DataArray(
            np.logspace(-1, 2, 4, endpoint=False, base=x.values), dims=("t", "row")
        ),
        (Input("row", 0.5, 2),),
        batch=False,
    ),
    "geomspace": Case(
        lambda x, y: gc.geomspace(x, y, 5, dim="t"),
        lambda x, y: xarray.DataArray(np.geomspace(x.values, y.values, 5), dims=("t", "row")),
        (Input("row", 0.5, 2), Input("row", 2, 3)),
        batch=False,
    ),
    "geomspace negative": Case(
        lambda x, y: gc.geomspace(x, y, x.sizes["row"], dim="t", endpoint=False),
        lambda x, y: xarray.DataArray(
            np.geomspace(x.values, y.values, x.sizes["row"], endpoint=False), dims=("t", "row")
        ),
        (Input("row", -2, -1), Input("row", -2, -1)),
        batch=False,
    ),
    "one_hot": Case(
        lambda i, x: gc.one_hot(i, 3, dtype="bool") * x,
        lambda i, x: (i == xarray.DataArray(np.arange(3), dims="class")) * x,
        (Input("row", -2, 5, "int64"), V),
    ),
    "one_hot floats": Case(
        lambda i: gc.one_hot(i, i.sizes["row"], "k"),
        lambda i: 1.0 * (i == xarray.DataArray(np.arange(i.sizes["row"]), dims="k")),
        (Input("row", 0, 5, "uint8"),),
        batch=False,
    ),
    "vander": Case(
        lambda x: gc.vander(x, 4),
        lambda x: xarray.DataArray(
            np.reshape([np.vander(row, 4) for row in x.values], (*x.shape, 4)),
            dims=(*x.dims, "power"),
        ),
    ),
    "vander increasing": Case(
        lambda x: gc.vander(x, x.sizes["row"], increasing=True),
        lambda x: xarray.DataArray(
            np.vander(x.values, increasing=True), dims=("row", "power")
        ),
        (V,),
        batch=False,
    ),
    "vander integers": Case(
        lambda x: gc.vander(x, 5, "k"),
        lambda x: xarray.DataArray(np.vander(x.values, 5), dims=("row", "k")),
        (Input("row", -9, 9, "int16"),),
    ),
    "full": Case(
        lambda x: gc.full({"new": 2}, x), lambda x: x.expand_dims(new=2)
    ),
    "likes": Case(
        lambda x: gc.ones_like(x) + gc.zeros_like(x) + gc.full_like(x, 2.5) * x,
        lambda x: 1 + 2.5 * x,
    ),
    "array": Case(
        lambda x: gc.array([[gc.cos(x), 0, x], [1, x.sum("col"), 2.5]], ("i", "k")),
        lambda x: xarray.concat(
            [
                xarray.concat([y.broadcast_like(x).expand_dims("k") for y in ys], "k")
                for ys in (
                    [np.cos(x), x * 0, x], [x * 0 + 1, x.sum("col"), x * 0 + x.dtype.type(2.5)]
                )
            ],
            "i",
        ).transpose(..., "i", "k"),
    ),
    "array of numbers": Case(
        lambda x: x * gc.array([[1.0, 2.0], [3.0, 4.0]], ("i", "k")).astype(x.dtype),
        lambda x: x * xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("i", "k")).astype(x.dtype),
    ),
    "default_dtype": Case(singly, lambda x: x + np.float32(1)),
    "constant": Case(
        lambda x: x * gc.constant([1.0, 2.0, 3.0], "t") + gc.ones({"t": 3}) + gc.zeros({"u": 2}),
        lambda x: x * xarray.DataArray([1.0, 2.0, 3.0], dims="t")
        + xarray.DataArray(np.ones(3), dims="t") + xarray.DataArray(np.zeros(2), dims="u"),
    ),
}  # fmt: skip
