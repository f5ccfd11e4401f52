"""JAX has no reverse mode through while_loop: the vector is held, its Rayleigh quotient not."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

SETTLED, STEPS = 1e-13, 300


def eigenvalue(A, v):
    M = A @ A.T
    held = jax.lax.stop_gradient(M)

    def moves(state):
        _, now, before, steps = state
        return (jnp.abs(now - before) > SETTLED * jnp.abs(now)) & (steps < STEPS)

    def step(state):
        v, now, _, steps = state
        u = held @ v
        return u / jnp.linalg.norm(u), v @ u, now, steps + 1

    start = v / jnp.linalg.norm(v), 0.0, jnp.inf, 0
    v = jax.lax.stop_gradient(jax.lax.while_loop(moves, step, start)[0])
    return v @ M @ v


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(A, v0):
        value, grad = jax.value_and_grad(lambda A: jax.vmap(eigenvalue)(A, v0).sum())(A)
        return {"value": value, "grad_A": grad}

    return f
