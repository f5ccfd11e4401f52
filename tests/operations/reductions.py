"""Sums, extremes and running sums."""

from __future__ import annotations

import xarray

from tests.operations.case import ROWS, Case, alike

CASES: dict[str, Case] = {
    **{
        f"{name} {dims}": alike(lambda x, name=name, dims=dims: getattr(x, name)(dims))
        for name in ("sum", "prod", "mean", "var", "std", "max", "min")
        for dims in ("row", "col", ["col", "row"])
    },
    **{
        f"{name} all": alike(lambda x, name=name: getattr(x, name)(), batch=False)
        for name in ("sum", "prod", "mean", "var", "std", "max", "min", "cumsum", "cumprod")
    },
    "var ddof": alike(lambda x: x.var("row", ddof=1), **ROWS),
    "std ddof": alike(lambda x: x.std(["row", "col"], ddof=2), fixed=("row", "col")),
    "any": alike(lambda x: (x > 1).any("row")),
    "all": alike(lambda x: (x > -1).all(["row", "col"])),
    "argmax": alike(lambda x: x.argmax("row")),
    "argmin": alike(lambda x: x.argmin("col")),
    "argmax all": Case(lambda x: x.argmax(), lambda x: xarray.DataArray(x.values.argmax()),
                       batch=False),
    "argmin all": Case(lambda x: x.argmin(), lambda x: xarray.DataArray(x.values.argmin()),
                       batch=False),
    "cumsum": alike(lambda x: x.cumsum("col")),
    "cumprod": alike(lambda x: x.cumprod("row")),
    "cumprod several": alike(lambda x: x.cumprod(["row", "col"])),
}  # fmt: skip
