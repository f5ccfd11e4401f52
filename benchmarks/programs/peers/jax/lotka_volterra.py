from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

STEPS = 20
MEANS, DEVIATIONS = (1.0, 0.05, 1.0, 0.05), (0.5, 0.05, 0.5, 0.05)


def log_density(log_theta, log_start, log_sigma, pelts):
    theta, sigma = jnp.exp(log_theta), jnp.exp(log_sigma)
    birth, hunted, death, fed = theta
    h = 1 / STEPS

    def slope(z):
        hares, lynxes = z
        return jnp.stack([(birth - hunted * lynxes) * hares, (fed * hares - death) * lynxes])

    def step(_, z):
        k1 = slope(z)
        k2 = slope(z + h / 2 * k1)
        k3 = slope(z + h / 2 * k2)
        return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(z + h * k3))

    def year(z, _):
        z = jax.lax.fori_loop(0, STEPS, step, z)
        return z, z

    start = jnp.exp(log_start)
    _, years = jax.lax.scan(year, start, length=len(pelts) - 1)
    z = (jnp.log(pelts) - jnp.log(jnp.concatenate([start[None], years]))) / sigma
    off = (theta - jnp.array(MEANS)) / jnp.array(DEVIATIONS)
    likelihood = -0.5 * (z**2).sum() - len(pelts) * log_sigma.sum()
    rates = -0.5 * (off**2).sum() + log_theta.sum()
    scales = -0.5 * ((log_sigma + 1) ** 2).sum() - 0.5 * ((log_start - jnp.log(10)) ** 2).sum()
    return likelihood + rates + scales


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(log_theta, log_start, log_sigma, pelts):
        of = jax.value_and_grad(log_density, (0, 1, 2))
        value, grads = of(log_theta, log_start, log_sigma, pelts)
        names = ("grad_log_theta", "grad_log_start", "grad_log_sigma")
        return {"value": value, **dict(zip(names, grads))}

    return f
