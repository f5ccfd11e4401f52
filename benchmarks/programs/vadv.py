"""Implicit vertical advection: in each column of the atmosphere a tridiagonal system.

npbench's vadv, after GridTools: Thomas' algorithm, up the levels and down again.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"i": 4, "j": 3, "level": 6}, "small": {"i": 60, "j": 60, "level": 40}}
IMPLICIT = 0.5  # the part of the vertical wind that is taken at the new time


def inputs(size: str) -> dict[str, np.ndarray]:
    i, j, levels = SIZES[size].values()
    rng = np.random.default_rng(42)
    return {
        "tendency_stage": rng.random((i, j, levels)),
        "u_stage": rng.random((i, j, levels)),
        "wind": rng.random((i + 1, j, levels)),
        "u": rng.random((i, j, levels)),
        "tendency": rng.random((i, j, levels)),
        "rate": np.array(3 / 20),
    }


def program() -> gc.Compiled:
    grid = {"i": None, "j": None, "level": None}
    names = "tendency_stage", "u_stage", "u", "tendency"
    tendency_stage, u_stage, u, tendency = (gc.tensor(name, grid) for name in names)
    wind = gc.tensor("wind", grid | {"i": "i faces"})
    rate = gc.tensor("rate", {})

    west, east = wind[{"i": slice(-1)}], wind[{"i": slice(1, None)}]
    between = IMPLICIT * 0.25 * (west + east)[{"level": slice(1, None)}]  # the levels
    flow = (1 - IMPLICIT) / IMPLICIT * between * u_stage.diff("level")

    def below(x: gc.Tensor) -> gc.Tensor:
        return x.pad(level=(1, 0), constant_values=0)

    def above(x: gc.Tensor) -> gc.Tensor:
        return x.pad(level=(0, 1), constant_values=0)

    lower, upper = -below(between), above(between)
    diagonal = rate - lower - upper
    right = rate * u + tendency + tendency_stage - above(flow) - below(flow)

    def eliminate(before: tuple, level: tuple) -> tuple[tuple, tuple]:
        lower, diagonal, upper, right = level
        pivot = 1 / (diagonal - before[0] * lower)
        here = upper * pivot, (right - before[1] * lower) * pivot
        return here, here

    def substitute(after: gc.Tensor, level: tuple) -> tuple[gc.Tensor, gc.Tensor]:
        here = level[1] - level[0] * after
        return here, here

    _, levels = gc.scan(eliminate, (0.0, 0.0), (lower, diagonal, upper, right), dim="level")
    _, new = gc.scan(substitute, 0.0, levels, dim="level", reverse=True)
    inputs = [tendency_stage, u_stage, wind, u, tendency, rate]
    return gc.compile(inputs, {"tendency_stage": (rate * (new - u)).transpose(*grid)})


def reference(
    tendency_stage: np.ndarray,
    u_stage: np.ndarray,
    wind: np.ndarray,
    u: np.ndarray,
    tendency: np.ndarray,
    rate: np.ndarray,
) -> dict[str, np.ndarray]:
    between = IMPLICIT * 0.25 * (wind[1:, :, 1:] + wind[:-1, :, 1:])
    flow = (1 - IMPLICIT) / IMPLICIT * between * np.diff(u_stage, axis=2)
    lower, upper = np.zeros_like(u), np.zeros_like(u)
    lower[:, :, 1:] = -between
    upper[:, :, :-1] = between
    diagonal = rate - lower - upper
    right = rate * u + tendency + tendency_stage
    right[:, :, :-1] -= flow
    right[:, :, 1:] -= flow
    levels = u.shape[2]
    for k in range(levels):
        if k > 0:
            diagonal[:, :, k] -= upper[:, :, k - 1] * lower[:, :, k]
            right[:, :, k] -= right[:, :, k - 1] * lower[:, :, k]
        upper[:, :, k] /= diagonal[:, :, k]
        right[:, :, k] /= diagonal[:, :, k]
    for k in reversed(range(levels - 1)):
        right[:, :, k] -= upper[:, :, k] * right[:, :, k + 1]
    return {"tendency_stage": rate * (right - u)}
