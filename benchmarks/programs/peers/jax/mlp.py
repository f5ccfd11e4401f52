from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def loss(weights, x, target):
    hidden = jax.nn.relu(x @ weights["w1"] + weights["b1"])
    inner = jax.nn.relu(hidden @ weights["w2"] + weights["b2"])
    log_p = jax.nn.log_softmax(inner @ weights["w3"] + weights["b3"])
    return -jnp.sum(target * log_p) / x.shape[0]


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(x, target, **weights):
        value, grads = jax.value_and_grad(loss)(weights, x, target)
        return {"value": value, **{f"grad_{name}": g for name, g in grads.items()}}

    return f
