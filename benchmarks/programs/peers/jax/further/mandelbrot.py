from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(c, steps):
        def step(_, state):
            z, count = state
            near = z.real**2 + z.imag**2 < 4
            return jnp.where(near, z * z + c, z), count + near

        start = jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int64)
        z, count = jax.lax.fori_loop(0, steps, step, start)
        return {"z": z, "count": count}

    return f
