"""Prices of options that may be exercised early, on a binomial tree, and their deltas.

Cox, Ross and Rubinstein, "Option pricing: a simplified approach" (1979).
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"option": 3, "steps": 4}, "small": {"option": 30, "steps": 250}}


def inputs(size: str) -> dict[str, np.ndarray]:
    options, steps = SIZES[size].values()
    rng = np.random.default_rng(61)
    return {
        "spot": rng.uniform(80, 120, options),
        "strike": rng.uniform(90, 110, options),
        "rate": np.array(0.03),
        "volatility": rng.uniform(0.1, 0.4, options),
        "level": np.arange(steps + 1.0),
    }


def program() -> gc.Compiled:
    spot, strike, volatility = (
        gc.tensor(name, {"option": None}) for name in ("spot", "strike", "volatility")
    )
    rate, level = gc.tensor("rate", {}), gc.tensor("level", {"level": None})
    steps = level.sizes["level"] - 1

    dt = 1 / steps
    up = gc.exp(volatility * gc.sqrt(dt))
    grows = gc.exp(rate * dt)
    chance = (grows - 1 / up) / (up - 1 / up)

    def exercised(after: gc.Tensor) -> gc.Tensor:
        return gc.maximum(strike - spot * up ** (2 * level - after), 0.0)

    def step(passed: gc.Tensor, value: gc.Tensor) -> gc.Tensor:
        higher = value.shift(level=-1, fill_value=0.0)
        held = (chance * higher + (1 - chance) * value) / grows
        return gc.maximum(held, exercised(steps - 1 - passed))

    price = gc.fori_loop(0, steps, step, exercised(steps))[{"level": 0}]
    results = {"price": price, "delta": gc.grad(price.sum(), spot)}
    return gc.compile([spot, strike, rate, volatility, level], results)


def reference(
    spot: np.ndarray,
    strike: np.ndarray,
    rate: np.ndarray,
    volatility: np.ndarray,
    level: np.ndarray,
) -> dict[str, np.ndarray]:
    """Deltas go along with the prices, in trees that lose one level in each step."""
    steps = len(level) - 1
    dt = 1 / steps
    up = np.exp(volatility * np.sqrt(dt))[:, None]
    grows = np.exp(rate * dt)
    chance = (grows - 1 / up) / (up - 1 / up)

    def exercised(after: int) -> tuple[np.ndarray, np.ndarray]:
        slope = up ** (2 * level[: after + 1] - after)
        gain = strike[:, None] - spot[:, None] * slope
        return np.maximum(gain, 0), np.where(gain > 0, -slope, 0)

    def held(x: np.ndarray) -> np.ndarray:
        return (chance * x[:, 1:] + (1 - chance) * x[:, :-1]) / grows

    price, delta = exercised(steps)
    for after in range(steps - 1, -1, -1):
        now, slope = exercised(after)
        later = held(price)
        delta = np.where(later > now, held(delta), slope)
        price = np.maximum(later, now)
    return {"price": price[:, 0], "delta": delta[:, 0]}
