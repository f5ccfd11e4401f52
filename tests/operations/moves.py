"""Values moved, repeated and parted along dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import ROWS, Case, Input, V, alike

INTEGERS = Input("row col", -9, 9, "int64")
SMALL = Input("row col", -9, 9, "int16")


def numpy(function: Any, dim: str, *arguments: Any) -> Any:
    """A function of NumPy along one axis."""
    return lambda x: xarray.DataArray(
        function(x.values, *arguments, axis=x.dims.index(dim)), dims=x.dims
    )


CASES: dict[str, Case] = {
    **{f"roll {n}": alike(lambda x, n=n: x.roll(col=n)) for n in (0, 1, -1, 3, 7, -9)},
    "roll two": alike(lambda x: x.roll({"row": 1, "col": -2})),
    "roll integers": alike(lambda x: x.roll(row=5), INTEGERS),
    **{
        f"shift {n}": alike(lambda x, n=n: x.shift(col=n, fill_value=0.5))
        for n in (0, 1, -1, 3, 7, -9)
    },
    "shift two": alike(lambda x: x.shift({"row": 1, "col": -2}, fill_value=1.5)),
    "shift integers": alike(lambda x: x.shift(row=1, fill_value=-2), INTEGERS),
    "shift small filled": alike(lambda x: x.shift(row=-1, fill_value=7), SMALL),
    "shift by tensor": Case(
        lambda x, v: x.shift(col=1, fill_value=v),
        lambda x, v: x.shift(col=1).where(np.arange(x.sizes["col"]) > 0, v),
        (Input("row col"), V),
    ),
    "flip": alike(lambda x: x, batch=False)._replace(
        ours=lambda x: gc.flip(x, "row"), theirs=numpy(np.flip, "row")
    ),
    "flip all": Case(gc.flip, lambda x: x[::-1, ::-1], batch=False),
    "head": alike(lambda x: x.head(row=2, col=9)),
    "head all": alike(lambda x: x.head(2), batch=False),
    "head none": alike(lambda x: x.head(), batch=False),
    "tail": alike(lambda x: x.tail({"row": 2, "col": 5})),
    "tail zero": alike(lambda x: x.tail(row=0)),
    "tail all": alike(lambda x: x.tail(1), batch=False),
    "thin": alike(lambda x: x.thin(row=2, col=3)),
    "tile": Case(
        lambda x: gc.tile(x, {"row": 2, "col": 3}),
        lambda x: xarray.DataArray(np.tile(x.values, (2, 3)), dims=x.dims),
    ),
    "tile zero": Case(
        lambda x: gc.tile(x, row=0), lambda x: x[:0]
    ),
    "tile by a size": Case(
        lambda x: gc.tile(x, row=x.sizes["col"]),
        lambda x: xarray.DataArray(np.tile(x.values, (x.sizes["col"], 1)), dims=x.dims),
    ),
    "repeat": Case(lambda x: gc.repeat(x, 3, "row"), numpy(np.repeat, "row", 3)),
    "repeat last": Case(lambda x: gc.repeat(x, 2, "col"), numpy(np.repeat, "col", 2)),
    "repeat each": Case(
        lambda x: gc.repeat(x, [2, 0, 3], "row"), numpy(np.repeat, "row", [2, 0, 3]), **ROWS
    ),
    "split": Case(lambda x: gc.split(x, 3, "row")[1], lambda x: x[1:2], **ROWS),
    "split sizes": Case(
        lambda x: gc.split(x, [1, None], "row")[1], lambda x: x[1:], **ROWS
    ),
    "split unknown": Case(
        lambda x: gc.split(x, {"row": [x.sizes["row"] // 2, None]})[1],
        lambda x: x[x.sizes["row"] // 2:],
    ),
    "unbind": Case(
        lambda x: gc.unbind(x, "row")[1] * gc.unbind(x, "row")[2], lambda x: x[1] * x[2], **ROWS
    ),
}  # fmt: skip
