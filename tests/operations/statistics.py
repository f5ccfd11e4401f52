"""Norms, weighted statistics, statistics of two tensors, and missing values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import xarray

import graphcore as gc
from tests.operations.case import INDEX, Case, Input, X, Y, alike

WEIGHTS = Input("col", 0.2, 2.0)
BOTH = (X, Y, WEIGHTS)


def normed(dim: Any, order: float, dims: str = "row col") -> Case:
    """NumPy's norm of the vectors, all values of several dims being one vector."""

    def theirs(x: Any) -> Any:
        over = list(x.dims) if dim is None else [dim] if isinstance(dim, str) else dim
        kept = [d for d in x.dims if d not in over]
        size = int(np.prod([x.sizes[d] for d in over]))
        flat = x.transpose(*kept, *over).values.reshape(*[x.sizes[d] for d in kept], size)
        if not flat.shape[-1]:
            found = np.full(flat.shape[:-1], np.inf if order < 0 else 0.0, flat.dtype)
        else:
            found = np.linalg.norm(flat, order, axis=-1)
        return xarray.DataArray(found, dims=kept)

    return Case(lambda x: gc.norm(x, dim, order), theirs, (Input(dims),), batch=dim is not None)


def of_weighted(name: str, dim: Any, skipna: bool = False) -> Case:
    options = {} if name == "sum_of_weights" else {"skipna": skipna}

    def both(x: Any, w: Any) -> Any:
        x = x.where(x < 1) if skipna else x
        return getattr(x.weighted(w), name)(dim, **options)

    return Case(both, lambda x, w: both(x, w).astype(x.dtype), (X, WEIGHTS), batch=dim is not None)


def filled(dim: str, name: str, **options: Any) -> Case:
    """pandas' filling; what stays nan becomes 0, to have a derivative."""

    def theirs(x: Any) -> Any:
        holed = x.where(x < 0.3).transpose(dim, ...)
        frame = pandas.DataFrame(holed.values)
        found = getattr(frame, name)(**options).to_numpy()
        values = found.reshape(holed.shape).astype(x.dtype)
        return holed.copy(data=values).fillna(0).transpose(*x.dims)

    return Case(lambda x: getattr(x.where(x < 0.3), name)(dim, **options).fillna(0), theirs)


def interpolated(dim: str) -> Case:
    """xarray's interpolation of gaps; what stays nan becomes 0, to have a derivative."""

    def theirs(x: Any) -> Any:
        if not x.size:
            return x
        holed = x.where(x < 0.3).transpose(dim, ...)
        gaps = np.isnan(holed.values)

        def filled(part: np.ndarray) -> np.ndarray:
            frame = pandas.DataFrame(np.where(gaps, np.nan, part).reshape(x.sizes[dim], -1))
            return frame.interpolate(limit_area="inside").fillna(0).to_numpy().reshape(holed.shape)

        values = filled(holed.values.real)
        if x.dtype.kind == "c":
            values = values + 1j * filled(holed.values.imag)
        return holed.copy(data=values.astype(x.dtype)).transpose(*x.dims)

    return Case(lambda x: gc.interpolate_na(x.where(x < 0.3), dim).fillna(0), theirs)


def members(x: Any) -> Any:
    return x.copy(data=np.isin(x.values, [0, 2]))


def centred(function: Callable[..., Any]) -> Callable[..., Any]:
    """xarray returns float64 where a count takes part; ours keeps the dtype of its operands."""
    return lambda x, *more: function(x, *more).astype(x.dtype)


CASES: dict[str, Case] = {
    **{
        f"norm {order}": normed("col", order)
        for order in (2, 1, 3, 4, 2.5, 0.5, -1, -2, 0, np.inf, -np.inf)
    },
    "norm all": normed(None, 2),
    "norm of matrix": normed(["row", "col"], 2, "row batch col"),
    "norm where": Case(
        lambda x: gc.norm(x, "row", where=x > 0),
        lambda x: (x.where(x > 0, 0) ** 2).sum("row") ** 0.5,
    ),
    "norm skipna": Case(
        lambda x: gc.norm(x.where(x > -1.5), "row", -2, skipna=True),
        lambda x: (x.where(x > -1.5, np.inf) ** -2).sum("row") ** -0.5,
    ),
    **{
        f"weighted {name} {dim}": of_weighted(name, dim)
        for name in ("sum", "mean", "var", "std", "sum_of_weights", "sum_of_squares")
        for dim in ("col", ["row", "col"])
    },
    **{
        f"weighted {name} skipna": of_weighted(name, "row", skipna=True)
        for name in ("sum", "mean", "var", "std", "sum_of_weights", "sum_of_squares")
    },
    **{
        f"weighted quantile {dim}": Case(
            lambda x, w, dim=dim: x.weighted(w).quantile([0.2, 0.7], dim=dim),
            lambda x, w, dim=dim: x.weighted(w).quantile([0.2, 0.7], dim=dim).astype(x.dtype),
            (X, WEIGHTS), batch=dim is not None, fixed=("row", "col"),  # xarray squeezes all dims
        )
        for dim in ("col", None)
    },
    "weighted quantile skipna": Case(
        lambda x, w: x.where(x < 1.5).weighted(w - 0.2).quantile(0.5, dim="col", skipna=True),
        lambda x, w: x.where(x < 1.5).weighted(w - w.dtype.type(0.2)).quantile(0.5, dim="col")
        .astype(x.dtype),
        (X, WEIGHTS), fixed=("row", "col"),
    ),
    "average": Case(
        lambda x, w: gc.average(x, "col", weights=w),
        lambda x, w: x.weighted(w).mean("col"),
        (X, WEIGHTS),
    ),
    "average even": Case(lambda x: gc.average(x, "row"), lambda x: x.mean("row")),
    "cov": Case(
        lambda x, y: gc.cov(x, y, "col"), centred(lambda x, y: xarray.cov(x, y, "col")), (X, Y)
    ),
    "cov ddof": Case(
        lambda x, y: gc.cov(x, y, ["row", "col"], ddof=0),
        centred(lambda x, y: xarray.cov(x, y, ["row", "col"], ddof=0)),
        (X, X),
    ),
    "cov weights": Case(
        lambda x, y, w: gc.cov(x, y, "col", weights=w),
        centred(lambda x, y, w: xarray.cov(x, y, "col", weights=w)),
        BOTH, fixed=("col",),
    ),
    "cov skipna": Case(
        lambda x, y: gc.cov(x.where(x < 1), y.where(y < 1.5), "col", skipna=True),
        centred(lambda x, y: xarray.cov(x.where(x < 1), y.where(y < 1.5), "col")),
        (X, Y), fixed=("col",),
    ),
    "cov skipna weights": Case(
        lambda x, y, w: gc.cov(x.where(x < 1), y, "col", 0, w, skipna=True),
        centred(lambda x, y, w: xarray.cov(x.where(x < 1), y, "col", 0, w)),
        BOTH, fixed=("col",),
    ),
    "cov all": Case(
        lambda x, y: gc.cov(x, y), centred(lambda x, y: xarray.cov(x, y)), (X, Y), batch=False,
        fixed=("col",),
    ),
    "corr": Case(
        lambda x, y: gc.corr(x, y, "col"), lambda x, y: xarray.corr(x, y, "col"), (X, Y),
        fixed=("col",),
    ),
    "corr weights": Case(
        lambda x, y, w: gc.corr(x, y, "col", w), lambda x, y, w: xarray.corr(x, y, "col", w),
        BOTH, fixed=("col",),
    ),
    "corr skipna": Case(
        lambda x, y: gc.corr(x.where(x < 1), y, "col", skipna=True),
        lambda x, y: xarray.corr(x.where(x < 1), y, "col"),
        (X, Input("col batch", -2, 2)), fixed=("col",),
    ),
    "dropna": alike(lambda x: x.where(x > -1).dropna("row").sum("row"), batch=False),
    "fillna": alike(lambda x: x.where(x > 0).fillna(0.5)),
    "fillna tensor": alike(lambda x, y: x.where(x > 0).fillna(y), X, Input("col")),
    "interpolate_na": interpolated("row"),
    "interpolate_na long": interpolated("col"),
    "ffill": filled("row", "ffill"),
    "ffill limit": filled("col", "ffill", limit=1),
    "bfill": filled("row", "bfill"),
    "bfill limit": filled("col", "bfill", limit=1),
    "isin": Case(lambda n: gc.isin(n, [0, 2]), members, (INDEX,)),
    "isin tensor": Case(
        lambda x: x.isin(x.isel(row=0)), lambda x: x.isin(x.isel(row=0)), fixed=("row",),
        batch=False,
    ),
    "cross": Case(
        lambda x, y: gc.cross(x, y, "row"), lambda x, y: xarray.cross(x, y, dim="row"),
        (Input("col row"), Input("row batch")), fixed=("row",),
    ),
    "cross of two": Case(
        lambda x, y: gc.cross(x, y, "i"),
        lambda x, y: xarray.DataArray(
            x.values[:, 0] * y.values[1] - x.values[:, 1] * y.values[0], dims="row"),
        (Input("row i"), Input("i")), fixed=("i",),
    ),
    "cross of two and three": Case(
        lambda x, y: gc.cross(x, y.rename(row="i"), "i"),
        lambda x, y: xarray.cross(x, y.rename(row="i"), dim="i"),
        (Input("i batch"), Input("row col")), fixed=("i", "row"),
    ),
}  # fmt: skip
