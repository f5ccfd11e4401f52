from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import pad


def misfit(log_k, u, seen, dt):
    k, value = torch.exp(log_k), 0.0
    for observed in seen:
        flow = dt * k * (u[1:] - u[:-1])
        u = u + pad(flow, (0, 1)) - pad(flow, (1, 0))
        value = value + 0.5 * torch.mean((u - observed) ** 2)
    return value


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(log_k, u0, seen, dt):
        log_k, u0, seen, dt = map(torch.from_numpy, (log_k, u0, seen, dt))
        value = misfit(log_k.requires_grad_(), u0.requires_grad_(), seen, dt)
        grad_k, grad_u = torch.autograd.grad(value, (log_k, u0))
        return {"value": value.detach(), "grad_log_k": grad_k, "grad_u0": grad_u}

    return f
