"""A shear flow by the lattice Boltzmann method: nine speeds in two dimensions, periodic.

The model D2Q9 with the collisions of Bhatnagar, Gross and Krook, as in Krueger et al.,
"The Lattice Boltzmann Method" (2017), chapter 3.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"row": 4, "col": 6, "steps": 3}, "small": {"row": 64, "col": 64, "steps": 50}}
DOWN = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
RIGHT = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
WEIGHT = np.array([4 / 9, *[1 / 9] * 4, *[1 / 36] * 4])
RELAXED = 1 / 0.8


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols, steps = SIZES[size].values()
    rng = np.random.default_rng(44)
    shear = 0.05 * np.sin(2 * np.pi * np.arange(rows) / rows)[:, None]
    start = WEIGHT[:, None, None] * (1 + 3 * RIGHT[:, None, None] * shear)
    noise = 1 + 0.01 * rng.standard_normal((9, rows, cols))
    return {"f": start * noise, "steps": np.array(steps)}


def program() -> gc.Compiled:
    f = gc.tensor("f", {"speed": 9, "row": None, "col": None})
    steps = gc.tensor("steps", {}, dtype="int64")
    down, right, weight = (
        gc.constant(values.astype(float), "speed") for values in (DOWN, RIGHT, WEIGHT)
    )

    def moments(f: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor, gc.Tensor]:
        density = f.sum("speed")
        u, v = gc.dot(f, right, dim="speed"), gc.dot(f, down, dim="speed")
        return density, u / density, v / density

    def step(_: gc.Tensor, f: gc.Tensor) -> gc.Tensor:
        density, u, v = moments(f)
        along = 3 * (right * u + down * v)
        settled = weight * density * (1 + along + along**2 / 2 - 1.5 * (u**2 + v**2))
        speeds = gc.unbind(f + RELAXED * (settled - f), "speed")
        moved = [
            one.roll(row=int(rows), col=int(cols)) for one, rows, cols in zip(speeds, DOWN, RIGHT)
        ]
        return gc.concat(moved, "speed")

    density, u, v = moments(gc.fori_loop(0, steps, step, f))
    return gc.compile([f, steps], {"density": density, "u": u, "v": v})


def reference(f: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    def moments(f: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        density = f.sum(0)
        return density, np.tensordot(RIGHT, f, 1) / density, np.tensordot(DOWN, f, 1) / density

    for _ in range(steps):
        density, u, v = moments(f)
        still = 1 - 1.5 * (u * u + v * v)
        moved = np.empty_like(f)
        for k in range(9):
            along = 3 * (RIGHT[k] * u + DOWN[k] * v)
            settled = WEIGHT[k] * density * (still + along + along * along / 2)
            one = f[k] + RELAXED * (settled - f[k])
            moved[k] = np.roll(one, (DOWN[k], RIGHT[k]), (0, 1))
        f = moved
    density, u, v = moments(f)
    return {"density": density, "u": u, "v": v}
