"""Windows along dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, X


def seen(x: Any, dim: str, name: str, size: int, stride: int = 1, dilation: int = 1) -> Any:
    """The windows by the places they see."""
    starts = np.arange(0, x.sizes[dim] - (size - 1) * dilation, stride)
    at = starts[:, None] + dilation * np.arange(size)
    order = (*x.dims, name)
    return x.isel({dim: xarray.DataArray(at, dims=(dim, name))}).transpose(*order)


def added(x: Any, dim: str, name: str, size: int, stride: int = 1, dilation: int = 1) -> Any:
    """The windows added up, one place after the other."""
    order = [d for d in x.dims if d != name]
    shape = [size if d == dim else x.sizes[d] for d in order]
    whole = xarray.DataArray(np.zeros(shape, x.dtype), dims=order)
    for i in range(x.sizes[dim]):
        for j in range(x.sizes[name]):
            whole[{dim: i * stride + j * dilation}] += x.isel({dim: i, name: j})
    return whole


CASES: dict[str, Case] = {
    "windows": Case(
        lambda x: gc.windows(x, {"col": 2}, names="lag"), lambda x: seen(x, "col", "lag", 2)
    ),
    "windows apart": Case(
        lambda x: gc.windows(x, {"row": 2}, names="lag", stride=3),
        lambda x: seen(x, "row", "lag", 2, 3),
    ),
    "windows dilated": Case(
        lambda x: gc.windows(x, {"six": 2}, names="lag", stride=2, dilation=3),
        lambda x: seen(x, "six", "lag", 2, 2, 3),
        (Input("six row"),),
    ),
    "windows of several": Case(
        lambda x: gc.windows(
            x, {"col": 3, "row": 2}, {"row": "i", "col": "j"}, stride={"row": 1, "col": 2}
        ),
        lambda x: seen(seen(x, "col", "j", 3, 2), "row", "i", 2),
        (Input("row batch col"),),
    ),
    "windows squared": Case(
        lambda x: (gc.windows(x, {"row": 2}, names="lag") ** 2).max(["lag", "col"]),
        lambda x: (seen(x, "row", "lag", 2) ** 2).max(["lag", "col"]),
        fixed=("col",),
    ),
    "overlap_add": Case(
        lambda x: gc.overlap_add(x, {"row": None}, names="col"),
        lambda x: added(x, "row", "col", max(x.sizes["row"] + x.sizes["col"] - 1, 0)),
        fixed=("col",),
    ),
    "overlap_add apart": Case(
        lambda x: gc.overlap_add(x, {"row": 14}, names="col", stride=4, dilation=1),
        lambda x: added(x, "row", "col", 14, 4),
        fixed=("row", "col"),
    ),
    "overlap_add of several": Case(
        lambda x: gc.overlap_add(
            x, {"col": None, "row": None}, {"row": "i", "col": "six"}, stride=2, dilation=3
        ),
        lambda x: added(
            added(x, "col", "six", max(2 * x.sizes["col"] + 14, 0), 2, 3),
            "row", "i", max(2 * x.sizes["row"] + 2, 0), 2, 3,
        ),
        (Input("row six i col"),),
        fixed=("six", "i"),
    ),
    "overlap_add windows": Case(
        lambda x: gc.overlap_add(gc.windows(x, {"col": 3}, "lag"), {"col": x.sizes["col"]}, "lag"),
        lambda x: added(seen(x, "col", "lag", 3), "col", "lag", x.sizes["col"]),
        (X,),
    ),
}  # fmt: skip
