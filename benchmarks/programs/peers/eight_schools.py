"""The log density in the words that JAX, PyTorch and PyTensor share; `exp`, `log` are of any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PARAMETERS = "theta_trans", "mu", "log_tau"


def log_density_with(exp: Callable[[Any], Any], log: Callable[[Any], Any]) -> Callable[..., Any]:
    def log_density(theta_trans, mu, log_tau, y, sigma):
        tau = exp(log_tau)
        z = (y - (mu + tau * theta_trans)) / sigma
        prior = -0.5 * (theta_trans**2).sum() - mu**2 / 50 - log(1 + tau**2 / 25)
        return prior - 0.5 * (z**2).sum() + log_tau

    return log_density
