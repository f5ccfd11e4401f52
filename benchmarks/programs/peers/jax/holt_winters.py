from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

RATES = ("level_rate", "trend_rate", "season_rate")


def log_density(p, y):
    level_rate, trend_rate, season_rate = (jax.nn.sigmoid(p[name]) for name in RATES)

    def step(state, y):
        level, trend, seasons = state
        season = seasons[0]
        new = level_rate * (y - season) + (1 - level_rate) * (level + trend)
        later = trend_rate * (new - level) + (1 - trend_rate) * trend
        again = season_rate * (y - (level + trend)) + (1 - season_rate) * season
        seasons = jnp.concatenate([seasons[1:], again[None]])
        return (new, later, seasons), level + trend + season

    _, foretold = jax.lax.scan(step, (p["level"], p["trend"], p["seasons"]), y)
    noise = jnp.exp(p["log_noise"])
    fit = -0.5 * (((y - foretold) / noise) ** 2).sum() - len(y) * p["log_noise"]
    rates = sum(jnp.log(rate) + jnp.log1p(-rate) for rate in (level_rate, trend_rate, season_rate))
    start = -0.5 * (p["level"] ** 2 + p["trend"] ** 2 + (p["seasons"] ** 2).sum())
    return fit + rates + start - 0.5 * noise**2 + p["log_noise"]


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(y, **parameters):
        value, grads = jax.value_and_grad(log_density)(parameters, y)
        return {"value": value, **{f"grad_{name}": g for name, g in grads.items()}}

    return f
