from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks.programs.peers.eight_schools import PARAMETERS, log_density_with

log_density = log_density_with(jnp.exp, jnp.log)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(theta_trans, mu, log_tau, y, sigma):
        of = jax.value_and_grad(log_density, (0, 1, 2))
        value, grads = of(theta_trans, mu, log_tau, y, sigma)
        return {"value": value, **{f"grad_{name}": g for name, g in zip(PARAMETERS, grads)}}

    return f
