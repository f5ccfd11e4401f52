"""Holt and Winters' seasonal smoothing: the log density of its rates given a series, and gradient.

numpyro's holt_winters example, without its forecast: level, trend and a window of seasons are
carried along the series, and each value is normal about what they foretell. Rates in (0, 1) are
uniform, on the logit scale; constants are left out.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"time": 11, "season": 3}, "small": {"time": 200, "season": 12}}
RATES = ("level_rate", "trend_rate", "season_rate")
PARAMETERS = (*RATES, "log_noise", "level", "trend", "seasons")


def inputs(size: str) -> dict[str, np.ndarray]:
    times, seasons = SIZES[size].values()
    rng = np.random.default_rng(5)
    t = np.arange(times)
    swing = np.sin(2 * np.pi * t / seasons)
    return {
        "level_rate": np.array(-0.8), "trend_rate": np.array(-2.0), "season_rate": np.array(-0.5),
        "log_noise": np.array(-0.7), "level": np.array(0.4), "trend": np.array(0.03),
        "seasons": 0.5 * rng.standard_normal(seasons),
        "y": 0.02 * t + swing + 0.3 * rng.standard_normal(times),
    }  # fmt: skip


def program() -> gc.Compiled:
    p = {name: gc.tensor(name, {}) for name in PARAMETERS[:-1]}
    p["seasons"] = gc.tensor("seasons", {"season": None})
    y = gc.tensor("y", {"time": None})
    level_rate, trend_rate, season_rate = (gc.special.sigmoid(p[name]) for name in RATES)

    def step(state: tuple[gc.Tensor, ...], y: gc.Tensor) -> tuple[tuple, gc.Tensor]:
        level, trend, seasons = state
        season = seasons[{"season": 0}]
        new = level_rate * (y - season) + (1 - level_rate) * (level + trend)
        later = trend_rate * (new - level) + (1 - trend_rate) * trend
        again = season_rate * (y - (level + trend)) + (1 - season_rate) * season
        seasons = seasons.roll(season=-1).at[{"season": -1}].set(again)
        return (new, later, seasons), level + trend + season

    start = p["level"], p["trend"], p["seasons"]
    _, foretold = gc.scan(step, start, y, dim="time")

    noise = gc.exp(p["log_noise"])
    fit = -0.5 * (((y - foretold) / noise) ** 2).sum() - y.sizes["time"] * p["log_noise"]
    rates = sum(gc.log(rate) + gc.log1p(-rate) for rate in (level_rate, trend_rate, season_rate))
    start_prior = -0.5 * (p["level"] ** 2 + p["trend"] ** 2 + (p["seasons"] ** 2).sum())
    value = fit + rates + start_prior - 0.5 * noise**2 + p["log_noise"]

    grads = gc.grad(value, {f"grad_{name}": x for name, x in p.items()})
    return gc.compile([*p.values(), y], {"value": value, **grads})


def reference(
    level_rate: np.ndarray,
    trend_rate: np.ndarray,
    season_rate: np.ndarray,
    log_noise: np.ndarray,
    level: np.ndarray,
    trend: np.ndarray,
    seasons: np.ndarray,
    y: np.ndarray,
) -> dict[str, np.ndarray]:
    a, b, c = (1 / (1 + np.exp(-raw)) for raw in (level_rate, trend_rate, season_rate))
    noise = np.exp(log_noise)
    times, period = len(y), len(seasons)
    levels, trends = np.empty(times + 1), np.empty(times + 1)
    levels[0], trends[0] = level, trend
    season = np.concatenate([seasons, np.empty(times)])  # that of t stands at t
    for t in range(times):
        both = levels[t] + trends[t]
        levels[t + 1] = a * (y[t] - season[t]) + (1 - a) * both
        trends[t + 1] = b * (levels[t + 1] - levels[t]) + (1 - b) * trends[t]
        season[t + period] = c * (y[t] - both) + (1 - c) * season[t]
    z = (y - (levels[:-1] + trends[:-1] + season[:times])) / noise
    fit = -0.5 * (z**2).sum() - times * log_noise
    rates = sum(np.log(rate) + np.log1p(-rate) for rate in (a, b, c))
    start = -0.5 * (level**2 + trend**2 + (seasons**2).sum())

    by_level, by_trend, by_season = 0.0, 0.0, np.zeros(times + period)
    by_a, by_b, by_c = 1 / a - 1 / (1 - a), 1 / b - 1 / (1 - b), 1 / c - 1 / (1 - c)
    for t in reversed(range(times)):
        both, rise = levels[t] + trends[t], levels[t + 1] - levels[t]
        of_season = by_season[t + period]
        new_level = by_level + b * by_trend
        by_a += new_level * (y[t] - season[t] - both)
        by_b += by_trend * (rise - trends[t])
        by_c += of_season * (y[t] - both - season[t])
        share = z[t] / noise
        by_both = (1 - a) * new_level - c * of_season + share
        by_level = by_both - b * by_trend
        by_trend = by_both + (1 - b) * by_trend
        by_season[t] += share - a * new_level + (1 - c) * of_season
    return {
        "value": fit + rates + start - 0.5 * noise**2 + log_noise,
        "grad_level_rate": by_a * a * (1 - a),
        "grad_trend_rate": by_b * b * (1 - b),
        "grad_season_rate": by_c * c * (1 - c),
        "grad_log_noise": (z**2).sum() - times - noise**2 + 1,
        "grad_level": by_level - level,
        "grad_trend": by_trend - trend,
        "grad_seasons": by_season[:period] - seasons,
    }
