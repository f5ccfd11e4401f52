from __future__ import annotations

from collections.abc import Callable

import jax


def loss(centers, contexts, center, context, negative):
    u = centers[center]
    near = (u * contexts[context]).sum(1)
    far = (u[:, None] * contexts[negative]).sum(2)
    return -jax.nn.log_sigmoid(near).sum() - jax.nn.log_sigmoid(-far).sum()


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(centers, contexts, center, context, negative):
        wrt = 0, 1
        value, grads = jax.value_and_grad(loss, wrt)(centers, contexts, center, context, negative)
        return {"value": value, "grad_centers": grads[0], "grad_contexts": grads[1]}

    return f
