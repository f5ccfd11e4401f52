"""Prices of European call options and their sensitivities to the market, by derivatives.

Black and Scholes (1973) without dividends; PARSEC's blackscholes asks for the price alone.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

import graphcore as gc

SIZES = {"tiny": {"option": 5}, "small": {"option": 50_000}}
MARKET = "spot", "strike", "rate", "volatility", "expiry"


def inputs(size: str) -> dict[str, np.ndarray]:
    options = SIZES[size]["option"]
    rng = np.random.default_rng(41)
    return {
        "spot": rng.uniform(50, 150, options),
        "strike": rng.uniform(50, 150, options),
        "rate": rng.uniform(0.01, 0.1, options),
        "volatility": rng.uniform(0.1, 0.5, options),
        "expiry": rng.uniform(0.1, 2, options),
    }


def program() -> gc.Compiled:
    market = [gc.tensor(name, {"option": None}) for name in MARKET]
    spot, strike, rate, volatility, expiry = market

    spread = volatility * gc.sqrt(expiry)
    d1 = gc.log(spot / strike) / spread + (rate / volatility**2 + 0.5) * spread
    discounted = strike * gc.exp(-rate * expiry)
    price = spot * gc.special.ndtr(d1) - discounted * gc.special.ndtr(d1 - spread)

    total = price.sum()
    delta, rho, vega, slope = gc.grad(total, [spot, rate, volatility, expiry])
    gamma = gc.grad(delta.sum(), spot)
    greeks = {"delta": delta, "gamma": gamma, "vega": vega, "theta": -slope, "rho": rho}
    return gc.compile(market, {"price": price, **greeks})


def reference(
    spot: np.ndarray,
    strike: np.ndarray,
    rate: np.ndarray,
    volatility: np.ndarray,
    expiry: np.ndarray,
) -> dict[str, np.ndarray]:
    """The sensitivities in closed form, as in Hull, chapter 19."""
    root = np.sqrt(expiry)
    spread = volatility * root
    d1 = np.log(spot / strike) / spread + (rate / volatility**2 + 0.5) * spread
    density = np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
    discounted = strike * np.exp(-rate * expiry)
    delta, exercised = ndtr(d1), ndtr(d1 - spread)
    price = spot * delta - discounted * exercised
    return {
        "price": price,
        "delta": delta,
        "gamma": density / (spot * spread),
        "vega": spot * density * root,
        "theta": -spot * density * volatility / (2 * root) - rate * discounted * exercised,
        "rho": discounted * expiry * exercised,
    }
