from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

NAMES = ("alpha_raw", "beta", "mu_alpha", "log_sigma_alpha", "log_sigma_y")


def logp(alpha_raw, beta, mu_alpha, log_sigma_alpha, log_sigma_y, county, u, floor, y):
    sigma_alpha, sigma_y = jnp.exp(log_sigma_alpha), jnp.exp(log_sigma_y)
    alpha = mu_alpha + sigma_alpha * alpha_raw
    error = (y - (alpha[county] + u * beta[0] + floor * beta[1])) / sigma_y
    scales = -0.5 * sigma_alpha**2 - 0.5 * sigma_y**2 + log_sigma_alpha + log_sigma_y
    means = -(mu_alpha**2) / 200 - (beta**2).sum() / 200 - 0.5 * (alpha_raw**2).sum()
    return scales + means - 0.5 * (error**2).sum() - y.shape[0] * log_sigma_y


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(county, u, floor, y, **parameters):
        def objective(p):
            return logp(**p, county=county, u=u, floor=floor, y=y)

        value, grads = jax.value_and_grad(objective)(parameters)
        return {"value": value, **{f"grad_{name}": grads[name] for name in NAMES}}

    return f
