from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg


def outer(theta, X, y, X_held, y_held):
    penalty = jnp.exp(theta)

    def applied(w):
        return X.T @ (X @ w) + len(X) * penalty * w

    w, _ = cg(applied, X.T @ y, tol=1e-12, maxiter=100)  # differentiated implicitly
    return ((X_held @ w - y_held) ** 2).mean()


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(X, y, X_held, y_held, theta):
        value, grads = jax.value_and_grad(outer, (0, 1))(theta, X, y, X_held, y_held)
        return {"value": value, "grad_theta": grads[0], "grad_X": grads[1]}

    return f
