from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

NAMES = ("A", "log_q", "log_r")


def log_likelihood(A, log_q, log_r, H, y):
    _, series, sensors = y.shape
    n = A.shape[0]
    Q, R = jnp.diag(jnp.exp(log_q)), jnp.exp(log_r)[:, None, None] * jnp.eye(sensors)

    def step(carry, y):
        m, P = carry
        m, P = m @ A.T, A @ P @ A.T + Q
        HP = H @ P
        L = jnp.linalg.cholesky(HP @ H.T + R)
        v = y - m @ H.T
        w = solve_triangular(L, v[..., None], lower=True)[..., 0]
        G = solve_triangular(L, HP, lower=True)
        m, P = m + jnp.einsum("sij,si->sj", G, w), P - jnp.swapaxes(G, 1, 2) @ G
        scale = jnp.diagonal(L, axis1=1, axis2=2)
        return (m, P), -0.5 * jnp.sum(w**2) - jnp.sum(jnp.log(scale))

    start = jnp.zeros((series, n)), jnp.broadcast_to(jnp.eye(n), (series, n, n))
    _, terms = jax.lax.scan(step, start, y)
    return terms.sum() - 0.5 * y.size * jnp.log(2 * jnp.pi)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(A, log_q, log_r, H, y):
        value, grads = jax.value_and_grad(log_likelihood, (0, 1, 2))(A, log_q, log_r, H, y)
        return {"value": value, **{f"grad_{name}": g for name, g in zip(NAMES, grads)}}

    return f
