"""How long points of the plane stay near: steps of z² + c until |z| exceeds two.

NPBench's mandelbrot1, after Nicolas Rougier's "From Python to NumPy"; complex numbers in a loop.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"row": 4, "col": 5, "steps": 6}, "small": {"row": 100, "col": 120, "steps": 60}}


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols, steps = SIZES[size].values()
    c = np.linspace(-1.25, 1.25, rows)[:, None] * 1j + np.linspace(-2.25, 0.75, cols)
    return {"c": c, "steps": np.array(steps)}


def program() -> gc.Compiled:
    c = gc.tensor("c", {"row": None, "col": None}, dtype="complex128")
    steps = gc.tensor("steps", {}, dtype="int64")

    def step(_: gc.Tensor, state: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        z, count = state
        near = z.real**2 + z.imag**2 < 4
        return gc.where(near, z * z + c, z), count + near.astype("int64")

    z, count = gc.fori_loop(0, steps, step, (gc.zeros_like(c), gc.zeros_like(c, dtype="int64")))
    return gc.compile([c, steps], {"z": z, "count": count})


def reference(c: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for _ in range(steps):
        near = z.real**2 + z.imag**2 < 4
        count += near
        z[near] = z[near] ** 2 + c[near]
    return {"z": z, "count": count}
