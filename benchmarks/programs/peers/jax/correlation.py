from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(data):
        spread = data.std(0)
        scaled = (data - data.mean(0)) / jnp.where(spread <= 0.1, 1.0, spread)
        products = scaled.T @ scaled / len(data)
        same = jnp.eye(data.shape[1], dtype=bool)
        return {"correlation": jnp.where(same, 1.0, products)}

    return f
