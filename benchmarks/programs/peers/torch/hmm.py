from __future__ import annotations

import math
from collections.abc import Callable

import torch

from . import value_and_gradients

NAMES = ("pi_raw", "A_raw", "mu_raw", "log_sigma")


def log_likelihood(pi_raw, A_raw, mu_raw, log_sigma, y):
    log_pi, log_A = torch.log_softmax(pi_raw, 0), torch.log_softmax(A_raw, 1)
    mu = torch.cumsum(torch.cat([mu_raw[:1], torch.exp(mu_raw[1:])]), 0)
    z = (y[:, None] - mu) / torch.exp(log_sigma)
    log_b = -0.5 * z**2 - log_sigma - 0.5 * math.log(2 * math.pi)
    log_a = log_pi + log_b[0]
    for t in range(1, len(y)):
        log_a = torch.logsumexp(log_a[:, None] + log_A, 0) + log_b[t]
    return torch.logsumexp(log_a, 0)


def program() -> Callable[..., dict[str, torch.Tensor]]:
    return value_and_gradients(log_likelihood, NAMES)
