"""Diagonals and triangles of two dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, bare


def matrices(function: Any, *dims: str) -> Any:
    """A function of NumPy on the last two axes, which are row and col."""

    def apply(x: Any) -> Any:
        rest = [dim for dim in x.dims if dim not in ("row", "col")]
        return xarray.DataArray(function(x.transpose(*rest, "row", "col").values), dims=dims)

    return apply


def taken(offset: int) -> Any:
    return lambda x: np.diagonal(x, offset, -2, -1)


def put(offset: int) -> Any:
    def apply(x: Any) -> Any:
        rows = [np.diag(row, offset) for row in x.values]
        size = x.shape[1] + abs(offset)
        values = np.reshape(rows, (len(rows), size, size)).astype(x.dtype)
        return xarray.DataArray(values, dims=("batch", "p", "q"))

    return apply


def plain(function: Any) -> Any:
    return lambda x: x * 0 + function(*x.shape) + x


CASES: dict[str, Case] = {
    "eye": Case(lambda x: gc.eye(x.sizes, k=1) + x, plain(lambda n, m: np.eye(n, m, 1)),
                batch=False),
    "tri": Case(lambda x: gc.tri(x.sizes, k=-1) + x, plain(lambda n, m: np.tri(n, m, -1)),
                batch=False),
    **{
        f"diagonal {k}": Case(
            lambda x, k=k: gc.diagonal(x, offset=k),
            matrices(taken(k), "batch", "diag"),
            (Input("col batch row"),),
        )
        for k in (0, 1, 2, -1, -5)
    },
    "diagonal in place": Case(
        lambda x: gc.diagonal(x, ("col", "row"), dim="row", offset=1),
        matrices(taken(-1), "row"),
    ),
    **{
        f"trace {k}": Case(
            lambda x, k=k: gc.trace(x, offset=k),
            matrices(lambda x, k=k: np.trace(x, k, -2, -1), "batch"),
            (Input("col batch row"),),
        )
        for k in (0, 2, -1)
    },
    "trace integers": Case(
        lambda x: gc.trace(x), matrices(np.trace), (Input("row col", -99, 99, "int32"),)
    ),
    **{
        f"diag {k}": Case(
            lambda x, k=k: gc.diag(x, "col", ("p", "q"), k), put(k), (Input("batch col"),)
        )
        for k in (0, 2, -1)
    },
    "diag in place": Case(
        lambda x: gc.diag(x, "row"),
        lambda x: xarray.DataArray(np.diag(x.values), dims=("row", "col")),
        (V,),
    ),
    **{
        f"{ours.__name__} {k}": Case(
            lambda x, f=ours, k=k: f(x, k=k).transpose(..., "batch", "row", "col"),
            matrices(lambda x, f=theirs, k=k: f(x, k), "batch", "row", "col"),
            (Input("col batch row"),),
        )
        for ours, theirs in ((gc.tril, np.tril), (gc.triu, np.triu))
        for k in (0, 1, -1, 9)
    },
    "tril order": Case(
        lambda x: gc.tril(x), lambda x: bare(x.copy(data=np.triu(x.values))), (Input("col row"),)
    ),
    "triu bool": Case(
        lambda x: gc.triu(x > 0), lambda x: x.copy(data=np.triu(x.values > 0))
    ),
}  # fmt: skip
