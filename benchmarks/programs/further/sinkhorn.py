"""The cost of moving one cloud of points onto another, smoothed by entropy, and its gradient.

Peyré and Cuturi, "Computational optimal transport" (2019), section 4.4: Sinkhorn's iteration on
the log scale, here for points of equal weight.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

import graphcore as gc

SIZES = {"tiny": {"row": 4, "col": 5, "axis": 2}, "small": {"row": 80, "col": 60, "axis": 3}}
SMOOTH, STEPS = 0.5, 20


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols, axes = SIZES[size].values()
    rng = np.random.default_rng(53)
    return {
        "x": rng.standard_normal((rows, axes)),
        "y": rng.standard_normal((cols, axes)) + 1,
    }


def program() -> gc.Compiled:
    x, y = gc.tensor("x", {"row": None, "axis": None}), gc.tensor("y", {"col": None, "axis": None})
    costs = ((x - y) ** 2).sum("axis")

    def potential(other: gc.Tensor, dim: str) -> gc.Tensor:
        total = gc.special.logsumexp((other - costs) / SMOOTH, dim)
        return SMOOTH * (gc.log(costs.sizes[dim]) - total)

    def step(_: gc.Tensor, state: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        f = potential(state[1], "col")
        return f, potential(f, "row")

    start = gc.zeros({"row": x.sizes["row"]}), gc.zeros({"col": y.sizes["col"]})
    f, g = gc.fori_loop(0, STEPS, step, start)
    value = f.mean() + g.mean()
    return gc.compile([x, y], {"value": value, "grad_x": gc.grad(value, x)})


def reference(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    n, m = len(x), len(y)
    costs = ((x[:, None] - y) ** 2).sum(2)
    g, plans = np.zeros(m), []
    for _ in range(STEPS):
        z = (g - costs) / SMOOTH
        total = logsumexp(z, 1, keepdims=True)
        by_rows = np.exp(z - total)
        f = SMOOTH * (np.log(m) - total)
        z = (f - costs) / SMOOTH
        total = logsumexp(z, 0)
        plans.append((by_rows, np.exp(z - total)))
        g = SMOOTH * (np.log(n) - total)
    value = f.mean() + g.mean()

    by_f, by_g, by_costs = np.full(n, 1 / n), np.full(m, 1 / m), np.zeros((n, m))
    for by_rows, by_cols in reversed(plans):
        moved = by_cols * by_g
        by_f = by_f - moved.sum(1)
        kept = by_rows * by_f[:, None]
        by_costs += moved + kept
        by_g, by_f = -kept.sum(0), 0.0
    grad_x = 2 * (by_costs.sum(1)[:, None] * x - by_costs @ y)
    return {"value": value, "grad_x": grad_x}
