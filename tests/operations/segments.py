"""Values brought together by the number of their segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
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
    "median": np.median,
    "quantile": lambda values: np.quantile(values, 0.3).astype(values.dtype),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "argmax": lambda values: np.argmax(values),
    "argmin": lambda values: np.argmin(values),
}
OF_NONE = {
    **dict.fromkeys(("var", "mean", "max", "min", "median", "quantile", "first", "last"), np.nan),
    **dict.fromkeys(("argmax", "argmin"), -1),
}
KINDS = {"count": "int64", "any": "bool", "all": "bool", "argmax": "int64", "argmin": "int64"}


def group(function: str, x: Any, ids: Any, skipna: bool) -> Any:
    """Group by group, along the dim `batch`."""
    dims = ["group" if dim == "batch" else dim for dim in x.dims]
    shape = [SIZE if dim == "group" else x.sizes[dim] for dim in dims]
    real = x.real.dtype if function == "var" else x.dtype
    found = xarray.DataArray(np.zeros(shape, KINDS.get(function, real)), dims=dims)
    for place in np.ndindex(*shape):
        here = dict(zip(dims, place, strict=True))
        mask = ids.values == here.pop("group")
        mask = mask & ~np.isnan(x.isel(here).values) if skipna else mask
        values = x.isel(here).values[mask]
        none = not values.size and function in OF_NONE
        result = OF_NONE[function] if none else GROUPED[function](values)
        found[place] = np.flatnonzero(mask)[result] if not none and "arg" in function else result
    return found


def run(x: Any, ids: Any) -> Any:
    """The running sum within each group, along `batch`."""
    frame = x.transpose("batch", ...)
    if not x.size:
        return x
    rows = pandas.DataFrame(frame.values.reshape(frame.sizes["batch"], x[{"batch": 0}].size))
    found = rows.groupby(ids.values).cumsum().to_numpy().reshape(frame.shape)
    return frame.copy(data=found.astype(x.dtype)).transpose(*x.dims)


def grouped(function: str, **options: Any) -> Case:
    """Where a group has no elements, nan counts as 0."""
    skipna = bool(options.get("skipna"))

    def ours(x: Any, ids: Any) -> Any:
        x = x.where(x < 1) if skipna else x
        more = {"q": 0.3} if function == "quantile" else {}
        found = getattr(x.groupby(ids, SIZE, "batch", "group"), function)(**more, **options)
        return found.fillna(0) if function in OF_NONE else found

    def theirs(x: Any, ids: Any) -> Any:
        found = group(function, x.where(x < 1) if skipna else x, ids, skipna)
        return found.fillna(0) if function in OF_NONE else found

    return Case(ours, theirs, (Input("col batch row"), INDEX))


GROUPS = {
    **{f"groupby {function}": grouped(function) for function in GROUPED},
    **{
        f"groupby {function} skipna": grouped(function, skipna=True)
        for function in GROUPED
        if function not in ("count", "any", "all")
    },
    "groupby std": Case(
        lambda x, ids: x.groupby(ids, SIZE, "batch", "group").std().fillna(0),
        lambda x, ids: group("var", x, ids, False).fillna(0) ** 0.5,
        (Input("col batch row"), INDEX),
    ),
    "groupby cumsum": Case(
        lambda x, ids: x.groupby(ids, SIZE, "batch", "group").cumsum(),
        lambda x, ids: run(x, ids),
        (Input("col batch row"), INDEX),
    ),
    "groupby map": Case(
        lambda x, ids: x.groupby(ids, SIZE, "batch", "group").map(
            lambda members, where: members.max("batch", where=where).fillna(0), most=3
        ),
        lambda x, ids: group("max", x, ids, False).fillna(0),
        (Input("col batch row"), INDEX),
    ),
    "groupby map to elements": Case(
        lambda x, ids: x.groupby(ids, SIZE, "batch", "group").map(
            lambda members, where: members - members.mean("batch", where=where), most=3
        ),
        lambda x, ids: x - group("mean", x, ids, False).isel(group=ids),
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
