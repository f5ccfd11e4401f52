from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt

from . import symbols, value_and_gradients

PARAMETERS = "alpha_raw", "beta", "mu_alpha", "log_sigma_alpha", "log_sigma_y"


def logp(alpha_raw, beta, mu_alpha, log_sigma_alpha, log_sigma_y, county, u, floor, y):
    sigma_alpha, sigma_y = pt.exp(log_sigma_alpha), pt.exp(log_sigma_y)
    alpha = mu_alpha + sigma_alpha * alpha_raw
    error = (y - (alpha[county] + u * beta[0] + floor * beta[1])) / sigma_y
    scales = -0.5 * sigma_alpha**2 - 0.5 * sigma_y**2 + log_sigma_alpha + log_sigma_y
    means = -(mu_alpha**2) / 200 - (beta**2).sum() / 200 - 0.5 * (alpha_raw**2).sum()
    return scales + means - 0.5 * (error**2).sum() - y.shape[0] * log_sigma_y


def program() -> Callable[..., dict[str, Any]]:
    ranks = {"alpha_raw": 1, "beta": 1, "mu_alpha": 0, "log_sigma_alpha": 0, "log_sigma_y": 0}
    given = symbols(**ranks, county="int64", u=1, floor=1, y=1)
    return value_and_gradients(logp, given, PARAMETERS)
