"""Where values stand, and what lies between known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X, Y

EDGES = [-1.5, -0.2, 0.3, 0.3, 1.9]
TERNARY = Input("row col", -1, 2, "int64")


def binned(right: bool = False, edges: Any = EDGES) -> Any:
    return lambda x: x.copy(data=np.digitize(x.values, edges, right))


def interpolated(x: Any, xp: Any, fp: Any, **ends: float) -> Any:
    return x.copy(data=np.interp(x.values, xp, fp, **ends))


def points(x: Any, xp: Any, fp: Any) -> Any:
    """Rows of their own, each with a value or two of x to find."""
    if not xp.sizes["col"]:
        raise ValueError
    found = xarray.apply_ufunc(
        np.interp,
        x,
        xp.cumsum("col"),
        fp,
        input_core_dims=[[], ["col"], ["col"]],
        vectorize=True,
        output_dtypes=[np.float64],
    )
    return found.astype(fp.dtype).transpose(*dict.fromkeys((*x.dims, *found.dims)))


def positions(x: Any, size: int, dim: str) -> Any:
    """-1 where there are fewer."""
    mask = x != 0
    found = np.argwhere(mask.values)[:size, x.dims.index(dim)]
    found = np.concatenate([found, np.full(size - len(found), -1)])
    return xarray.DataArray(found, dims="nonzero")


def by_row(x: Any, size: int) -> Any:
    rows = [positions(row, size, "col") for row in x.transpose("row", "col")]
    empty = xarray.DataArray(np.zeros((0, size), np.int64), dims=("row", "nonzero"))
    return xarray.concat(rows, "row") if rows else empty


CASES: dict[str, Case] = {
    "digitize": Case(lambda x: gc.digitize(x, EDGES), binned()),
    "digitize right": Case(lambda x: gc.digitize(x, EDGES, right=True), binned(True)),
    "digitize decreasing": Case(
        lambda x: gc.digitize(x, EDGES[::-1]), binned(False, EDGES[::-1])
    ),
    "digitize by tensor": Case(
        lambda x, e: gc.digitize(x, e.sort("six"), "six"),
        lambda x, e: x.copy(data=np.digitize(x.values, np.sort(e.values))) if e.size
        else xarray.zeros_like(x, np.int64),
        (X, Input("six")), batch=False
    ),
    "interp": Case(
        lambda x: gc.interp(x, EDGES[:3], [1.0, 5.0, -2.0], "point"),
        lambda x: interpolated(x, EDGES[:3], [1.0, 5.0, -2.0]),
    ),
    "interp ends": Case(
        lambda x: gc.interp(x, EDGES[:3], [1.0, 5.0, -2.0], "point", left=7, right=8),
        lambda x: interpolated(x, EDGES[:3], [1.0, 5.0, -2.0], left=7, right=8),
    ),
    "interp period": Case(
        lambda x: gc.interp(x, [2.9, 0.45, -1.3], [1.0, 5.0, -2.0], "point", period=-1.7),
        lambda x: interpolated(x, [2.9, 0.45, -1.3], [1.0, 5.0, -2.0], period=1.7),
    ),
    "interp by row": Case(
        lambda x, xp, fp: gc.interp(x, xp.cumsum("col"), fp, "col"),
        points, (Input("row batch", 0, 8), Input("row col", 0.5, 2), Input("col row"))
    ),
    "interp by column": Case(
        lambda x, xp, fp: gc.interp(x, xp.cumsum("col"), fp, "col"),
        points, (V, Input("col", 0.5, 2), Y)
    ),
    "nonzero": Case(
        lambda x: gc.nonzero(x, 7, fill_value=-1)["col"], lambda x: positions(x, 7, "col"),
        (TERNARY,), batch=False,
    ),
    "nonzero rows": Case(
        lambda x: gc.nonzero(x > 0, 7, fill_value=-1)["row"], lambda x: positions(x > 0, 7, "row"),
        batch=False,
    ),
    "nonzero by row": Case(
        lambda x: gc.nonzero(x, 3, dim="col", fill_value=-1)["col"], lambda x: by_row(x, 3),
        (TERNARY,),
    ),
}  # fmt: skip
