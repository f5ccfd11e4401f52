"""Places of a tensor changed in a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import INDEX, ROWS, TABLE, Case, Input, X


def update(
    change: str, indexers: Callable[..., dict[str, Any]], *inputs: Input, **options: Any
) -> Case:
    """`x.at[indexers(...)]` changed by y; the other inputs are positions."""

    def ours(x: gc.Tensor, y: gc.Tensor, *positions: gc.Tensor) -> gc.Tensor:
        return getattr(x.at[indexers(*positions)], change)(y)

    def theirs(x: Any, y: Any, *positions: Any) -> Any:
        return updated(x, indexers(*positions), y, CHANGES[change])

    return Case(ours, theirs, inputs, **options)


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, new: old + new,
}


def updated(x: Any, indexers: dict[str, Any], y: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Update by update: the places are those whose numbers xarray picks."""
    places = xarray.DataArray(np.arange(x.size).reshape(x.shape), dims=x.dims).isel(indexers)
    result = x.copy(deep=True)
    values = y.broadcast_like(places).transpose(*places.dims)
    for place, value in zip(places.values.flat, values.values.flat, strict=True):
        result.values.flat[place] = change(result.values.flat[place], value)
    return result


COL = Input("col")
CASES: dict[str, Case] = {
    "at add int": update("add", lambda: {"row": 1}, X, COL, **ROWS, batch=False),
    "at add slice": update(
        "add", lambda: {"row": slice(None, None, -2), "col": slice(1, 3)}, X, Input(""), batch=False
    ),
    "at add list": update("add", lambda: {"row": [2, 0, 2]}, X, COL, **ROWS, batch=False),
    "at add everything": update("add", dict, X, COL, batch=False),
    "at add tensor": update(
        "add", lambda i: {"row": i}, X, Input("i col batch"), TABLE, **ROWS, batch=False
    ),
    "at add shared": update(
        "add", lambda i: {"row": i}, Input("batch row col"), COL, INDEX,
        fixed=("row", "batch"), batch=False,
    ),
    "at add mixed": update(
        "add", lambda i: {"row": i, "col": slice(None, None, -2)},
        X, Input("batch i"), TABLE, **ROWS, batch=False,
    ),
    "at add pointwise": update(
        "add", lambda i, j: {"row": i, "col": j}, X, Input("i"), INDEX, TABLE,
        fixed=("row", "col", "batch", "i"), batch=False,
    ),
    "at add int and tensor": update(
        "add", lambda i: {"row": i, "one": 0}, Input("one row col"), COL, INDEX, **ROWS, batch=False
    ),
}  # fmt: skip
