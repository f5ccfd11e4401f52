from __future__ import annotations

from collections.abc import Callable

import jax

K = 0.04


def window(x):
    x = x[:-2] + x[1:-1] + x[2:]
    return x[:, :-2] + x[:, 1:-1] + x[:, 2:]


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(image):
        rows = image[:-2] + 2 * image[1:-1] + image[2:]
        cols = image[:, :-2] + 2 * image[:, 1:-1] + image[:, 2:]
        down, right = (cols[2:] - cols[:-2]) / 8, (rows[:, 2:] - rows[:, :-2]) / 8
        dd, rr, dr = window(down**2), window(right**2), window(down * right)
        response = dd * rr - dr**2 - K * (dd + rr) ** 2
        return {"response": response, "strongest": response.max()}

    return f
