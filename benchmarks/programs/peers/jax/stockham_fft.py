from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

DIGITS = 5


def transform(x):
    radix, n, shape = len(x), x.size, x.shape
    x = x.reshape(-1)
    rows, cols = jnp.mgrid[:radix, :radix]
    dft = jnp.exp(-2j * jnp.pi * rows * cols / radix)
    for i in range(DIGITS):
        done, left = radix**i, radix ** (DIGITS - i - 1)
        moved = x.reshape(done, radix, left).transpose(1, 0, 2)
        rows, cols = jnp.mgrid[:radix, :done]
        twiddle = jnp.exp(-2j * jnp.pi * rows * cols / radix ** (i + 1))
        x = (dft @ (moved * twiddle[:, :, None]).reshape(radix, n // radix)).reshape(-1)
    return x.reshape(shape)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(x):
        return {"y": transform(x)}

    return f
