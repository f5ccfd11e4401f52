from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def loss(by_pixel, by_word, scale, image, text):
    def embedded(h):
        return h / jnp.sqrt((h**2).sum(1, keepdims=True))

    left, right = embedded(image @ by_pixel), embedded(text @ by_word)
    alike = jnp.exp(scale) * left @ right.T
    by_rows, by_cols = jax.nn.log_softmax(alike, 1), jax.nn.log_softmax(alike, 0)
    return -(jnp.diag(by_rows).mean() + jnp.diag(by_cols).mean()) / 2


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(image, text, by_pixel, by_word, scale):
        value, slopes = jax.value_and_grad(loss, (0, 1, 2))(by_pixel, by_word, scale, image, text)
        return {"value": value, **dict(zip(("grad_pixel", "grad_word", "grad_scale"), slopes))}

    return f
