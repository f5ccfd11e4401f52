from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt

from . import symbols, value_and_gradients

PARAMETERS = "log_amplitude", "log_length", "log_noise", "mean"


def likelihood(X, y, log_amplitude, log_length, log_noise, mean):
    n = y.shape[0]
    z = X * pt.exp(-log_length)
    distance = pt.sum((z[:, None] - z[None]) ** 2, -1)
    K = pt.exp(log_amplitude) * pt.exp(-0.5 * distance)
    L = pt.linalg.cholesky(K + (pt.exp(log_noise) + JITTER) * pt.eye(n))
    white = pt.linalg.solve_triangular(L, y - mean, lower=True)
    volume = pt.log(pt.diagonal(L)).sum() + 0.5 * n * math.log(2 * math.pi)
    return -0.5 * white @ white - volume


JITTER = 1e-4


def program() -> Callable[..., dict[str, Any]]:
    ranks = {"X": 2, "y": 1, "log_amplitude": 0, "log_length": 1, "log_noise": 0, "mean": 0}
    return value_and_gradients(likelihood, symbols(**ranks), PARAMETERS)
