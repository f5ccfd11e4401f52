from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

TIME = 2.0


def last(x, steps):
    dt = TIME / steps

    def change(y):
        return (x * jnp.roll(y, 1)).at[0].set(x[0])

    def step(y, _):
        k1 = change(y)
        k2 = change(y + dt / 2 * k1)
        k3 = change(y + dt / 2 * k2)
        return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + change(y + dt * k3)), None

    y, _ = jax.lax.scan(step, jnp.zeros_like(x), None, length=steps)
    return y[-1], y


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @partial(jax.jit, static_argnames="steps")
    def f(x, steps):
        (value, y), grad = jax.value_and_grad(last, has_aux=True)(x, steps)
        return {"value": value, "y": y, "grad_x": grad}

    return lambda x, steps: f(x, int(steps))
