"""Logistic regression with an L2 penalty: loss, gradient, and the Hessian times a vector.

What Newton's method by conjugate gradients asks for; autograd's logistic_regression example and
posteriordb's nes_logit.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"row": 30, "feature": 4}, "small": {"row": 1000, "feature": 20}}


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, features = SIZES[size].values()
    rng = np.random.default_rng(9)
    x = rng.standard_normal((rows, features))
    truth = rng.standard_normal(features) / np.sqrt(features)
    return {
        "x": x,
        "y": (rng.uniform(size=rows) < 1 / (1 + np.exp(-x @ truth))).astype(float),
        "w": 0.1 * rng.standard_normal(features),
        "b": np.array(0.1),
        "v": rng.standard_normal(features),
        "penalty": np.array(0.5),
    }


def program() -> gc.Compiled:
    x = gc.tensor("x", {"row": None, "feature": None})
    y = gc.tensor("y", {"row": None})
    w, v = (gc.tensor(name, {"feature": None}) for name in ("w", "v"))
    b, penalty = gc.tensor("b", {}), gc.tensor("penalty", {})

    z = gc.dot(x, w, dim="feature") + b
    value = (gc.special.softplus(z) - y * z).sum() + 0.5 * penalty * (w**2).sum()

    results = {"value": value, "grad_w": gc.grad(value, w), "grad_b": gc.grad(value, b)}
    return gc.compile([x, y, w, b, v, penalty], {**results, "hvp": gc.hvp(value, w, v)})


def reference(
    x: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    v: np.ndarray,
    penalty: np.ndarray,
) -> dict[str, np.ndarray]:
    z = x @ w + b
    p = 1 / (1 + np.exp(-z))
    return {
        "value": np.sum(np.logaddexp(0, z) - y * z) + 0.5 * penalty * w @ w,
        "grad_w": x.T @ (p - y) + penalty * w,
        "grad_b": (p - y).sum(),
        "hvp": x.T @ (p * (1 - p) * (x @ v)) + penalty * v,
    }
