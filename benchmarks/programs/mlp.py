"""A perceptron of three layers: cross-entropy and the gradient of every weight.

npbench's mlp and JAX's mnist_classifier_fromscratch example, as one step of training.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"batch": 4, "in": 3, "hidden": 5, "inner": 4, "class": 3},
    "small": {"batch": 8, "in": 3000, "hidden": 2000, "inner": 1000, "class": 100},
}
WEIGHTS = {
    "w1": ("in", "hidden"),
    "b1": ("hidden",),
    "w2": ("hidden", "inner"),
    "b2": ("inner",),
    "w3": ("inner", "class"),
    "b3": ("class",),
}


def inputs(size: str) -> dict[str, np.ndarray]:
    sizes = SIZES[size]
    rng = np.random.default_rng(24)

    def drawn(name: str, *dims: str) -> np.ndarray:
        shape = [sizes[dim] for dim in dims]
        scale = 1 / np.sqrt(shape[0]) if name.startswith("w") else 0.1
        return scale * rng.standard_normal(shape)

    labels = rng.integers(0, sizes["class"], sizes["batch"])
    return {
        "x": rng.standard_normal((sizes["batch"], sizes["in"])),
        "target": np.eye(sizes["class"])[labels],
        **{name: drawn(name, *dims) for name, dims in WEIGHTS.items()},
    }


def program(dtype: str = "float64") -> gc.Compiled:
    def tensor(name: str, *dims: str) -> gc.Tensor:
        return gc.tensor(name, dict.fromkeys(dims), dtype=dtype)

    x, target = tensor("x", "batch", "in"), tensor("target", "batch", "class")
    weights = {name: tensor(name, *dims) for name, dims in WEIGHTS.items()}
    w1, b1, w2, b2, w3, b3 = weights.values()

    hidden = gc.maximum(gc.dot(x, w1, dim="in") + b1, 0)
    inner = gc.maximum(gc.dot(hidden, w2, dim="hidden") + b2, 0)
    logits = gc.dot(inner, w3, dim="inner") + b3
    value = -(target * gc.special.log_softmax(logits, "class")).sum("class").mean("batch")

    grads = gc.grad(value, {f"grad_{name}": w for name, w in weights.items()})
    return gc.compile([x, target, *weights.values()], {"value": value, **grads})


def reference(
    x: np.ndarray,
    target: np.ndarray,
    w1: np.ndarray,
    b1: np.ndarray,
    w2: np.ndarray,
    b2: np.ndarray,
    w3: np.ndarray,
    b3: np.ndarray,
) -> dict[str, np.ndarray]:
    hidden = np.maximum(x @ w1 + b1, 0)
    inner = np.maximum(hidden @ w2 + b2, 0)
    logits = inner @ w3 + b3
    logits -= logits.max(1, keepdims=True)
    e = np.exp(logits)
    norm = e.sum(1, keepdims=True)
    d3 = (e / norm - target) / len(x)
    d2 = (d3 @ w3.T) * (inner > 0)
    d1 = (d2 @ w2.T) * (hidden > 0)
    return {
        "value": -np.sum(target * (logits - np.log(norm))) / len(x),
        "grad_w1": x.T @ d1,
        "grad_b1": d1.sum(0),
        "grad_w2": hidden.T @ d2,
        "grad_b2": d2.sum(0),
        "grad_w3": inner.T @ d3,
        "grad_b3": d3.sum(0),
    }
