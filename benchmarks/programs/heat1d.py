"""The inverse heat problem on a rod: the misfit to the measurements, and its gradient.

Explicit steps of the heat equation with a conductivity that varies from face to face of the cells
and no flow through the ends; how far the temperatures are from observed ones after each step, and
by the logarithms of the conductivities and the temperatures at the start (the adjoint-state
method).
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"cell": 7, "time": 5}, "small": {"cell": 200, "time": 500}}


def inputs(size: str) -> dict[str, np.ndarray]:
    cells, times = SIZES[size].values()
    rng = np.random.default_rng(19)
    return {
        "log_k": 0.3 * rng.standard_normal(cells - 1),
        "u0": rng.standard_normal(cells),
        "seen": rng.standard_normal((times, cells)),
        "dt": np.array(0.1),
    }


def program() -> gc.Compiled:
    log_k = gc.tensor("log_k", {"cell": "faces"})
    u0 = gc.tensor("u0", {"cell": None})
    seen = gc.tensor("seen", {"time": None, "cell": None})
    dt = gc.tensor("dt", {})
    k = gc.exp(log_k)

    def step(u: gc.Tensor, seen: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        flow = k * u.diff("cell")
        u = u + dt * flow.pad(cell=1, constant_values=0).diff("cell")
        return u, 0.5 * ((u - seen) ** 2).mean("cell")

    _, misfits = gc.scan(step, u0, seen, dim="time")
    value = misfits.sum()
    grads = gc.grad(value, {"grad_log_k": log_k, "grad_u0": u0})
    return gc.compile([log_k, u0, seen, dt], {"value": value, **grads})


def reference(
    log_k: np.ndarray, u0: np.ndarray, seen: np.ndarray, dt: np.ndarray
) -> dict[str, np.ndarray]:
    k = np.exp(log_k)
    tape, u, value = [u0], u0, 0.0
    for observed in seen:
        flow = dt * k * (u[1:] - u[:-1])
        u = u.copy()
        u[:-1] += flow
        u[1:] -= flow
        tape.append(u)
        value += 0.5 * np.mean((u - observed) ** 2)
    by_u, by_k = np.zeros_like(u0), np.zeros_like(k)
    for t in reversed(range(len(seen))):
        by_u += (tape[t + 1] - seen[t]) / len(u0)
        by_flow = dt * (by_u[:-1] - by_u[1:])
        by_k += by_flow * (tape[t][1:] - tape[t][:-1])
        by_u[1:] += by_flow * k
        by_u[:-1] -= by_flow * k
    return {"value": value, "grad_log_k": by_k * k, "grad_u0": by_u}
