from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

G, SOFTENING, DT = 1.0, 0.1, 0.01


def apart(position):
    difference = position - position[:, None]
    return difference, (difference**2).sum(-1) + SOFTENING**2


def acceleration(mass, position):
    difference, square = apart(position)
    return G * ((mass * square**-1.5)[:, :, None] * difference).sum(1)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(mass, position, velocity, steps):
        def step(_, state):
            position, velocity, pull = state
            velocity = velocity + pull * (DT / 2)
            position = position + velocity * DT
            pull = acceleration(mass, position)
            return position, velocity + pull * (DT / 2), pull

        start = position, velocity, acceleration(mass, position)
        position, velocity, _ = jax.lax.fori_loop(0, steps, step, start)
        pairs = mass[:, None] * mass / jnp.sqrt(apart(position)[1])
        return {
            "position": position,
            "velocity": velocity,
            "kinetic": 0.5 * (mass * (velocity**2).sum(1)).sum(),
            "potential": -0.5 * G * (pairs.sum() - (mass**2).sum() / SOFTENING),
        }

    return f
