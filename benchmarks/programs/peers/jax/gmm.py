from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp, multigammaln


def log_posterior(parameters, x, gamma, m):
    alpha, mu, q, off = parameters
    (n, d), k = x.shape, len(alpha)
    cols, rows = jnp.triu_indices(d, 1)
    lower = jnp.zeros((k, d, d), x.dtype).at[:, rows, cols].set(off)
    centred = x[:, None] - mu
    y = jnp.exp(q) * centred + jnp.einsum("kij,nkj->nki", lower, centred)
    likelihoods = alpha + q.sum(1) - 0.5 * jnp.sum(y**2, -1)
    freedom = d + m + 1
    normal = freedom * d * (jnp.log(gamma) - 0.5 * math.log(2)) - multigammaln(0.5 * freedom, d)
    return (
        logsumexp(likelihoods, axis=1).sum()
        - n * logsumexp(alpha)
        - 0.5 * n * d * math.log(2 * math.pi)
        - 0.5 * gamma**2 * (jnp.exp(2 * q).sum() + (off**2).sum())
        + m * q.sum()
        + k * normal
    )


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(x, alpha, mu, q, off, gamma, m):
        value, grads = jax.value_and_grad(log_posterior)((alpha, mu, q, off), x, gamma, m)
        names = "grad_alpha", "grad_mu", "grad_q", "grad_off"
        return {"value": value, **dict(zip(names, grads))}

    return f
