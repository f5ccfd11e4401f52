"""Values brought together by the number of their segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import INDEX, TABLE, Case, Input

SIZE = 4
TOGETHER = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "max": lambda values: np.max(values, initial=-np.inf),
    "min": lambda values: np.min(values, initial=np.inf),
}


def segments(function: str, x: Any, ids: Any, over: tuple[str, ...], name: str) -> Any:
    """Segment by segment: what numbers of a batch name it is brought together."""
    before = (*x.dims, *(dim for dim in ids.dims if dim not in x.dims))
    x, ids = xarray.broadcast(x, ids)
    dims = tuple(dict.fromkeys(name if dim in over else dim for dim in before))
    batch = [dim for dim in x.dims if dim not in over]
    shape = [x.sizes[dim] if dim in batch else SIZE for dim in dims]
    result = xarray.DataArray(np.zeros(shape, x.dtype), dims=dims)
    for place in np.ndindex(*shape):
        here = dict(zip(dims, place, strict=True))
        number = here.pop(name)
        mask = ids.isel(here).values == number
        result[place] = TOGETHER[function](x.isel(here).values[mask])
    return result


def case(function: str, over: tuple[str, ...], name: str, *inputs: Input) -> Case:
    """Empty segments count as 0, as no derivative stands differences of nan."""
    ours = getattr(gc, f"segment_{function}")

    def finite(y: Any) -> Any:
        return gc.where(gc.isfinite(y), y, 0)

    return Case(
        lambda x, ids: finite(ours(x, ids, SIZE, over, name)),
        lambda x, ids: segments(function, x, ids, over, name).pipe(
            lambda y: y.where(np.isfinite(y), 0)
        ),
        inputs,
    )


GROUPED = {
    **TOGETHER,
    "var": np.var,
    "count": lambda values: np.sum(~np.isnan(values)),
    "any": np.any,
    "all": np.all,
}
OF_NONE = {"var": np.nan, "mean": np.nan, "max": np.nan, "min": np.nan}
KINDS = {"count": "int64", "any": "bool", "all": "bool"}


def group(function: str, x: Any, ids: Any, skipna: bool) -> Any:
    """Group by group, along the dim `batch`."""
    dims = ["group" if dim == "batch" else dim for dim in x.dims]
    shape = [SIZE if dim == "group" else x.sizes[dim] for dim in dims]
    real = x.real.dtype if function == "var" else x.dtype
    found = xarray.DataArray(np.zeros(shape, KINDS.get(function, real)), dims=dims)
    for place in np.ndindex(*shape):
        here = dict(zip(dims, place, strict=True))
        mask = ids.values == here.pop("group")
        values = x.isel(here).values[mask]
        values = values[~np.isnan(values)] if skipna else values
        none = not values.size and function in OF_NONE
        found[place] = OF_NONE[function] if none else GROUPED[function](values)
    return found


def grouped(function: str, **options: Any) -> Case:
    """Where a group has no elements, nan counts as 0."""
    skipna = bool(options.get("skipna"))

    def ours(x: Any, ids: Any) -> Any:
        x = x.where(x < 1) if skipna else x
        found = getattr(x.groupby(ids, SIZE, "batch", "group"), function)(**options)
        return found.fillna(0) if function in OF_NONE else found

    def theirs(x: Any, ids: Any) -> Any:
        found = group(function, x.where(x < 1) if skipna else x, ids, skipna)
        return found.fillna(0) if function in OF_NONE else found

    return Case(ours, theirs, (Input("col batch row"), INDEX))


GROUPS = {
    **{f"groupby {function}": grouped(function) for function in GROUPED},
    **{
        f"groupby {function} skipna": grouped(function, skipna=True)
        for function in ("sum", "prod", "mean", "var", "max", "min")
    },
    "groupby std": Case(
        lambda x, ids: x.groupby(ids, SIZE, "batch", "group").std().fillna(0),
        lambda x, ids: group("var", x, ids, False).fillna(0) ** 0.5,
        (Input("col batch row"), INDEX),
    ),
    "groupby anomaly": Case(
        lambda x, ids: x.groupby(ids, SIZE, "batch") - x.groupby(ids, SIZE, "batch").mean(),
        lambda x, ids: x - group("mean", x, ids, False).isel(group=ids),
        (Input("col batch row"), INDEX),
    ),
}

CASES = (
    GROUPS
    | {
        name: made
        for function in TOGETHER
        for name, made in {
            f"segment_{function}": case(
                function, ("batch",), "group", Input("col batch row"), INDEX
            ),
            f"segment_{function} batch": case(
                function, ("batch",), "batch", Input("batch i"), TABLE
            ),
            f"segment_{function} of several dims": case(
                function, ("i", "batch"), "group", Input("batch row i"), TABLE
            ),
        }.items()
    }
    | {
        "segment_sum of a smaller tensor": case("sum", ("batch",), "group", Input("i"), TABLE),
    }
)
