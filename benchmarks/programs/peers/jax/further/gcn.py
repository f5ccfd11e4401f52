from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def loss(w1, w2, sender, receiver, strength, x, label, labelled):
    def spread(h):
        messages = strength[:, None] * h[sender]
        return jax.ops.segment_sum(messages, receiver, len(x), indices_are_sorted=True)

    h = jax.nn.relu(spread(x @ w1))
    chances = jax.nn.log_softmax(spread(h @ w2))
    right = jnp.take_along_axis(chances, label[:, None], 1)[:, 0]
    return -right.mean(where=labelled)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(sender, receiver, strength, x, label, labelled, w1, w2):
        others = sender, receiver, strength, x, label, labelled
        value, (grad_w1, grad_w2) = jax.value_and_grad(loss, (0, 1))(w1, w2, *others)
        return {"value": value, "grad_w1": grad_w1, "grad_w2": grad_w2}

    return f
