from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def loss(w, b, x, y, penalty):
    z = x @ w + b
    return jnp.sum(jax.nn.softplus(z) - y * z) + 0.5 * penalty * w @ w


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(x, y, w, b, v, penalty):
        def slope(w):
            return jax.grad(loss)(w, b, x, y, penalty)

        value, (grad_w, grad_b) = jax.value_and_grad(loss, (0, 1))(w, b, x, y, penalty)
        hvp = jax.jvp(slope, (w,), (v,))[1]
        return {"value": value, "grad_w": grad_w, "grad_b": grad_b, "hvp": hvp}

    return f
