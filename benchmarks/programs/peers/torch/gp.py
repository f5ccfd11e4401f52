from __future__ import annotations

import math
from collections.abc import Callable

import torch

from . import value_and_gradients

PARAMETERS = "log_amplitude", "log_length", "log_noise", "mean"
JITTER = 1e-4


def log_likelihood(X, y, log_amplitude, log_length, log_noise, mean):
    n = len(y)
    z = X * torch.exp(-log_length)
    distance = torch.sum((z[:, None] - z[None]) ** 2, -1)
    noise = (torch.exp(log_noise) + JITTER) * torch.eye(n, dtype=X.dtype)
    L = torch.linalg.cholesky(torch.exp(log_amplitude) * torch.exp(-0.5 * distance) + noise)
    white = torch.linalg.solve_triangular(L, (y - mean)[:, None], upper=False)[:, 0]
    log_det = torch.log(torch.diagonal(L)).sum()
    return -0.5 * white @ white - log_det - 0.5 * n * math.log(2 * math.pi)


def program() -> Callable[..., dict[str, torch.Tensor]]:
    return value_and_gradients(log_likelihood, PARAMETERS)
