from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

DOWN = (0, 0, 1, 0, -1, 1, 1, -1, -1)
RIGHT = (0, 1, 0, -1, 0, 1, -1, -1, 1)
WEIGHT = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)
RELAXED = 1 / 0.8


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)
    down, right, weight = (jnp.array(values, jnp.float64) for values in (DOWN, RIGHT, WEIGHT))

    def moments(f):
        density = f.sum(0)
        u, v = jnp.tensordot(right, f, 1), jnp.tensordot(down, f, 1)
        return density, u / density, v / density

    def step(_, f):
        density, u, v = moments(f)
        along = 3 * (right[:, None, None] * u + down[:, None, None] * v)
        moving = 1 + along + along**2 / 2 - 1.5 * (u**2 + v**2)
        f = f + RELAXED * (weight[:, None, None] * density * moving - f)
        moves = zip(f, DOWN, RIGHT)
        return jnp.stack([jnp.roll(one, (rows, cols), (0, 1)) for one, rows, cols in moves])

    @jax.jit
    def f(f, steps):
        density, u, v = moments(jax.lax.fori_loop(0, steps, step, f))
        return {"density": density, "u": u, "v": v}

    return f
