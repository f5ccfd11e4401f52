"""Places picked along dims."""

from __future__ import annotations

import graphcore as gc
from tests.operations.case import INDEX, ROWS, TABLE, Case, Input, X, alike

CASES: dict[str, Case] = {
    "isel": alike(lambda x: x.isel(row=1), **ROWS),
    "isel negative": alike(lambda x: x.isel(row=-1, col=-2), fixed=("row", "col")),
    "getitem": alike(lambda x: x[1, ::-1], fixed=("row",), batch=False),
    "getitem ellipsis": alike(lambda x: x[..., 1:3], batch=False),
    "getitem dict": alike(lambda x: x[{"col": slice(None, -1)}]),
    **{
        f"slice {s.start}:{s.stop}:{s.step}": alike(lambda x, s=s: x.isel(col=s, row=slice(1, 9)))
        for s in (
            slice(None), slice(1, 3), slice(-3, -1), slice(None, None, 2), slice(1, None, 3),
            slice(None, None, -1), slice(-1, 0, -2), slice(2, None, -1), slice(3, 1), slice(9),
            slice(None, 1, -1), slice(-9, 9, 3),
        )
    },
    "isel list": alike(lambda x: x.isel(row=[2, 0, 2, -1]), **ROWS),
    "isel orthogonal": alike(
        lambda x: x.isel(row=[2, 0, 2], col=[1, 0]), fixed=("row", "col")
    ),
    "isel pointwise": alike(
        lambda x: x.isel(row=("p", [2, 0]), col=("p", [1, 1])), fixed=("row", "col")
    ),
    "isel pointwise tensors": alike(
        lambda x, i, j: x.isel(row=i, col=j), X, INDEX, TABLE, fixed=("row", "col", "batch", "i")
    ),
    "isel shared": alike(
        lambda x, i: x.isel(row=i), Input("batch row col"), INDEX, fixed=("row", "batch")
    ),
    "isel mixed": alike(
        lambda x, i: x.isel(row=i, col=slice(None, None, -2)), X, TABLE, fixed=("row",)
    ),
    "take": Case(lambda x, i: gc.take(x, i, "row"), lambda x, i: x.isel(row=i), (X, TABLE), **ROWS),
    "take list": Case(
        lambda x: gc.take(x, [0, 0, 1], "row"), lambda x: x.isel(row=[0, 0, 1]), **ROWS
    ),
    "take_along": Case(
        lambda x, i: gc.take_along(x, i, "row"),
        lambda x, i: x.isel(row=i),
        (Input("batch row col"), INDEX),
        fixed=("row", "batch"),
    ),
}  # fmt: skip
