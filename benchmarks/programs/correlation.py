"""The correlations of all pairs of variables (npbench's correlation).

Variables that hardly spread are not scaled up.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"sample": 7, "variable": 4}, "small": {"sample": 600, "variable": 500}}


def inputs(size: str) -> dict[str, np.ndarray]:
    samples, variables = SIZES[size].values()
    i, j = np.mgrid[:samples, :variables]
    return {"data": (i * j) % variables / variables + i * 1.0}


def program() -> gc.Compiled:
    data = gc.tensor("data", {"sample": None, "variable": None})
    samples, variables = data.shape

    spread = data.std("sample")
    scaled = (data - data.mean("sample")) / gc.where(spread <= 0.1, 1.0, spread)
    products = gc.dot(scaled, scaled.rename(variable="other"), dim="sample") / samples
    same = gc.eye(("variable", "other"), variables, dtype="bool")
    return gc.compile([data], {"correlation": gc.where(same, 1.0, products)})


def reference(data: np.ndarray) -> dict[str, np.ndarray]:
    spread = data.std(0)
    scaled = (data - data.mean(0)) / np.where(spread <= 0.1, 1.0, spread)
    products = scaled.T @ scaled / len(data)
    np.fill_diagonal(products, 1.0)
    return {"correlation": products}
