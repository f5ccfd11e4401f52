from __future__ import annotations

from collections.abc import Callable

import jax


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(rows, cols, values, x, ct):
        def product(values, x):
            terms = values * x[cols]
            return jax.ops.segment_sum(terms, rows, len(ct), indices_are_sorted=True)

        y, pullback = jax.vjp(product, values, x)
        return {"y": y, **dict(zip(("grad_values", "grad_x"), pullback(ct)))}

    return f
