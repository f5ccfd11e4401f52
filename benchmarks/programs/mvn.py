"""Log densities of multivariate normals, many at once, and the gradient of their sum.

Each is given by a covariance, of which the symmetric part counts, and by a Cholesky factor.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"group": 2, "draw": 3, "axis": 4},
    "small": {"group": 20, "draw": 50, "axis": 10},
}
LOG_2PI = float(np.log(2 * np.pi))


def inputs(size: str) -> dict[str, np.ndarray]:
    groups, draws, n = SIZES[size].values()
    rng = np.random.default_rng(22)
    root = rng.standard_normal((groups, n, n))
    factor = np.tril(0.3 * rng.standard_normal((groups, n, n)))
    factor[:, range(n), range(n)] = rng.uniform(0.5, 2, (groups, n))
    return {
        "mean": rng.standard_normal((groups, n)),
        "cov": root @ root.swapaxes(1, 2) / n + np.eye(n),
        "factor": factor,
        "x": rng.standard_normal((groups, draws, n)),
    }


PAIR = ("axis", "white")


def log_density(x: gc.Tensor, mean: gc.Tensor, factor: gc.Tensor) -> gc.Tensor:
    """Of a normal whose covariance has this Cholesky factor."""
    z = gc.linalg.solve_triangular(factor, x - mean, PAIR, lower=True)
    return -(0.5 * z**2 + gc.log(gc.diagonal(factor, PAIR, "white")) + 0.5 * LOG_2PI).sum("white")


def program() -> gc.Compiled:
    mean = gc.tensor("mean", {"group": None, "axis": None})
    cov, factor = (
        gc.tensor(name, {"group": None, "axis": None, "white": "axis"})
        for name in ("cov", "factor")
    )
    x = gc.tensor("x", {"group": None, "draw": None, "axis": None})

    symmetric = 0.5 * (cov + gc.linalg.matrix_transpose(cov, PAIR))
    by_cov = log_density(x, mean, gc.linalg.cholesky(symmetric, PAIR))
    by_factor = log_density(x, mean, factor)

    parameters = [mean, cov, factor]
    total = by_cov.sum() + by_factor.sum()
    grads = gc.grad(total, {f"grad_{p.name}": p for p in parameters})
    return gc.compile([*parameters, x], {"by_cov": by_cov, "by_factor": by_factor, **grads})


def reference(
    mean: np.ndarray, cov: np.ndarray, factor: np.ndarray, x: np.ndarray
) -> dict[str, np.ndarray]:
    """With a = Σ⁻¹ (x - mean): the sum of a for the mean, Σ̄ = (a aᵀ - Σ⁻¹) / 2, f̄ = tril(2 Σ̄ f)"""
    draws, n = x.shape[1:]
    rest = x - mean[:, None]
    found, by_mean, by_matrix = [], np.zeros_like(mean), []
    for matrix in (cov, factor @ factor.swapaxes(1, 2)):
        precision = np.linalg.inv(matrix)
        a = rest @ precision
        volume = np.linalg.slogdet(matrix)[1]
        found.append(-0.5 * ((a * rest).sum(-1) + volume[:, None] + n * LOG_2PI))
        by_mean += a.sum(1)
        by_matrix.append(0.5 * (a.swapaxes(1, 2) @ a - draws * precision))
    return {
        "by_cov": found[0],
        "by_factor": found[1],
        "grad_mean": by_mean,
        "grad_cov": by_matrix[0],
        "grad_factor": np.tril(2 * by_matrix[1] @ factor),
    }
