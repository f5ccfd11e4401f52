"""Counts in bins and of different values."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, V, X

SMALL = Input("row col", 0, 4, "int64")
WEIGHTS = Input("col batch")
EDGES = [-1.5, -0.2, 0.3, 1.9]


def array(values: Any, *dims: str) -> Any:
    return xarray.DataArray(values, dims=dims)


def by_row(x: Any, function: Any, new: str = "bin") -> Any:
    """A function of rows, whose results run along a new last dim."""
    rows = [function(row) for row in x.transpose("row", "col").values]
    return array(np.array(rows).reshape(x.sizes["row"], -1), "row", new)


def counts(x: Any, weights: Any) -> Any:
    """Weighted counts over rows and columns, for each place of the batch."""
    x, weights = x.transpose("row", "col"), weights.transpose("batch", "col")
    rows = [
        np.bincount(x.values.ravel(), np.broadcast_to(w, x.shape).ravel(), 4)
        for w in weights.values
    ]
    found = np.array(rows, weights.dtype).reshape(weights.sizes["batch"], 4)
    return array(found.T, "bin", "batch")


def histogram(x: Any, bins: Any = 10, part: int = 0, **options: Any) -> Any:
    found = np.histogram(x.values, bins, **options)[part]
    floats = found.dtype.kind == "f" and not isinstance(bins, list)
    return array(found.astype(x.dtype) if floats else found, "bin")


def of_rows(x: Any, part: int) -> Any:
    """Bins of its own for each row."""
    if not x.sizes["col"]:
        raise ValueError
    parts = [np.histogram(row, 3)[part] for row in x.transpose("row", "col").values]
    found = np.array(parts).reshape(x.sizes["row"], 3 + part)
    found = found.astype(x.dtype) if part else found.astype(int)
    return array(found, "row", "bin") if not part else array(found.T, "bin", "row")


def different(x: Any, part: int, size: int = 5, fill: int = -1) -> Any:
    """One part of NumPy's answer, filled up."""
    found = np.unique(x.values, return_index=True, return_inverse=True, return_counts=True)[part]
    if part == 2:
        return array(found.reshape(x.shape), *x.dims)
    if part == 1 and not x.size:
        raise ValueError
    rest = {0: fill, 1: found[0] if part == 1 else 0, 3: 0}[part]
    return array(np.append(found, [rest] * size)[:size].astype(found.dtype), "unique")


CASES: dict[str, Case] = {
    "bincount": Case(
        lambda x: gc.bincount(x, 5), lambda x: array(np.bincount(x.values.ravel(), None, 5), "bin"),
        (SMALL,), batch=False,
    ),
    "bincount by row": Case(
        lambda x: gc.bincount(x, 4, dim="col"),
        lambda x: by_row(x, lambda row: np.bincount(row, None, 4)) if x.sizes["row"]
        else array(np.zeros((0, 4), int), "row", "bin"), (SMALL,),
    ),
    "bincount weights": Case(
        lambda x, w: gc.bincount(x, 4, ["row", "col"], weights=w), counts, (SMALL, WEIGHTS),
    ),
    "histogram": Case(
        lambda x: gc.histogram(x, 7, range=(-1, 1.5)).counts,
        lambda x: histogram(x, 7, range=(-1, 1.5)), batch=False,
    ),
    "histogram edges": Case(
        lambda x: gc.histogram(x, EDGES).counts, lambda x: histogram(x, EDGES), batch=False
    ),
    "histogram density": Case(
        lambda x: gc.histogram(x, EDGES, density=True).counts,
        lambda x: histogram(x, EDGES, density=True), batch=False,
    ),
    "histogram weights": Case(
        lambda x, w: gc.histogram(x, EDGES, weights=w).counts,
        lambda x, w: histogram(x, EDGES, weights=w.broadcast_like(x).transpose(*x.dims).values)
        .astype(w.dtype), (X, V), batch=False,
    ),
    "histogram by row": Case(
        lambda x: gc.histogram(x, 3, "col").counts, lambda x: of_rows(x, 0)
    ),
    "histogram edges by row": Case(
        lambda x: gc.histogram(x, 3, "col").edges, lambda x: of_rows(x, 1)
    ),
    "unique": Case(
        lambda x: gc.unique(x, 5, fill_value=-1), lambda x: different(x, 0), (SMALL,), batch=False
    ),
    "unique floats": Case(
        lambda x: gc.unique(x, 5, fill_value=-1), lambda x: different(x, 0), batch=False
    ),
    "unique by row": Case(
        lambda x: gc.unique(x, 3, "col"),
        lambda x: by_row(x, lambda row: np.append(np.unique(row), [row.min()] * 3)[:3], "unique"),
        (SMALL,), fixed=("row",),
    ),
    **{
        f"unique_all {part}": Case(
            lambda x, part=part: gc.unique_all(x, 5)[part], lambda x, part=part: different(x, part),
            (SMALL,), batch=False,
        )
        for part in (1, 2, 3)
    },
}  # fmt: skip
