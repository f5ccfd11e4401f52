"""Oscillators that pull each other along a weighted network, by Runge and Kutta.

Kuramoto's model, as in Rodrigues et al., "The Kuramoto model in complex networks" (2016), eq. 3.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"node": 5}, "small": {"node": 100}}
STEPS, DT = 40, 0.05


def inputs(size: str) -> dict[str, np.ndarray]:
    (nodes,) = SIZES[size].values()
    rng = np.random.default_rng(56)
    return {
        "phase": rng.uniform(0, 2 * np.pi, nodes),
        "speed": rng.standard_normal(nodes),
        "pull": rng.uniform(size=(nodes, nodes)) * 4 / nodes,
    }


def program() -> gc.Compiled:
    phase, speed = gc.tensor("phase", {"node": None}), gc.tensor("speed", {"node": None})
    pull = gc.tensor("pull", {"node": None, "other": "node"})

    def change(phase: gc.Tensor) -> gc.Tensor:
        return speed + (pull * gc.sin(phase.rename(node="other") - phase)).sum("other")

    def step(phase: gc.Tensor, _: None) -> tuple[gc.Tensor, gc.Tensor]:
        k1 = change(phase)
        k2 = change(phase + DT / 2 * k1)
        k3 = change(phase + DT / 2 * k2)
        phase = phase + DT / 6 * (k1 + 2 * k2 + 2 * k3 + change(phase + DT * k3))
        return phase, gc.hypot(gc.cos(phase).mean(), gc.sin(phase).mean())

    last, order = gc.scan(step, phase, length=STEPS)
    return gc.compile([phase, speed, pull], {"phase": last, "order": order})


def reference(phase: np.ndarray, speed: np.ndarray, pull: np.ndarray) -> dict[str, np.ndarray]:
    def change(phase: np.ndarray) -> np.ndarray:
        return speed + (pull * np.sin(phase - phase[:, None])).sum(1)

    order = []
    for _ in range(STEPS):
        k1 = change(phase)
        k2 = change(phase + DT / 2 * k1)
        k3 = change(phase + DT / 2 * k2)
        phase = phase + DT / 6 * (k1 + 2 * k2 + 2 * k3 + change(phase + DT * k3))
        order.append(np.hypot(np.cos(phase).mean(), np.sin(phase).mean()))
    return {"phase": phase, "order": np.array(order)}
