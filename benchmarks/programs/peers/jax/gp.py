from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

JITTER = 1e-4


def log_likelihood(p, X, y):
    n = len(y)
    z = X * jnp.exp(-p["log_length"])
    distance = jnp.sum((z[:, None] - z[None]) ** 2, -1)
    noise = (jnp.exp(p["log_noise"]) + JITTER) * jnp.eye(n)
    K = jnp.exp(p["log_amplitude"]) * jnp.exp(-0.5 * distance) + noise
    L = jnp.linalg.cholesky(K)
    white = solve_triangular(L, y - p["mean"], lower=True)
    return -0.5 * white @ white - jnp.log(jnp.diag(L)).sum() - 0.5 * n * math.log(2 * math.pi)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(X, y, **parameters):
        value, grads = jax.value_and_grad(log_likelihood)(parameters, X, y)
        return {"value": value, **{f"grad_{name}": g for name, g in grads.items()}}

    return f
