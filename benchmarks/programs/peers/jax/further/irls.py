from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import xlogy

STEPS = 8


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(X, y):
        def information(mean):
            return (X.T * mean) @ X

        def step(_, beta):
            mean = jnp.exp(X @ beta)
            return beta + jnp.linalg.solve(information(mean), X.T @ (y - mean))

        beta = jax.lax.fori_loop(0, STEPS, step, jnp.zeros(X.shape[1]))
        mean = jnp.exp(X @ beta)
        errors = jnp.sqrt(jnp.diag(jnp.linalg.inv(information(mean))))
        deviance = 2 * (xlogy(y, y / mean) - y + mean).sum()
        return {"beta": beta, "errors": errors, "deviance": deviance}

    return f
