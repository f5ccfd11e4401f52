from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks.programs.peers.radon import log_density_with

log_density = log_density_with(jnp.exp)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(county, u, floor, y, **parameters):
        def objective(p):
            return log_density(**p, county=county, u=u, floor=floor, y=y)

        value, grads = jax.value_and_grad(objective)(parameters)
        return {"value": value, **{f"grad_{name}": g for name, g in grads.items()}}

    return f
