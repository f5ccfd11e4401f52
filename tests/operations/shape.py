"""Dims moved, named, made and merged."""

from __future__ import annotations

import xarray

import graphcore as gc
from tests.operations.case import Case, Input, X, Y, alike

CASES: dict[str, Case] = {
    "ravel": Case(
        lambda x, w: gc.ravel([x, {"w": w}], "all")[1](gc.ravel([x, {"w": w}], "all")[0] ** 2)[0],
        lambda x, w: x**2,
        (Input(), Input("col")),
        batch=False,
    ),
    "transpose": alike(lambda x: x.transpose("col", ...)),
    "transpose all": alike(lambda x: x.transpose(), batch=False),
    "rename": alike(lambda x: x.rename(row="r")),
    "rename swap": alike(lambda x: x.rename({"row": "col", "col": "row"}) * 2 + x[0, 0],
                         fixed=("row", "col"), batch=False),
    "expand_dims": alike(lambda x: x.expand_dims("new")),
    "expand_dims sized": alike(lambda x: x.expand_dims({"new": 3, "other": 2})),
    "squeeze": alike(lambda x: x.squeeze("one"), Input("row one col")),
    "squeeze all": alike(lambda x: x.squeeze(), Input("one col"), fixed=("one", "col")),
    "broadcast_like": alike(lambda x, y: x.broadcast_like(y), X, Y),
    "broadcast": Case(
        lambda x, y: gc.broadcast(x, y)[1], lambda x, y: xarray.broadcast(x, y)[1], (X, Y)
    ),
    "swap_dims": alike(lambda x: x.swap_dims(row="r")),
    "broadcast excluding": Case(
        lambda x, y: gc.broadcast(x, y, exclude=["row"])[0],
        lambda x, y: xarray.broadcast(x, y, exclude=["row"])[0],
        (X, Input("row batch")),
    ),
    "concat": Case(
        lambda x, y: gc.concat([x, y, x], "col"),
        lambda x, y: xarray.concat([x, y.transpose("row", "col"), x], "col"),
        (X, Input("col row")),
    ),
    "concat broadcast": Case(
        lambda x, y: gc.concat([x, y], "row"),
        lambda x, y: xarray.concat([x, y.expand_dims("row")], "row").transpose("row", "col"),
        (X, Input("col")),
    ),
    "concat new": Case(
        lambda x: gc.concat([x, x * x], "new"), lambda x: xarray.concat([x, x * x], "new")
    ),
    "stack": Case(
        lambda x: x.stack(z=("col", "row")),
        lambda x: xarray.DataArray(
            x.values.transpose(1, 2, 0).reshape(x.sizes["batch"], x.sizes["col"] * x.sizes["row"]),
            dims=("batch", "z"),
        ),
        (Input("row batch col"),),
    ),
    "unstack": Case(
        lambda x: x.unstack(six={"p": 2, "q": 3}),
        lambda x: xarray.DataArray(
            x.transpose("row", "six").values.reshape(-1, 2, 3), dims=("row", "p", "q")
        ),
        (Input("six row"),),
        fixed=("six",),
        batch=False,
    ),
    "unstack several": Case(
        lambda x: x.unstack(six={"p": -1, "q": 3}, row={"r": 1, "s": None}),
        lambda x: xarray.DataArray(
            x.transpose("col", "six", "row").values.reshape(x.sizes["col"], 2, 3, 1, 3),
            dims=("col", "p", "q", "r", "s"),
        ),
        (Input("six row col"),),
        fixed=("six", "row"),
        batch=False,
    ),
    "rearrange": Case(
        lambda x: gc.rearrange("(p q) col (r s) -> col r (s p)=z q", x, q=3, s=3),
        lambda x: xarray.DataArray(
            x.values.reshape(2, 3, x.sizes["col"], 1, 3).transpose(2, 3, 4, 0, 1)
            .reshape(x.sizes["col"], 1, 6, 3),
            dims=("col", "r", "z", "q"),
        ),
        (Input("six col row"),),
        fixed=("six", "row"),
        batch=False,
    ),
    "rearrange batch": Case(
        lambda x: gc.rearrange("(p q)=six col -> (col p) ... q", x, p=2),
        lambda x: xarray.DataArray(
            x.values.reshape(x.sizes["row"], 2, 3, x.sizes["col"]).transpose(3, 1, 0, 2)
            .reshape(x.sizes["col"] * 2, x.sizes["row"], 3),
            dims=("col_p", "row", "q"),
        ),
        (Input("row six col"),),
        fixed=("six",),
        batch=False,
    ),
    "restack": Case(
        lambda x: gc.square(x.stack(z=("col", "row"))).unstack(z={"col": None, "row": 3}),
        lambda x: (x * x).transpose("col", "row"),
        fixed=("row",),
        batch=False,
    ),
}  # fmt: skip
