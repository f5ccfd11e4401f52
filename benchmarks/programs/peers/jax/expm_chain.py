from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.linalg import expm


def distance(pulse, drift, controls, start, target):
    def step(state, pulse):
        return expm(drift + jnp.tensordot(pulse, controls, 1)) @ state, None

    state, _ = jax.lax.scan(step, start, pulse)
    return jnp.sum((state - target) ** 2)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(pulse, drift, controls, start, target):
        function = jax.value_and_grad(distance, (0, 1))
        value, grads = function(pulse, drift, controls, start, target)
        return {"value": value, "grad_pulse": grads[0], "grad_drift": grads[1]}

    return f
