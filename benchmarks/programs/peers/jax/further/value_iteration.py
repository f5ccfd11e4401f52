from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

DISCOUNT, ENOUGH = 0.9, 1e-8


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(moves, reward):
        def gain(value):
            return reward + DISCOUNT * moves @ value

        def step(state):
            better = gain(state[0]).max(0)
            return better, jnp.abs(better - state[0]).max()

        start = jnp.zeros(reward.shape[1]), jnp.inf
        value, _ = jax.lax.while_loop(lambda state: state[1] > ENOUGH, step, start)
        return {"value": value, "action": gain(value).argmax(0)}

    return f
