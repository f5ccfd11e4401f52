from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks.programs.eos import enthalpy


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(salinity, temperature, pressure):
        def of(temperature):
            return enthalpy(salinity, temperature, pressure, jnp.sqrt, jnp.log)

        h, pullback = jax.vjp(of, temperature)
        return {"enthalpy": h, "by_temperature": pullback(jnp.ones_like(h))[0]}

    return f
