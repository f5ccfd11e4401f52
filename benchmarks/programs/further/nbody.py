"""Bodies under their gravity: leapfrog steps with softened forces, and the energies at the end.

NPBench's nbody, after Philip Mocz's "Create your own N-body simulation".
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"body": 4, "steps": 3}, "small": {"body": 80, "steps": 40}}
G, SOFTENING, DT = 1.0, 0.1, 0.01


def inputs(size: str) -> dict[str, np.ndarray]:
    bodies, steps = SIZES[size].values()
    rng = np.random.default_rng(42)
    mass = 20 * rng.uniform(0.5, 1.5, bodies) / bodies
    velocity = rng.standard_normal((bodies, 3))
    return {
        "mass": mass,
        "position": rng.standard_normal((bodies, 3)),
        "velocity": velocity - np.average(velocity, axis=0, weights=mass),
        "steps": np.array(steps),
    }


def program() -> gc.Compiled:
    mass = gc.tensor("mass", {"body": None})
    position, velocity = (
        gc.tensor(name, {"body": None, "axis": 3}) for name in ("position", "velocity")
    )
    steps = gc.tensor("steps", {}, dtype="int64")
    pulling = mass.rename(body="other")

    def apart(position: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        difference = position.rename(body="other") - position
        return difference, (difference**2).sum("axis") + SOFTENING**2

    def acceleration(position: gc.Tensor) -> gc.Tensor:
        difference, square = apart(position)
        return G * (pulling * square**-1.5 * difference).sum("other")

    def step(_: gc.Tensor, state: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        position, velocity, pull = state
        velocity = velocity + pull * (DT / 2)
        position = position + velocity * DT
        pull = acceleration(position)
        return position, velocity + pull * (DT / 2), pull

    start = position, velocity, acceleration(position)
    ended, speed, _ = gc.fori_loop(0, steps, step, start)
    pairs = mass * pulling / gc.sqrt(apart(ended)[1])
    results = {
        "position": ended,
        "velocity": speed,
        "kinetic": 0.5 * (mass * (speed**2).sum("axis")).sum(),
        "potential": -0.5 * G * (pairs.sum() - (mass**2).sum() / SOFTENING),
    }
    return gc.compile([mass, position, velocity, steps], results)


def reference(
    mass: np.ndarray, position: np.ndarray, velocity: np.ndarray, steps: np.ndarray
) -> dict[str, np.ndarray]:
    def apart(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        difference = position - position[:, None]
        return difference, (difference**2).sum(-1) + SOFTENING**2

    def acceleration(position: np.ndarray) -> np.ndarray:
        difference, square = apart(position)
        return G * np.einsum("ij,ijk->ik", mass * square**-1.5, difference)

    pull = acceleration(position)
    for _ in range(steps):
        velocity = velocity + pull * (DT / 2)
        position = position + velocity * DT
        pull = acceleration(position)
        velocity = velocity + pull * (DT / 2)
    pairs = mass[:, None] * mass / np.sqrt(apart(position)[1])
    return {
        "position": position,
        "velocity": velocity,
        "kinetic": 0.5 * (mass * (velocity**2).sum(1)).sum(),
        "potential": -0.5 * G * (pairs.sum() - (mass**2).sum() / SOFTENING),
    }
