from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp


def likelihood(beta, X, died):
    risk = X @ beta
    top = risk.max()
    at_risk = jnp.log(jnp.cumsum(jnp.exp(risk - top))) + top
    return (risk - at_risk).sum(where=died)


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(X, died, beta):
        value, grad_beta = jax.value_and_grad(likelihood)(beta, X, died)
        return {"value": value, "grad_beta": grad_beta}

    return f
