"""The training step of `model.Network` in NumPy, derivative and all, as one writes it by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .model import MOMENTUM

Floats = npt.NDArray[np.float64]
Weights = dict[str, Floats]


def training_step(
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

    faster = {name: MOMENTUM * velocity[name] - rate * gradient[name] for name in weights}
    better = {name: weights[name] + faster[name] for name in weights}
    return loss, better, faster
