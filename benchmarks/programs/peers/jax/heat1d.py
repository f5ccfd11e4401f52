from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def misfit(log_k, u0, seen, dt):
    k = jnp.exp(log_k)

    def step(u, seen):
        flow = dt * k * (u[1:] - u[:-1])
        u = u + jnp.pad(flow, (0, 1)) - jnp.pad(flow, (1, 0))
        return u, 0.5 * jnp.mean((u - seen) ** 2)

    return jax.lax.scan(step, u0, seen)[1].sum()


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(log_k, u0, seen, dt):
        value, (grad_k, grad_u) = jax.value_and_grad(misfit, (0, 1))(log_k, u0, seen, dt)
        return {"value": value, "grad_log_k": grad_k, "grad_u0": grad_u}

    return f
