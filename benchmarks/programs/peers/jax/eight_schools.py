from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def logp(theta_trans, mu, log_tau, y, sigma):
    tau = jnp.exp(log_tau)
    z = (y - (mu + tau * theta_trans)) / sigma
    prior = -0.5 * (theta_trans**2).sum() - mu**2 / 50 - jnp.log(1 + tau**2 / 25)
    return prior - 0.5 * (z**2).sum() + log_tau


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(theta_trans, mu, log_tau, y, sigma):
        value, grads = jax.value_and_grad(logp, (0, 1, 2))(theta_trans, mu, log_tau, y, sigma)
        names = ("grad_theta_trans", "grad_mu", "grad_log_tau")
        return {"value": value, **dict(zip(names, grads))}

    return f
