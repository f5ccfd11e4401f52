"""Kalman filters of many series at once: the log likelihood in a loop over time, and its gradient.

All series share the dynamics, each has a noise of its own. The innovations are whitened by the
Cholesky factor of their covariance, so that nothing is inverted.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"time": 6, "series": 2, "state": 3, "sensor": 2},
    "small": {"time": 100, "series": 16, "state": 4, "sensor": 2},
}
LOG_2PI = float(np.log(2 * np.pi))


def inputs(size: str) -> dict[str, np.ndarray]:
    times, series, states, sensors = SIZES[size].values()
    rng = np.random.default_rng(21)
    return {
        "A": 0.9 * np.linalg.qr(rng.standard_normal((states, states)))[0],
        "log_q": 0.2 * rng.standard_normal(states) - 1,
        "log_r": 0.2 * rng.standard_normal(series) - 1,
        "H": rng.standard_normal((sensors, states)),
        "y": rng.standard_normal((times, series, sensors)),
    }


def program() -> gc.Compiled:
    A = gc.tensor("A", {"next": "state", "state": None})
    log_q = gc.tensor("log_q", {"state": None})
    log_r = gc.tensor("log_r", {"series": None})
    H = gc.tensor("H", {"sensor": None, "state": None})
    y = gc.tensor("y", {"time": None, "series": None, "sensor": None})

    moves, states, sensors = ("next", "state"), ("state", "other"), ("sensor", "white")
    Q = gc.diag(gc.exp(log_q), "state", states)
    R = gc.exp(log_r) * gc.eye(sensors, shape=H.sizes["sensor"])

    def step(carry: tuple[gc.Tensor, gc.Tensor], y: gc.Tensor) -> tuple:
        m, P = carry
        m = gc.linalg.apply(A, m, moves)
        P = gc.linalg.congruence(A, P, moves, states) + Q
        HP = gc.dot(H, P, dim="state")
        S = gc.linalg.congruence(H, P, ("sensor", "state"), states, new=sensors) + R
        L = gc.linalg.cholesky(S, sensors)
        w = gc.linalg.solve_triangular(L, y - gc.dot(H, m, dim="state"), sensors, lower=True)
        G = gc.linalg.solve_triangular(L, HP, sensors, lower=True)
        gain = G.rename(other="state")
        m, P = m + gc.dot(gain, w, dim="white"), P - gc.dot(gain, G, dim="white")
        terms = 0.5 * w**2 + gc.log(gc.diagonal(L, sensors, "white")) + 0.5 * LOG_2PI
        return (m, P), -terms.sum("white")

    start = gc.zeros_like(log_q), gc.eye(states, shape=log_q.size)
    _, terms = gc.scan(step, start, y, dim="time")
    value, grads = gc.value_and_grad(terms.sum(), {f"grad_{x.name}": x for x in (A, log_q, log_r)})
    return gc.compile([A, log_q, log_r, H, y], {"value": value, **grads})


def reference(
    A: np.ndarray, log_q: np.ndarray, log_r: np.ndarray, H: np.ndarray, y: np.ndarray
) -> dict[str, np.ndarray]:
    """The filter forwards, its adjoint backwards; B = P Hᵀ, a = S⁻¹ v and K = B S⁻¹."""
    times, series, sensors = y.shape
    n = len(A)
    Q, R = np.diag(np.exp(log_q)), np.exp(log_r)[:, None, None] * np.eye(sensors)
    m, P = np.zeros((series, n)), np.broadcast_to(np.eye(n), (series, n, n))
    value, steps = 0.0, []
    for t in range(times):
        before = m, P
        m, P = m @ A.T, A @ P @ A.T + Q
        B = P @ H.T
        S = H @ B + R
        inverse = np.linalg.inv(S)
        v = y[t] - m @ H.T
        a, K = np.einsum("sij,sj->si", inverse, v), B @ inverse
        value -= 0.5 * ((v * a).sum() + np.linalg.slogdet(S)[1].sum())
        steps.append((before, B, inverse, a, K))
        m, P = m + np.einsum("sij,sj->si", B, a), P - K @ B.swapaxes(1, 2)
    by_A, by_Q, by_R = np.zeros_like(A), np.zeros(n), np.zeros(series)
    dm, dP = np.zeros((series, n)), np.zeros((series, n, n))
    for (m, P), _, inverse, a, K in reversed(steps):
        u = np.einsum("sji,sj->si", K, dm)
        ua = u[:, :, None] * a[:, None]
        dS = 0.5 * (a[:, :, None] * a[:, None] - inverse - ua - ua.swapaxes(1, 2))
        dS += K.swapaxes(1, 2) @ dP @ K
        dB = dm[:, :, None] * a[:, None] - 2 * dP @ K
        dBH = dB @ H
        dP = dP + H.T @ dS @ H + 0.5 * (dBH + dBH.swapaxes(1, 2))
        dm = dm - (u - a) @ H
        by_R += np.trace(dS, axis1=1, axis2=2)
        by_Q += np.einsum("sii->i", dP)
        by_A += dm.T @ m + 2 * (dP @ A @ P).sum(0)
        dm, dP = dm @ A, A.T @ dP @ A
    return {
        "value": np.array(value - 0.5 * y.size * LOG_2PI),
        "grad_A": by_A,
        "grad_log_q": by_Q * np.exp(log_q),
        "grad_log_r": by_R * np.exp(log_r),
    }
