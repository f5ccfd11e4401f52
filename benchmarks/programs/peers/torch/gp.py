from __future__ import annotations

import math
from collections.abc import Callable

import torch

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
    def f(X, y, **arrays):
        wrt = {name: torch.from_numpy(x).requires_grad_() for name, x in arrays.items()}
        value = log_likelihood(torch.from_numpy(X), torch.from_numpy(y), **wrt)
        grads = torch.autograd.grad(value, list(wrt.values()))
        return {"value": value.detach(), **{f"grad_{n}": g for n, g in zip(wrt, grads)}}

    return f
