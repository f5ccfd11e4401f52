"""The soft alignment of two time series, and its gradient: a loop within a loop.

Cuturi and Blondel, "Soft-DTW: a differentiable loss function for time-series" (2017).
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"time": 4, "other": 5}, "small": {"time": 60, "other": 50}}
GAMMA, FAR = 0.5, 1e8


def inputs(size: str) -> dict[str, np.ndarray]:
    times, others = SIZES[size].values()
    rng = np.random.default_rng(43)
    return {
        "x": rng.standard_normal(times).cumsum() / 4,
        "y": rng.standard_normal(others).cumsum() / 4,
    }


def softmin(*values: gc.Tensor) -> gc.Tensor:
    first, second, third = (-value / GAMMA for value in values)
    return -GAMMA * gc.logaddexp(gc.logaddexp(first, second), third)


def program() -> gc.Compiled:
    x, y = gc.tensor("x", {"time": None}), gc.tensor("y", {"other": None})
    costs = (x - y) ** 2

    def row(state: tuple, costs: gc.Tensor) -> tuple[tuple, None]:
        corner, above = state

        def cell(state: tuple, given: tuple) -> tuple[tuple, gc.Tensor]:
            left, diagonal = state
            cost, over = given
            here = cost + softmin(diagonal, over, left)
            return (here, over), here

        _, values = gc.scan(cell, (FAR, corner), (costs, above), dim="other")
        return (FAR, values), None

    start = 0.0, gc.full({"other": y.sizes["other"]}, FAR)
    (_, last), _ = gc.scan(row, start, costs, dim="time")
    value = last.isel(other=-1)
    return gc.compile([x, y], {"value": value, **gc.grad(value, {"grad_x": x, "grad_y": y})})


def reference(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Algorithms 1 and 2 of the paper."""
    n, m = len(x), len(y)
    costs = np.zeros((n + 2, m + 2))
    costs[1:-1, 1:-1] = (x[:, None] - y) ** 2
    R = np.full((n + 2, m + 2), FAR)
    R[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            z = np.array([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]]) / -GAMMA
            top = z.max()
            R[i, j] = costs[i, j] - GAMMA * (top + np.log(np.exp(z - top).sum()))
    value = R[n, m]
    R[n + 1], R[:, m + 1], R[n + 1, m + 1] = -np.inf, -np.inf, value
    E = np.zeros((n + 2, m + 2))
    E[n + 1, m + 1] = 1.0
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            below, beside, across = (i + 1, j), (i, j + 1), (i + 1, j + 1)
            E[i, j] = sum(
                E[at] * np.exp((R[at] - R[i, j] - costs[at]) / GAMMA)
                for at in (below, beside, across)
            )
    slope = 2 * (x[:, None] - y) * E[1:-1, 1:-1]
    return {"value": value, "grad_x": slope.sum(1), "grad_y": -slope.sum(0)}
