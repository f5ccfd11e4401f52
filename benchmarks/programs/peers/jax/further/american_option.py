from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def prices(spot, strike, rate, volatility, level):
    steps = len(level) - 1
    dt = 1 / steps
    up = jnp.exp(volatility * jnp.sqrt(dt))[:, None]
    grows = jnp.exp(rate * dt)
    chance = (grows - 1 / up) / (up - 1 / up)

    def exercised(after):
        slope = up ** (2 * level - after)
        return jnp.maximum(strike[:, None] - spot[:, None] * slope, 0.0)

    def step(passed, value):
        higher = jnp.pad(value[:, 1:], ((0, 0), (0, 1)))
        held = (chance * higher + (1 - chance) * value) / grows
        return jnp.maximum(held, exercised(steps - 1 - passed))

    return jax.lax.fori_loop(0, steps, step, exercised(steps))[:, 0]


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(spot, strike, rate, volatility, level):
        def total(spot):
            price = prices(spot, strike, rate, volatility, level)
            return price.sum(), price

        delta, price = jax.grad(total, has_aux=True)(spot)
        return {"price": price, "delta": delta}

    return f
