"""A sparse matrix times a vector, and its pullback to the entries and the vector (npbench's spmv).

The matrix is a list of entries with their rows and columns, sorted by row.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"row": 6, "col": 5, "entry": 12},
    "small": {"row": 4096, "col": 4096, "entry": 8192},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols, entries = SIZES[size].values()
    rng = np.random.default_rng(32)
    return {
        "rows": np.sort(rng.integers(0, rows, entries)),
        "cols": rng.integers(0, cols, entries),
        "values": rng.standard_normal(entries),
        "x": rng.standard_normal(cols),
        "ct": rng.standard_normal(rows),
    }


def program() -> gc.Compiled:
    rows, cols = (gc.tensor(name, {"entry": None}, dtype="int64") for name in ("rows", "cols"))
    values = gc.tensor("values", {"entry": None})
    x, ct = gc.tensor("x", {"col": None}), gc.tensor("ct", {"row": None})

    y = gc.segment_sum(values * x[{"col": cols}], rows, ct.sizes["row"], name="row")
    grads = gc.pullback(y, {"grad_values": values, "grad_x": x}, ct)
    return gc.compile([rows, cols, values, x, ct], {"y": y, **grads})


def reference(
    rows: np.ndarray, cols: np.ndarray, values: np.ndarray, x: np.ndarray, ct: np.ndarray
) -> dict[str, np.ndarray]:
    of_col, of_row = x[cols], ct[rows]
    return {
        "y": np.bincount(rows, values * of_col, len(ct)),
        "grad_values": of_row * of_col,
        "grad_x": np.bincount(cols, of_row * values, len(x)),
    }
