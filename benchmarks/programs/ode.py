"""A chain of equations by Runge and Kutta, and the gradient of its last state.

GradBench's ode, after cmpad: the change of each state is a parameter times the state before it,
that of the first its parameter alone.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"state": 5, "steps": 6}, "small": {"state": 50, "steps": 500}}
TIME = 2.0


def inputs(size: str) -> dict[str, np.ndarray]:
    states, steps = SIZES[size].values()
    x = np.random.default_rng(8).uniform(0.5, 1.5, states)
    return {"x": x, "steps": np.array(steps, dtype=np.int64)}


def program() -> gc.Compiled:
    x = gc.tensor("x", {"state": None})
    steps = gc.tensor("steps", {}, dtype="int64")
    dt = TIME / steps

    def change(y: gc.Tensor) -> gc.Tensor:
        return x * y.shift(state=1, fill_value=1)

    def step(_: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        k1 = change(y)
        k2 = change(y + dt / 2 * k1)
        k3 = change(y + dt / 2 * k2)
        return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + change(y + dt * k3))

    y = gc.fori_loop(0, steps, step, gc.zeros_like(x))
    value = y[{"state": -1}]
    return gc.compile([x, steps], {"value": value, "y": y, "grad_x": gc.grad(value, x)})


def reference(x: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    dt = TIME / steps

    def change(y: np.ndarray) -> np.ndarray:
        return x * np.concatenate([[1.0], y[:-1]])

    def back(by_change: np.ndarray, y: np.ndarray) -> np.ndarray:
        """By y; what it is by x is added up on the way."""
        by_x[0] += by_change[0]
        by_x[1:] += by_change[1:] * y[:-1]
        return np.append(by_change[1:] * x[1:], 0.0)

    y = np.zeros_like(x)
    tape = []
    for _ in range(steps):
        k1 = change(y)
        k2 = change(y + dt / 2 * k1)
        k3 = change(y + dt / 2 * k2)
        tape.append((y, y + dt / 2 * k1, y + dt / 2 * k2, y + dt * k3))
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + change(tape[-1][-1]))
    by_x = np.zeros_like(x)
    by_y = np.zeros_like(x)
    by_y[-1] = 1.0
    for y1, y2, y3, y4 in reversed(tape):
        by_4 = back(dt / 6 * by_y, y4)
        by_3 = back(dt / 3 * by_y + dt * by_4, y3)
        by_2 = back(dt / 3 * by_y + dt / 2 * by_3, y2)
        by_1 = back(dt / 6 * by_y + dt / 2 * by_2, y1)
        by_y = by_y + by_1 + by_2 + by_3 + by_4
    return {"value": y[-1], "y": y, "grad_x": by_x}
