from __future__ import annotations

import math
from collections.abc import Callable

import torch

from . import value_and_gradients


def log_posterior(x, alpha, mu, q, off, gamma, m):
    (n, d), k = x.shape, len(alpha)
    cols, rows = torch.triu_indices(d, d, 1)
    places = torch.arange(k)[:, None], rows, cols
    lower = torch.zeros((k, d, d), dtype=x.dtype).index_put(places, off)
    centred = x[:, None] - mu
    y = torch.exp(q) * centred + torch.einsum("kij,nkj->nki", lower, centred)
    likelihoods = alpha + q.sum(1) - 0.5 * torch.sum(y**2, -1)
    freedom = d + m + 1
    gammas = torch.special.multigammaln(0.5 * freedom, d)
    normal = freedom * d * (torch.log(gamma) - 0.5 * math.log(2)) - gammas
    return (
        torch.logsumexp(likelihoods, 1).sum()
        - n * torch.logsumexp(alpha, 0)
        - 0.5 * n * d * math.log(2 * math.pi)
        - 0.5 * gamma**2 * (torch.exp(2 * q).sum() + (off**2).sum())
        + m * q.sum()
        + k * normal
    )


def program() -> Callable[..., dict[str, torch.Tensor]]:
    return value_and_gradients(log_posterior, ["alpha", "mu", "q", "off"])
