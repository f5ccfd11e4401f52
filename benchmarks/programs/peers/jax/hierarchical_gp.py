from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

PARTS = 17
JITTER = 1e-6


def log_density(p, year, state, region_of, y):
    log_share = jax.nn.log_softmax(p["parts"])
    total, length = jnp.exp(p["log_total"]), jnp.exp(p["log_length"])
    sigma = jnp.sqrt(PARTS * total * jnp.exp(log_share))
    years, region = len(p["gp_region"]), region_of[state]
    apart = jnp.subtract.outer(jnp.arange(years), jnp.arange(years)) / length[:, None, None]
    kernels = sigma[12:16, None, None] ** 2 * jnp.exp(-0.5 * apart**2)
    L = jnp.linalg.cholesky(kernels[:2] + kernels[2:] + JITTER * jnp.eye(years))
    mean = p["mu"] + sigma[0] * p["year_effect"][year] + sigma[1] * p["region_effect"][region]
    mean = mean + sigma[2:12][region] * p["state_effect"][state]
    mean = mean + (L[0] @ p["gp_region"])[year, region] + (L[1] @ p["gp_state"])[year, state]

    likelihood = -0.5 * (((y - mean) / sigma[16]) ** 2).sum() - len(y) * jnp.log(sigma[16])
    names = ("gp_region", "gp_state", "year_effect", "state_effect", "region_effect")
    normals = -0.5 * sum((p[name] ** 2).sum() for name in names)
    normals = normals - 0.5 * ((p["mu"] - 0.5) / 0.5) ** 2
    variances = 3 * p["log_total"] - 3 * total + 2 * log_share.sum()
    scale = jnp.array([8.0, 8.0, 3.0, 3.0])
    lengths = (30 * p["log_length"] - (length / scale) ** 30).sum()
    return likelihood + normals + variances + lengths


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(year, state, region_of, y, **parameters):
        of = jax.value_and_grad(log_density)
        value, grads = of(parameters, year, state, region_of, y)
        return {"value": value, **{f"grad_{name}": g for name, g in grads.items()}}

    return f
