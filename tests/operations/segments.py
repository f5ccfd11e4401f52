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


CASES = {
    name: made
    for function in TOGETHER
    for name, made in {
        f"segment_{function}": case(function, ("batch",), "group", Input("col batch row"), INDEX),
        f"segment_{function} batch": case(function, ("batch",), "batch", Input("batch i"), TABLE),
        f"segment_{function} of several dims": case(
            function, ("i", "batch"), "group", Input("batch row i"), TABLE
        ),
    }.items()
} | {
    "segment_sum of a smaller tensor": case("sum", ("batch",), "group", Input("i"), TABLE),
}
