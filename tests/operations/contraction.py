"""Products summed over shared dims."""

from __future__ import annotations

import operator

import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X, Y, alike

CASES: dict[str, Case] = {
    "dot": alike(lambda x, y: x.dot(y, dim="col"), X, Y),
    "dot shared": Case(gc.dot, lambda x, y: x.dot(y), (X, Input("col row batch"))),
    "dot kept": Case(
        lambda x, y: gc.dot(x, y, dim=()), lambda x, y: xarray.dot(x, y, dim=()), (X, Y)
    ),
    "dot batch": Case(
        lambda x, y: gc.dot(x, y, dim="col"),
        lambda x, y: xarray.dot(x, y, dim="col"),
        (Input("batch row col"), Input("col i batch")),
    ),
    "dot of three": Case(
        lambda x, y, z: gc.dot(x, y, z, dim=["col", "batch"]),
        lambda x, y, z: xarray.dot(x, y, z, dim=["col", "batch"]),
        (X, Y, Input("batch row i")),
    ),
    "dot of one": Case(
        lambda x: gc.dot(x, dim="row"), lambda x: x.sum("row"), (X,)
    ),
    "dot alone": Case(
        lambda x, y: gc.dot(x, y, dim=["row", "batch"]), lambda x, y: x.sum("row") * y.sum("batch"),
        (X, Y),
    ),
    "dot all": Case(
        lambda x, y: gc.dot(x, y, dim=...), lambda x, y: (x * y).sum(), (X, Y), batch=False
    ),
    "dot with itself": Case(
        lambda x: gc.dot(x, x, x, dim="col"), lambda x: (x * x * x).sum("col"), (X,)
    ),
    "matmul": alike(operator.matmul, X, Y),
    "einsum": Case(
        lambda x, y, z: gc.einsum("row col, col batch, row -> batch row", x, y, z),
        lambda x, y, z: (x * y * z).sum("col").transpose("batch", "row"),
        (X, Y, V),
        batch=False,
    ),
}  # fmt: skip
