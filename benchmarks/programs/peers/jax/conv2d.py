from __future__ import annotations

from collections.abc import Callable

import jax


def convolution(x, w, b):
    order = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=order) + b


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(x, w, b, ct):
        y, pullback = jax.vjp(convolution, x, w, b)
        return {"y": y, **dict(zip(("grad_x", "grad_w", "grad_b"), pullback(ct)))}

    return f
