"""Places of a tensor changed in a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import INDEX, ROWS, TABLE, Case, Input, X


def update(
    change: str,
    indexers: Callable[..., dict[str, Any]],
    *inputs: Input,
    fixed: tuple[str, ...] = (),
) -> Case:
    """`x.at[indexers(...)]` changed by y; the other inputs are positions."""

    def ours(x: gc.Tensor, y: gc.Tensor, *positions: gc.Tensor) -> gc.Tensor:
        return getattr(x.at[indexers(*positions)], change)(y)

    def theirs(x: Any, y: Any, *positions: Any) -> Any:
        return updated(x, indexers(*positions), y, CHANGES[change])

    if change == "divide":
        x, y, *positions = inputs
        inputs = (x, y._replace(low=0.5), *positions)
    return Case(ours, theirs, inputs, fixed, batch=False)  # values with more dims are refused


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new,
    "add": lambda old, new: old + new,
    "subtract": lambda old, new: old - new,
    "multiply": lambda old, new: old * new,
    "divide": lambda old, new: old / new,
    "min": np.minimum,
    "max": np.maximum,
}


def updated(x: Any, indexers: dict[str, Any], y: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Update by update: the places are those whose numbers xarray picks."""
    places = xarray.DataArray(np.arange(x.size).reshape(x.shape), dims=x.dims).isel(indexers)
    result = x.copy(deep=True)
    values = y.broadcast_like(places).transpose(*places.dims)
    for place, value in zip(places.values.flat, values.values.flat, strict=True):
        result.values.flat[place] = change(result.values.flat[place], value)
    return result


COL, CELLS = Input("col"), Input("i col batch")
PLACES: dict[str, Case] = {}
for change in CHANGES:
    PLACES |= {
        f"at {change} int": update(change, lambda: {"row": 1}, X, COL, **ROWS),
        f"at {change} slice": update(
            change, lambda: {"row": slice(None, None, -2), "col": slice(1, 3)}, X, Input("")
        ),
        f"at {change} list": update(change, lambda: {"row": [2, 0, 2]}, X, COL, **ROWS),
        f"at {change} distinct": update(
            change, lambda: {"row": ("i", [2, 0]), "col": slice(1, None)}, X, Input("i"),
            fixed=("row", "i"),
        ),
        f"at {change} everything": update(change, dict, X, COL),
        f"at {change} tensor": update(change, lambda i: {"row": i}, X, CELLS, TABLE, **ROWS),
        f"at {change} shared": update(
            change, lambda i: {"row": i}, Input("batch row col"), COL, INDEX, fixed=("row", "batch")
        ),
        f"at {change} mixed": update(
            change, lambda i: {"row": i, "col": slice(None, None, -2)}, X, Input("batch i"), TABLE,
            **ROWS,
        ),
        f"at {change} pointwise": update(
            change, lambda i, j: {"row": i, "col": j}, X, Input("i"), INDEX, TABLE,
            fixed=("row", "col", "batch", "i"),
        ),
        f"at {change} int and tensor": update(
            change, lambda i: {"row": i, "one": 0}, Input("one row col"), COL, INDEX, **ROWS
        ),
    }  # fmt: skip
CASES = {
    **PLACES,
    "at power": Case(
        lambda x, y: x.at[{"row": [2, 0], "col": slice(1, None)}].power(y),
        lambda x, y: updated(x, {"row": [2, 0], "col": slice(1, None)}, y, np.power),
        (Input("row col", 0.5, 2), Input("")), ("row",), batch=False,
    ),
    "at get": Case(
        lambda x, i: x.at[{"row": i}].get(), lambda x, i: x.isel(row=i), (X, TABLE), **ROWS
    ),
}  # fmt: skip
