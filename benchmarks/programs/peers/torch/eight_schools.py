from __future__ import annotations

from collections.abc import Callable

import torch

NAMES = ("theta_trans", "mu", "log_tau")


def logp(theta_trans, mu, log_tau, y, sigma):
    tau = torch.exp(log_tau)
    z = (y - (mu + tau * theta_trans)) / sigma
    prior = -0.5 * (theta_trans**2).sum() - mu**2 / 50 - torch.log(1 + tau**2 / 25)
    return prior - 0.5 * (z**2).sum() + log_tau


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(**arrays):
        given = {name: torch.from_numpy(x) for name, x in arrays.items()}
        wrt = [given[name].requires_grad_() for name in NAMES]
        value = logp(**given)
        grads = torch.autograd.grad(value, wrt)
        return {"value": value.detach(), **{f"grad_{n}": g for n, g in zip(NAMES, grads)}}

    return f
