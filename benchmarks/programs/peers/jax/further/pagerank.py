from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

DAMPING, STEPS = 0.85, 40


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(source, target, jump):
        pages = len(jump)
        links = jax.ops.segment_sum(jnp.ones(source.shape), source, pages)
        share = jnp.where(links > 0, 1 / jnp.maximum(links, 1), 0.0)

        def step(_, rank):
            given = (rank * share)[source]
            arrived = jax.ops.segment_sum(given, target, pages, indices_are_sorted=True)
            lost = rank.sum(where=links == 0)
            return DAMPING * (arrived + lost / pages) + (1 - DAMPING) * jump

        rank = jax.lax.fori_loop(0, STEPS, step, jump)
        return {"rank": rank, "best": rank.argmax()}

    return f
