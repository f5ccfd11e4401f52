from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

CLIP, RATE, SIGMA = 1.0, 0.15, 1.1


def loss(weights, x, target):
    hidden = jnp.tanh(x @ weights["w1"] + weights["b1"])
    return -jnp.sum(target * jax.nn.log_softmax(hidden @ weights["w2"] + weights["b2"]))


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(x, target, w1, b1, w2, b2, **noise):
        weights = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}

        def clipped(x, target):
            grads = jax.grad(loss)(weights, x, target)
            norm = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
            return {name: g / jnp.maximum(norm / CLIP, 1.0) for name, g in grads.items()}, norm

        grads, norms = jax.vmap(clipped)(x, target)
        new = {
            f"new_{name}": w
            - RATE * (grads[name].sum(0) + CLIP * SIGMA * noise[f"noise_{name}"]) / x.shape[0]
            for name, w in weights.items()
        }
        return {"norms": norms, **new}

    return f
