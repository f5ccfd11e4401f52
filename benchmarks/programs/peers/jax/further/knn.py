from __future__ import annotations

from collections.abc import Callable

import jax

NEAREST = 5


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(query, point, label):
        distances = (query**2).sum(1)[:, None] + (point**2).sum(1) - 2 * query @ point.T
        near, places = jax.lax.top_k(-distances, NEAREST)
        found = (jax.nn.softmax(near) * label[places]).sum(1)
        return {"found": found, "distance": -near}

    return f
