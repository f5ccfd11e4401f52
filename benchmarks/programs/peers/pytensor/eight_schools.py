from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt

from . import symbols, value_and_gradients


def density(theta_trans, mu, log_tau, y, sigma):
    tau = pt.exp(log_tau)
    z = (y - (mu + tau * theta_trans)) / sigma
    prior = -0.5 * pt.sum(theta_trans**2) - mu**2 / 50 - pt.log(1 + tau**2 / 25)
    return prior - 0.5 * pt.sum(z**2) + log_tau


def program() -> Callable[..., dict[str, Any]]:
    given = symbols(theta_trans=1, mu=0, log_tau=0, y=1, sigma=1)
    return value_and_gradients(density, given, ["theta_trans", "mu", "log_tau"])
