"""Regression of counts by Newton's method, with standard errors and the deviance.

Poisson regression by iteratively reweighted least squares: McCullagh and Nelder, "Generalized
linear models" (1989), section 2.5.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

import graphcore as gc

SIZES = {"tiny": {"row": 10, "col": 2}, "small": {"row": 2000, "col": 12}}
STEPS = 8


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols = SIZES[size].values()
    rng = np.random.default_rng(48)
    X = rng.standard_normal((rows, cols)) / np.sqrt(cols)
    X[:, 0] = 1
    y = rng.poisson(np.exp(X @ (0.5 * rng.standard_normal(cols)))).astype(float)
    return {"X": X, "y": y}


def program() -> gc.Compiled:
    X, y = gc.tensor("X", {"row": None, "col": None}), gc.tensor("y", {"row": None})
    left = X.rename(col="of")

    def information(mean: gc.Tensor) -> gc.Tensor:
        return gc.dot(left * mean, X, dim="row")

    def step(_: gc.Tensor, beta: gc.Tensor) -> gc.Tensor:
        mean = gc.exp(gc.dot(X, beta, dim="col"))
        score = gc.dot(left, y - mean, dim="row")
        return beta + gc.linalg.solve(information(mean), score, ("of", "col"))

    start = gc.zeros({"col": X.sizes["col"]})
    beta = gc.fori_loop(0, STEPS, step, start)
    mean = gc.exp(gc.dot(X, beta, dim="col"))
    spread = gc.linalg.inv(information(mean), ("of", "col"))
    errors = gc.sqrt(gc.diagonal(spread, ("of", "col"), "col"))
    deviance = 2 * (gc.special.xlogy(y, y / mean) - y + mean).sum()
    return gc.compile([X, y], {"beta": beta, "errors": errors, "deviance": deviance})


def reference(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    beta = np.zeros(X.shape[1])
    for _ in range(STEPS):
        mean = np.exp(X @ beta)
        beta = beta + np.linalg.solve((X.T * mean) @ X, X.T @ (y - mean))
    mean = np.exp(X @ beta)
    errors = np.sqrt(np.diag(np.linalg.inv((X.T * mean) @ X)))
    return {
        "beta": beta,
        "errors": errors,
        "deviance": 2 * (xlogy(y, y / mean) - y + mean).sum(),
    }
