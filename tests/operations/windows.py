"""Windows along dims."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, X, alike


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


REDUCTIONS = ("sum", "prod", "mean", "median", "var", "std", "max", "min", "count")


def known(x: Any) -> Any:
    """0 in place of nan."""
    return x.where(x == x, 0.0)


def rolled(reduce: Any, theirs: Any = None, **options: Any) -> Case:
    """What is made of rolling windows, without nan; xarray is lent a place of an empty dim."""

    def roll(x: Any) -> Any:
        lent = [dim for dim, size in x.sizes.items() if size == 0]
        windows = x.pad(dict.fromkeys(lent, (0, 1))).rolling(**options)
        return known((theirs or reduce)(windows)).isel({dim: slice(0, 0) for dim in lent})

    return Case(lambda x: known(reduce(x.rolling(**options))), roll)


def coarsened(name: str, **options: Any) -> Case:
    """A reduction of blocks."""
    return alike(lambda x: getattr(x.coarsen(**options), name)(), fixed=("row", "col"))


CASES: dict[str, Case] = {
    **{f"rolling {name}": rolled(methodcaller(name), col=3) for name in REDUCTIONS},
    **{
        f"rolling some {name}": rolled(methodcaller(name), col=3, min_periods=2)
        for name in REDUCTIONS
    },
    **{
        f"rolling middle {name}": rolled(methodcaller(name), dim={"row": 2, "col": 3}, center=True)
        for name in REDUCTIONS
    },
    "rolling ddof": rolled(lambda windows: windows.var(ddof=1), col=3, min_periods=1),
    "rolling construct": rolled(
        lambda windows: windows.construct({"row": "i", "col": "j"}, stride={"row": 1, "col": 2}),
        row=2, col=3, center={"row": True, "col": False},
    ),
    "rolling construct filled": rolled(
        lambda windows: windows.construct("lag", fill_value=-1.0, stride=3), col=5
    ),
    "rolling reduce": rolled(
        lambda windows: windows.reduce(gc.ptp), lambda windows: windows.reduce(np.ptp), col=2
    ),
    **{f"coarsen {name}": coarsened(name, col=2) for name in REDUCTIONS},
    **{
        f"coarsen trim {name}": coarsened(name, dim={"row": 2, "col": 3}, boundary="trim")
        for name in REDUCTIONS
    },
    **{
        f"coarsen pad {name}": coarsened(name, row=2, col=3, boundary="pad", side="right")
        for name in REDUCTIONS
    },
    "coarsen mixed": alike(
        lambda x: x.coarsen(
            row=2, col=2, boundary={"row": "trim", "col": "exact"},
            side={"row": "right", "col": "left"},
        ).mean(),
        fixed=("row", "col"),
    ),
    "coarsen reduce": Case(
        lambda x: x.coarsen(col=2).reduce(gc.ptp), lambda x: x.coarsen(col=2).reduce(np.ptp),
        fixed=("col",),
    ),
    "coarsen construct": alike(
        lambda x: x.coarsen(six=3).construct(six=("six", "part")), Input("row six"), fixed=("six",)
    ),
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
