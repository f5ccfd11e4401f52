"""Two chemicals that react and spread: patterns of spots on a periodic plane.

Pearson, "Complex patterns in a simple system" (1993), by Euler's method.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"row": 5, "col": 6, "steps": 3}, "small": {"row": 96, "col": 96, "steps": 100}}
SPREAD_U, SPREAD_V, FEED, KILL = 0.16, 0.08, 0.035, 0.065


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols, steps = SIZES[size].values()
    rng = np.random.default_rng(55)
    return {
        "u": 1 - 0.5 * rng.uniform(size=(rows, cols)),
        "v": 0.25 * rng.uniform(size=(rows, cols)),
        "steps": np.array(steps),
    }


def program() -> gc.Compiled:
    u, v = (gc.tensor(name, {"row": None, "col": None}) for name in "uv")
    steps = gc.tensor("steps", {}, dtype="int64")

    def laplacian(x: gc.Tensor) -> gc.Tensor:
        return x.roll(row=1) + x.roll(row=-1) + x.roll(col=1) + x.roll(col=-1) - 4 * x

    def step(_: gc.Tensor, state: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        u, v = state
        reaction = u * v**2
        return (
            u + SPREAD_U * laplacian(u) - reaction + FEED * (1 - u),
            v + SPREAD_V * laplacian(v) + reaction - (FEED + KILL) * v,
        )

    u_last, v_last = gc.fori_loop(0, steps, step, (u, v))
    return gc.compile([u, v, steps], {"u": u_last, "v": v_last})


def reference(u: np.ndarray, v: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    def laplacian(x: np.ndarray) -> np.ndarray:
        around = np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)
        return around - 4 * x

    for _ in range(steps):
        reaction = u * v * v
        u, v = (
            u + SPREAD_U * laplacian(u) - reaction + FEED * (1 - u),
            v + SPREAD_V * laplacian(v) + reaction - (FEED + KILL) * v,
        )
    return {"u": u, "v": v}
