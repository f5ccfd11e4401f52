from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

PRIOR, VARIANCE = 0.1, 0.01
NAMES = ("w1", "w2", "w3", "b1", "b2", "b3")


def log_density(w, x, y):
    h = jnp.exp(-((x @ w["w1"] + w["b1"]) ** 2))
    h = jnp.exp(-((h @ w["w2"] + w["b2"]) ** 2))
    error = h @ w["w3"] + w["b3"] - y
    prior = -PRIOR * sum(jnp.sum(each**2) for each in w.values())
    return prior - jnp.sum(error**2) / VARIANCE


def lower_bound(mean, log_std, noise, x, y):
    w = {name: mean[name] + noise[name] * jnp.exp(log_std[name]) for name in NAMES}
    entropy = sum(
        jnp.sum(each) + 0.5 * (1 + math.log(2 * math.pi)) * each.size for each in log_std.values()
    )
    return entropy + jax.vmap(log_density, (0, None, None))(w, x, y).mean()


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(x, y, **given):
        mean, log_std, noise = (
            {name: given[f"{of}_{name}"] for name in NAMES} for of in ("mean", "log_std", "noise")
        )
        bound, grads = jax.value_and_grad(lower_bound, (0, 1))(mean, log_std, noise, x, y)
        named = zip(("mean", "log_std"), grads)
        return {
            "bound": bound,
            **{f"grad_{of}_{name}": g for of, each in named for name, g in each.items()},
        }

    return f
