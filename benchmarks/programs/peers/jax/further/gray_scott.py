from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

SPREAD_U, SPREAD_V, FEED, KILL = 0.16, 0.08, 0.035, 0.065


def laplacian(x):
    around = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)
    return around - 4 * x


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    def step(_, state):
        u, v = state
        reaction = u * v * v
        return (
            u + SPREAD_U * laplacian(u) - reaction + FEED * (1 - u),
            v + SPREAD_V * laplacian(v) + reaction - (FEED + KILL) * v,
        )

    @jax.jit
    def f(u, v, steps):
        u, v = jax.lax.fori_loop(0, steps, step, (u, v))
        return {"u": u, "v": v}

    return f
