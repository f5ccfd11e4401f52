"""The log density in the words that JAX, PyTorch and PyTensor share; `exp` is of any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PARAMETERS = "alpha_raw", "beta", "mu_alpha", "log_sigma_alpha", "log_sigma_y"


def log_density_with(exp: Callable[[Any], Any]) -> Callable[..., Any]:
    def log_density(alpha_raw, beta, mu_alpha, log_sigma_alpha, log_sigma_y, county, u, floor, y):
        sigma_alpha, sigma_y = exp(log_sigma_alpha), exp(log_sigma_y)
        alpha = mu_alpha + sigma_alpha * alpha_raw
        error = (y - (alpha[county] + u * beta[0] + floor * beta[1])) / sigma_y
        scales = -0.5 * sigma_alpha**2 - 0.5 * sigma_y**2 + log_sigma_alpha + log_sigma_y
        means = -(mu_alpha**2) / 200 - (beta**2).sum() / 200 - 0.5 * (alpha_raw**2).sum()
        return scales + means - 0.5 * (error**2).sum() - y.shape[0] * log_sigma_y

    return log_density
