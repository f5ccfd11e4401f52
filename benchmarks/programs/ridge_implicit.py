"""Ridge regression tuned by gradient: how the loss on other data depends on the penalty.

jaxopt's ridge_reg_implicit_diff example: the weights are found by conjugate gradients, and their
derivative by the implicit function theorem, which takes one more such solution.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"row": 12, "held": 8, "feature": 3},
    "small": {"row": 400, "held": 200, "feature": 20},
}
SETTLED = 1e-24  # the square of the residual, in units of that of the right side


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, held, features = SIZES[size].values()
    rng = np.random.default_rng(21)
    X = rng.standard_normal((rows + held, features))
    y = X @ rng.standard_normal(features) + 0.5 * rng.standard_normal(rows + held)
    return {
        "X": X[:rows],
        "y": y[:rows],
        "X_held": X[rows:],
        "y_held": y[rows:],
        "theta": np.array(-1.0),
    }


def solve(X: gc.Tensor, penalty: gc.Tensor, right: gc.Tensor) -> gc.Tensor:
    """The w for which (Xᵀ X + n penalty) w = right."""

    def applied(w: gc.Tensor) -> gc.Tensor:
        return gc.dot(X, gc.dot(X, w, dim="feature"), dim="row") + X.sizes["row"] * penalty * w

    def far(state: tuple[gc.Tensor, ...]) -> gc.Tensor:
        return state[-1] > SETTLED * (right**2).sum()

    def step(state: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        w, residual, along, square = state
        image = applied(along)
        length = square / gc.dot(along, image, dim="feature")
        residual = residual - length * image
        left = (residual**2).sum()
        return w + length * along, residual, residual + left / square * along, left

    start = gc.zeros_like(right), right, right, (right**2).sum()
    return gc.while_loop(far, step, start, max_steps=100)[0]


def fit(X: gc.Tensor, y: gc.Tensor, penalty: gc.Tensor) -> gc.Tensor:
    return solve(X, penalty, gc.dot(X, y, dim="row"))


def implicit(operands: tuple, w: gc.Tensor, ct: gc.Tensor) -> tuple[gc.Tensor, ...]:
    X, y, penalty = operands
    u = solve(X, penalty, ct)
    Xu, error = gc.dot(X, u, dim="feature"), y - gc.dot(X, w, dim="feature")
    return error * u - Xu * w, Xu, -X.sizes["row"] * (u * w).sum()


def program() -> gc.Compiled:
    X = gc.tensor("X", {"row": None, "feature": None})
    y = gc.tensor("y", {"row": None})
    X_held = gc.tensor("X_held", {"held": None, "feature": None})
    y_held = gc.tensor("y_held", {"held": None})
    theta = gc.tensor("theta", {})

    w = gc.custom_pullback(fit, implicit)(X, y, gc.exp(theta))
    value = ((gc.dot(X_held, w, dim="feature") - y_held) ** 2).mean()
    results = {"value": value, "grad_theta": gc.grad(value, theta), "grad_X": gc.grad(value, X)}
    return gc.compile([X, y, X_held, y_held, theta], results)


def reference(
    X: np.ndarray, y: np.ndarray, X_held: np.ndarray, y_held: np.ndarray, theta: np.ndarray
) -> dict[str, np.ndarray]:
    n = len(X) * np.exp(theta)
    hessian = X.T @ X + n * np.eye(X.shape[1])
    w = np.linalg.solve(hessian, X.T @ y)
    error = X_held @ w - y_held
    u = np.linalg.solve(hessian, 2 / len(error) * (X_held.T @ error))
    return {
        "value": (error**2).mean(),
        "grad_theta": -n * (u @ w),
        "grad_X": np.outer(y - X @ w, u) - np.outer(X @ u, w),
    }
