from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

IMPLICIT = 0.5


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(tendency_stage, u_stage, wind, u, tendency, rate):
        between = IMPLICIT * 0.25 * (wind[1:, :, 1:] + wind[:-1, :, 1:])
        flow = (1 - IMPLICIT) / IMPLICIT * between * jnp.diff(u_stage, axis=2)
        below, above = ((0, 0), (0, 0), (1, 0)), ((0, 0), (0, 0), (0, 1))
        lower, upper = -jnp.pad(between, below), jnp.pad(between, above)
        diagonal = rate - lower - upper
        right = rate * u + tendency + tendency_stage - jnp.pad(flow, above) - jnp.pad(flow, below)

        def eliminate(before, level):
            lower, diagonal, upper, right = level
            pivot = 1 / (diagonal - before[0] * lower)
            here = upper * pivot, (right - before[1] * lower) * pivot
            return here, here

        def substitute(after, level):
            here = level[1] - level[0] * after
            return here, here

        zeros = jnp.zeros(u.shape[:2])
        given = tuple(jnp.moveaxis(x, 2, 0) for x in (lower, diagonal, upper, right))
        _, levels = jax.lax.scan(eliminate, (zeros, zeros), given)
        _, new = jax.lax.scan(substitute, zeros, levels, reverse=True)
        return {"tendency_stage": rate * (jnp.moveaxis(new, 0, 2) - u)}

    return f
