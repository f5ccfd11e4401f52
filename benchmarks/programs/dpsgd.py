"""A step of private descent: the gradient of each example, clipped, summed, with noise.

The differentially private descent of a JAX example, with the noise given: every gradient is
scaled to a norm of at most CLIP before they are added.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"example": 4, "in": 5, "hidden": 4, "class": 3},
    "small": {"example": 64, "in": 100, "hidden": 64, "class": 10},
}
CLIP, RATE, SIGMA = 1.0, 0.15, 1.1


def inputs(size: str) -> dict[str, np.ndarray]:
    examples, ins, hidden, classes = SIZES[size].values()
    rng = np.random.default_rng(31)
    weights = {
        "w1": rng.standard_normal((ins, hidden)) / np.sqrt(ins),
        "b1": rng.standard_normal(hidden) * 0.1,
        "w2": rng.standard_normal((hidden, classes)) / np.sqrt(hidden),
        "b2": rng.standard_normal(classes) * 0.1,
    }
    return {
        "x": rng.standard_normal((examples, ins)),
        "target": np.eye(classes)[rng.integers(0, classes, examples)],
        **weights,
        **{f"noise_{name}": rng.standard_normal(w.shape) for name, w in weights.items()},
    }


def program(dtype: str = "float64") -> gc.Compiled:
    def tensors(name: str, *dims: str) -> gc.Tensor:
        return gc.tensor(name, dict.fromkeys(dims), dtype=dtype)

    dims = {"w1": ("in", "hidden"), "b1": ("hidden",), "w2": ("hidden", "class"), "b2": ("class",)}
    x, target = tensors("x", "example", "in"), tensors("target", "example", "class")
    weights = {name: tensors(name, *dims) for name, dims in dims.items()}
    noise = {name: tensors(f"noise_{name}", *dims) for name, dims in dims.items()}

    hidden = gc.tanh(gc.dot(x, weights["w1"], dim="in") + weights["b1"])
    logits = gc.dot(hidden, weights["w2"], dim="hidden") + weights["b2"]
    loss = -(target * gc.special.log_softmax(logits, "class")).sum("class")

    grads = gc.grad(loss, weights, per="example")
    squares = [(g**2).sum(dims[name]) for name, g in grads.items()]
    norms = gc.sqrt(sum(squares))
    clipped = {name: g / gc.maximum(norms / CLIP, 1.0) for name, g in grads.items()}
    new = {
        f"new_{name}": w
        - RATE * (clipped[name].sum("example") + CLIP * SIGMA * noise[name]) / x.sizes["example"]
        for name, w in weights.items()
    }
    return gc.compile([x, target, *weights.values(), *noise.values()], {"norms": norms, **new})


def reference(
    x: np.ndarray,
    target: np.ndarray,
    w1: np.ndarray,
    b1: np.ndarray,
    w2: np.ndarray,
    b2: np.ndarray,
    **noise: np.ndarray,
) -> dict[str, np.ndarray]:
    """The gradients of an example are outer products: neither they nor their norms are needed."""
    hidden = np.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    e = np.exp(logits - logits.max(1, keepdims=True))
    d2 = e / e.sum(1, keepdims=True) - target
    d1 = (d2 @ w2.T) * (1 - hidden * hidden)
    of_1 = ((x**2).sum(1) + 1) * (d1**2).sum(1)
    norms = np.sqrt(of_1 + ((hidden**2).sum(1) + 1) * (d2**2).sum(1))
    scale = 1 / np.maximum(norms / CLIP, 1)
    d1, d2 = d1 * scale[:, None], d2 * scale[:, None]
    grads = {"w1": x.T @ d1, "b1": d1.sum(0), "w2": hidden.T @ d2, "b2": d2.sum(0)}
    new = {
        f"new_{name}": w - RATE * (grads[name] + CLIP * SIGMA * noise[f"noise_{name}"]) / len(x)
        for name, w in {"w1": w1, "b1": b1, "w2": w2, "b2": b2}.items()
    }
    return {"norms": norms, **new}
