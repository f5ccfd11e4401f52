"""A state moved by a chain of matrix exponentials: how far it ends from a target, and the gradient.

The pulse of optimal control (GRAPE): step k multiplies by exp(drift + pulse[k] · controls).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm, expm_frechet

import graphcore as gc

SIZES = {
    "tiny": {"step": 5, "control": 2, "place": 3},
    "small": {"step": 50, "control": 2, "place": 8},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    steps, controls, n = SIZES[size].values()
    rng = np.random.default_rng(23)
    matrices = rng.standard_normal((controls + 1, n, n))
    matrices -= matrices.swapaxes(1, 2)
    start, target = rng.standard_normal((2, n))
    return {
        "pulse": 0.3 * rng.standard_normal((steps, controls)),
        "drift": 0.2 * matrices[0] - 0.01 * np.eye(n),
        "controls": matrices[1:],
        "start": start / np.linalg.norm(start),
        "target": target / np.linalg.norm(target),
    }


def program() -> gc.Compiled:
    pulse = gc.tensor("pulse", {"step": None, "control": None})
    drift = gc.tensor("drift", {"place": None, "from": "place"})
    controls = gc.tensor("controls", {"control": None, "place": None, "from": "place"})
    start, target = (gc.tensor(name, {"place": None}) for name in ("start", "target"))

    def step(state: gc.Tensor, pulse: gc.Tensor) -> tuple[gc.Tensor, None]:
        generator = drift + gc.dot(pulse, controls, dim="control")
        moves = gc.linalg.expm(generator, ("place", "from"))
        return gc.dot(moves, state.rename({"place": "from"}), dim="from"), None

    state, _ = gc.scan(step, start, pulse, dim="step")
    value = ((state - target) ** 2).sum()

    grads = gc.grad(value, {f"grad_{x.name}": x for x in (pulse, drift)})
    return gc.compile([pulse, drift, controls, start, target], {"value": value, **grads})


def reference(
    pulse: np.ndarray,
    drift: np.ndarray,
    controls: np.ndarray,
    start: np.ndarray,
    target: np.ndarray,
) -> dict[str, np.ndarray]:
    """The adjoint of exp's derivative at a matrix is its derivative at the transpose."""
    generators = drift + np.tensordot(pulse, controls, 1)
    states, moves = [start], []
    for generator in generators:
        moves.append(expm(generator))
        states.append(moves[-1] @ states[-1])
    ct = 2 * (states[-1] - target)
    by_pulse, by_drift = np.zeros_like(pulse), np.zeros_like(drift)
    for k in range(len(pulse) - 1, -1, -1):
        share = expm_frechet(generators[k].T, np.outer(ct, states[k]), compute_expm=False)
        by_pulse[k] = (controls * share).sum((1, 2))
        by_drift += share
        ct = moves[k].T @ ct
    value = np.sum((states[-1] - target) ** 2)
    return {"value": value, "grad_pulse": by_pulse, "grad_drift": by_drift}
