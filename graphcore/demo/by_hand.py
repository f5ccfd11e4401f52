"""The step of training of `examples/digits.py` in NumPy, derivative and all, written by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Weights = dict[str, Floats]

MOMENTUM = 0.9


def step(
    image: Floats, label: npt.NDArray[np.int64], weights: Weights, velocity: Weights, rate: float
) -> tuple[np.float64, Weights, Weights]:
    """The loss, the new weights and the new velocity."""
    count = len(label)
    x = image.reshape(count, -1)
    w1, w2 = weights["w1"].reshape(x.shape[1], -1), weights["w2"]

    h = x @ w1
    h += weights["b1"]
    np.maximum(h, 0, out=h)
    logits = h @ w2
    logits += weights["b2"]

    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    total = p.sum(axis=1, keepdims=True)
    each = np.arange(count)
    loss = (np.log(total[:, 0]) - logits[each, label]).mean()

    p /= total
    p[each, label] -= 1
    p /= count
    dh = p @ w2.T
    dh *= h > 0
    gradient = {
        "w1": (x.T @ dh).reshape(weights["w1"].shape),
        "b1": dh.sum(axis=0),
        "w2": h.T @ p,
        "b2": p.sum(axis=0),
    }

    new_velocity = {n: MOMENTUM * velocity[n] - rate * gradient[n] for n in weights}
    new_weights = {n: weights[n] + new_velocity[n] for n in weights}
    return loss, new_weights, new_velocity
