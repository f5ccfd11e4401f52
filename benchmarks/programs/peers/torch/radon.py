from __future__ import annotations

from collections.abc import Callable

import torch

NAMES = ("alpha_raw", "beta", "mu_alpha", "log_sigma_alpha", "log_sigma_y")


def logp(alpha_raw, beta, mu_alpha, log_sigma_alpha, log_sigma_y, county, u, floor, y):
    sigma_alpha, sigma_y = torch.exp(log_sigma_alpha), torch.exp(log_sigma_y)
    alpha = mu_alpha + sigma_alpha * alpha_raw
    error = (y - (alpha[county] + u * beta[0] + floor * beta[1])) / sigma_y
    scales = -0.5 * sigma_alpha**2 - 0.5 * sigma_y**2 + log_sigma_alpha + log_sigma_y
    means = -(mu_alpha**2) / 200 - (beta**2).sum() / 200 - 0.5 * (alpha_raw**2).sum()
    return scales + means - 0.5 * (error**2).sum() - y.shape[0] * log_sigma_y


def program() -> Callable[..., dict[str, torch.Tensor]]:
    def f(**arrays):
        given = {name: torch.from_numpy(x) for name, x in arrays.items()}
        wrt = [given[name].requires_grad_() for name in NAMES]
        value = logp(**given)
        grads = torch.autograd.grad(value, wrt)
        return {"value": value.detach(), **{f"grad_{n}": g for n, g in zip(NAMES, grads)}}

    return f
