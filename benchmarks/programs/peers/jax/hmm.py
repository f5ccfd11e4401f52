from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

NAMES = ("pi_raw", "A_raw", "mu_raw", "log_sigma")


def log_likelihood(pi_raw, A_raw, mu_raw, log_sigma, y):
    log_pi, log_A = jax.nn.log_softmax(pi_raw), jax.nn.log_softmax(A_raw, axis=-1)
    mu = jnp.cumsum(jnp.concatenate([mu_raw[:1], jnp.exp(mu_raw[1:])]))
    z = (y[:, None] - mu) / jnp.exp(log_sigma)
    log_b = -0.5 * z**2 - log_sigma - 0.5 * jnp.log(2 * jnp.pi)

    def step(log_a, log_b):
        return logsumexp(log_a[:, None] + log_A, axis=0) + log_b, None

    log_a, _ = jax.lax.scan(step, log_pi + log_b[0], log_b[1:])
    return logsumexp(log_a)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(pi_raw, A_raw, mu_raw, log_sigma, y):
        wrt = (0, 1, 2, 3)
        value, grads = jax.value_and_grad(log_likelihood, wrt)(pi_raw, A_raw, mu_raw, log_sigma, y)
        return {"value": value, **{f"grad_{name}": g for name, g in zip(NAMES, grads)}}

    return f
