from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr


def price(spot, strike, rate, volatility, expiry):
    spread = volatility * jnp.sqrt(expiry)
    d1 = jnp.log(spot / strike) / spread + (rate / volatility**2 + 0.5) * spread
    return spot * ndtr(d1) - strike * jnp.exp(-rate * expiry) * ndtr(d1 - spread)


def total(*market):
    return price(*market).sum()


def program() -> Callable[..., dict[str, jax.Array]]:
    jax.config.update("jax_enable_x64", True)

    @jax.jit
    def f(spot, strike, rate, volatility, expiry):
        market = spot, strike, rate, volatility, expiry
        delta, rho, vega, slope = jax.grad(total, (0, 2, 3, 4))(*market)
        gamma = jax.grad(lambda spot: jax.grad(total)(spot, *market[1:]).sum())(spot)
        greeks = {"delta": delta, "gamma": gamma, "vega": vega, "theta": -slope, "rho": rho}
        return {"price": price(*market), **greeks}

    return f
