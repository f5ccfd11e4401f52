from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks.programs.peers.isoneutral import model


def padded(x, *edges):
    return jnp.pad(x, [*edges, *[(0, 0)] * (x.ndim - len(edges))])


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)
    return jax.jit(lambda **given: model(given, jnp, padded))
