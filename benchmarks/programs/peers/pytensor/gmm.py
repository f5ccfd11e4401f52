from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt

from . import symbols, value_and_gradients

PARAMETERS = "alpha", "mu", "q", "off"


def log_posterior(x, alpha, mu, q, off, gamma, m):
    (n, d), k = x.shape, alpha.shape[0]
    cols, rows = pt.triu_indices(d, k=1)
    lower = pt.zeros((k, d, d))[:, rows, cols].set(off)
    centred = x[:, None] - mu
    y = pt.exp(q) * centred + pt.einsum("kij,nkj->nki", lower, centred)
    likelihoods = alpha + q.sum(1) - 0.5 * pt.sum(y**2, -1)
    freedom = d + m + 1
    gammas = pt.gammaln(0.5 * (freedom - pt.arange(d))).sum()
    gammas = gammas + 0.25 * d * (d - 1) * math.log(math.pi)
    normal = freedom * d * (pt.log(gamma) - 0.5 * math.log(2)) - gammas
    return (
        pt.logsumexp(likelihoods, axis=1).sum()
        - n * pt.logsumexp(alpha)
        - 0.5 * n * d * math.log(2 * math.pi)
        - 0.5 * gamma**2 * (pt.exp(2 * q).sum() + (off**2).sum())
        + m * q.sum()
        + k * normal
    )


def program() -> Callable[..., dict[str, Any]]:
    given = symbols(x=2, alpha=1, mu=2, q=2, off=2, gamma=0, m=0)
    return value_and_gradients(log_posterior, given, PARAMETERS)
