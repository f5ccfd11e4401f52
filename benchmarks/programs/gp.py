"""A Gaussian process: the log marginal likelihood of observations, and its gradient.

autograd's gaussian_process example, posteriordb's gp_regr: a squared-exponential kernel with a
length for each feature, noise and a mean.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

import graphcore as gc

SIZES = {"tiny": {"point": 8, "feature": 2}, "small": {"point": 100, "feature": 4}}
LOG_2PI = float(np.log(2 * np.pi))
JITTER = 1e-4


def inputs(size: str) -> dict[str, np.ndarray]:
    points, features = SIZES[size].values()
    rng = np.random.default_rng(10)
    X = rng.standard_normal((points, features))
    return {
        "X": X,
        "y": np.sin(X.sum(1)) + 0.1 * rng.standard_normal(points),
        "log_amplitude": np.array(0.1),
        "log_length": 0.2 * rng.standard_normal(features) + 0.3,
        "log_noise": np.array(-1.0),
        "mean": np.array(0.05),
    }


def program() -> gc.Compiled:
    X = gc.tensor("X", {"point": None, "feature": None})
    y = gc.tensor("y", {"point": None})
    log_length = gc.tensor("log_length", {"feature": None})
    log_amplitude, log_noise, mean = (
        gc.tensor(name, {}) for name in ("log_amplitude", "log_noise", "mean")
    )

    z = X * gc.exp(-log_length)
    distance = ((z - z.rename(point="other")) ** 2).sum("feature")
    n = y.sizes["point"]
    noise = (gc.exp(log_noise) + JITTER) * gc.eye({"point": n, "other": n})
    K = gc.exp(log_amplitude) * gc.exp(-0.5 * distance) + noise
    L = gc.linalg.cholesky(K, ("point", "other"))
    white = gc.linalg.solve_triangular(L, y - mean, ("point", "other"), lower=True)
    log_det = gc.log(gc.diagonal(L, ("point", "other"))).sum()
    value = -0.5 * (white**2).sum() - log_det - 0.5 * LOG_2PI * n

    wrt = [log_amplitude, log_length, log_noise, mean]
    grads = gc.grad(value, {f"grad_{x.name}": x for x in wrt})
    return gc.compile([X, y, *wrt], {"value": value, **grads})


def reference(
    X: np.ndarray,
    y: np.ndarray,
    log_amplitude: np.ndarray,
    log_length: np.ndarray,
    log_noise: np.ndarray,
    mean: np.ndarray,
) -> dict[str, np.ndarray]:
    n = len(y)
    z = X * np.exp(-log_length)
    square = (z * z).sum(1)
    distance = np.maximum(square[:, None] + square - 2 * z @ z.T, 0)
    kernel = np.exp(log_amplitude) * np.exp(-0.5 * distance)
    L = np.linalg.cholesky(kernel + (np.exp(log_noise) + JITTER) * np.eye(n))
    residual = y - mean
    a = scipy.linalg.cho_solve((L, True), residual)
    by_K = 0.5 * (np.outer(a, a) - scipy.linalg.cho_solve((L, True), np.eye(n)))
    shares = by_K * kernel
    of_squares = shares.sum(1) @ (z * z) - np.einsum("id,id->d", z, shares @ z)
    return {
        "value": -0.5 * residual @ a - np.log(np.diag(L)).sum() - 0.5 * n * LOG_2PI,
        "grad_log_amplitude": shares.sum(),
        "grad_log_length": 2 * of_squares,
        "grad_log_noise": np.trace(by_K) * np.exp(log_noise),
        "grad_mean": a.sum(),
    }
