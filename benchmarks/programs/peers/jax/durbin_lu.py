from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def durbin(r):
    n = len(r)
    places = jnp.arange(n)

    def step(k, state):
        y, alpha, beta = state
        turned = (k - 1 - places) % n
        beta = beta * (1 - alpha * alpha)
        alpha = -(r[k] + r[turned] @ y) / beta
        return (y + alpha * y[turned]).at[k].set(alpha), alpha, beta

    start = jnp.zeros(n).at[0].set(-r[0]), -r[0], 1.0
    return jax.lax.fori_loop(1, n, step, start)[0]


def lu(A):
    n = len(A)
    places = jnp.arange(n)

    def step(k, A):
        below = places > k
        factors = jnp.where(below, A[:, k] / A[k, k], 0)
        A = A - factors[:, None] * jnp.where(below, A[k], 0)
        return A.at[:, k].set(jnp.where(below, factors, A[:, k]))

    return jax.lax.fori_loop(0, n, step, A)


def cholesky(A):
    n = len(A)
    places = jnp.arange(n)

    def step(k, state):
        A, L = state
        column = jnp.where(places >= k, A[:, k] / jnp.sqrt(A[k, k]), 0)
        return A - jnp.outer(column, column), L.at[:, k].set(column)

    return jax.lax.fori_loop(0, n, step, (A, jnp.zeros_like(A)))[1]


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(r, A):
        return {"durbin": durbin(r), "lu": lu(A), "cholesky": cholesky(A)}

    return f
