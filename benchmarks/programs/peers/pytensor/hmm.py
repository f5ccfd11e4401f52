from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad

from . import symbols, value_and_gradients

PARAMETERS = "pi_raw", "A_raw", "mu_raw", "log_sigma"


def logsumexp(x):
    """Over the first axis. The gradient of pt.logsumexp is nan in a scan where all exp(x) are 0."""
    top = disconnected_grad(x.max(0))
    return pt.log(pt.exp(x - top).sum(0)) + top


def likelihood(pi_raw, A_raw, mu_raw, log_sigma, y):
    log_pi, log_A = pt.special.log_softmax(pi_raw), pt.special.log_softmax(A_raw, axis=-1)
    mu = pt.cumsum(pt.concatenate([mu_raw[:1], pt.exp(mu_raw[1:])]))
    z = (y[:, None] - mu) / pt.exp(log_sigma)
    log_b = -0.5 * z**2 - log_sigma - 0.5 * math.log(2 * math.pi)

    def step(log_b, log_a, log_A):
        return logsumexp(log_a[:, None] + log_A) + log_b

    log_a = pytensor.scan(
        step,
        sequences=[log_b[1:]],
        outputs_info=[log_pi + log_b[0]],
        non_sequences=[log_A],
        return_updates=False,
    )
    return logsumexp(log_a[-1])


def program() -> Callable[..., dict[str, Any]]:
    ranks = {"pi_raw": 1, "A_raw": 2, "mu_raw": 1, "log_sigma": 1, "y": 1}
    return value_and_gradients(likelihood, symbols(**ranks), PARAMETERS)
