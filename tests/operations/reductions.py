"""Sums, extremes and running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import ROWS, Case, Input, X, alike

MASK = Input("col batch", 0, 2, "int64")
"""Numbers 0 and 1, to be compared."""


def at(x: Any, *dims: str) -> tuple[int, ...]:
    return tuple(x.dims.index(dim) for dim in dims)


def masked(name: str, dim: str, **options: Any) -> Case:
    """A reduction with `where=`, and NumPy's of the values that take part."""

    def theirs(x: Any, m: Any) -> Any:
        x, m = xarray.broadcast(x, m)
        function = getattr(np, name)
        values = function(x.values, axis=at(x, dim), where=m.values == 1, **options)
        return xarray.DataArray(values, dims=[d for d in x.dims if d != dim])

    return Case(lambda x, m: getattr(gc, name)(x, dim, where=m == 1, **options), theirs, (X, MASK))


def masked_extreme(name: str) -> Case:
    """NumPy wants a start, which is the result where nothing takes part; ours is nan."""
    start = -np.inf if name == "max" else np.inf
    started = masked(name, "col", initial=start)

    def theirs(x: Any, m: Any) -> Any:
        found = started.theirs(x, m)
        return found.where(np.isfinite(found)) if x.sizes["col"] else x.max("col")

    return Case(lambda x, m: getattr(gc, name)(x, "col", where=m == 1), theirs, (X, MASK))


def positions(name: str, function: Callable[..., Any]) -> Case:
    """-1 where nothing takes part, which NumPy refuses."""

    def theirs(x: Any) -> Any:
        x = x.where(x < 0)
        start = -np.inf if name == "argmax" else np.inf
        found = getattr(x.fillna(start), name)("row")
        return found.where(x.notnull().any("row"), -1)

    return Case(function, theirs)


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
    **{
        f"{name} skipna {dims}": alike(
            lambda x, name=name, dims=dims: getattr(x.where(x < 0.5), name)(dims, skipna=True)
        )
        for name in ("sum", "prod", "mean", "var", "std", "max", "min")
        for dims in ("row", ["row", "col"])
    },
    **{f"{name} where": masked(name, "col") for name in ("sum", "prod", "mean", "std")},
    **{f"{name} where": masked_extreme(name) for name in ("max", "min")},
    "max initial": masked("max", "col", initial=0.25),
    "min initial": masked("min", "row", initial=-0.5),
    "any where": masked("any", "row"),
    "all where": masked("all", "row"),
    "var where": masked("var", "col"),
    "var ddof": alike(lambda x: x.var("row", ddof=1), **ROWS),
    "var skipna ddof": alike(lambda x: x.where(x < 1).var("col", ddof=1, skipna=True)),
    "std ddof": alike(lambda x: x.std(["row", "col"], ddof=2), fixed=("row", "col")),
    "sum min_count": alike(lambda x: x.where(x < 1.5).sum("row", skipna=True, min_count=1)),
    "prod min_count": alike(lambda x: x.where(x < 1.5).prod("row", skipna=True, min_count=1)),
    "any": alike(lambda x: (x > 1).any("row")),
    "all": alike(lambda x: (x > -1).all(["row", "col"])),
    "count": alike(lambda x: x.where(x < 0).count("row")),
    "count int": alike(lambda m: m.count("batch"), MASK),
    "ptp": Case(lambda x: gc.ptp(x, "row"), lambda x: x.reduce(np.ptp, "row")),
    "isnull": alike(lambda x: x.where(x > 0).isnull()),
    "notnull": alike(lambda x: x.where(x > 0).notnull()),
    "argmax": alike(lambda x: x.argmax("row")),
    "argmin": alike(lambda x: x.argmin("col")),
    "argmax all": Case(lambda x: x.argmax(), lambda x: xarray.DataArray(x.values.argmax()),
                       batch=False),
    "argmin all": Case(lambda x: x.argmin(), lambda x: xarray.DataArray(x.values.argmin()),
                       batch=False),
    "argmax where": positions("argmax", lambda x: x.argmax("row", where=x < 0)),
    "argmin skipna": positions("argmin", lambda x: x.where(x < 0).argmin("row", skipna=True)),
    "cumsum": alike(lambda x: x.cumsum("col")),
    "cumsum skipna": alike(lambda x: x.where(x < 0).cumsum("col", skipna=True)),
    "cumprod": alike(lambda x: x.cumprod("row")),
    "cumprod skipna": alike(lambda x: x.where(x < 0).cumprod("row", skipna=True)),
    "cumprod several": alike(lambda x: x.cumprod(["row", "col"])),
}  # fmt: skip
