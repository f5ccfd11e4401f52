"""A Gaussian hidden Markov model: the log likelihood by the forward algorithm, and its gradient.

The model of posteriordb's hmm_gaussian, the recursion of autograd's hmm_em example: the first state
and the transitions are softmaxes, the means of the states stand in increasing order.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"time": 12, "state": 3}, "small": {"time": 500, "state": 3}}
LOG_2PI = float(np.log(2 * np.pi))


def inputs(size: str) -> dict[str, np.ndarray]:
    times, states = SIZES[size].values()
    rng = np.random.default_rng(14)
    return {
        "pi_raw": rng.standard_normal(states),
        "A_raw": rng.standard_normal((states, states)),
        "mu_raw": 0.3 * rng.standard_normal(states),
        "log_sigma": 0.2 * rng.standard_normal(states),
        "y": rng.standard_normal(times) * 2,
    }


def program() -> gc.Compiled:
    pi_raw, mu_raw, log_sigma = (gc.tensor(x, "state") for x in ("pi_raw", "mu_raw", "log_sigma"))
    A_raw = gc.tensor("A_raw", {"state": None, "next": "state"})
    y = gc.tensor("y", {"time": None})

    log_pi = gc.special.log_softmax(pi_raw, "state")
    log_A = gc.special.log_softmax(A_raw, "next")
    mu = gc.exp(mu_raw).at[{"state": 0}].set(mu_raw.isel(state=0)).cumsum("state")
    log_b = -0.5 * ((y - mu) / gc.exp(log_sigma)) ** 2 - log_sigma - 0.5 * LOG_2PI

    def step(log_a: gc.Tensor, log_b: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.special.logsumexp(log_a + log_A, "state").rename(next="state") + log_b, None

    start = log_pi + log_b.isel(time=0)
    log_a, _ = gc.scan(step, start, log_b.isel(time=slice(1, None)), dim="time")
    value = gc.special.logsumexp(log_a, "state")

    parameters = [pi_raw, A_raw, mu_raw, log_sigma]
    grads = gc.grad(value, {f"grad_{x.name}": x for x in parameters})
    return gc.compile([*parameters, y], {"value": value, **grads})


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def reference(
    pi_raw: np.ndarray, A_raw: np.ndarray, mu_raw: np.ndarray, log_sigma: np.ndarray, y: np.ndarray
) -> dict[str, np.ndarray]:
    """Scaled forward-backward: the gradient is the expected statistics."""
    times, states = len(y), len(pi_raw)
    pi, A = softmax(pi_raw), softmax(A_raw)
    step = np.exp(mu_raw)
    step[0] = mu_raw[0]
    mu, sigma = np.cumsum(step), np.exp(log_sigma)
    z = (y[:, None] - mu) / sigma
    log_b = -0.5 * z * z - log_sigma - 0.5 * LOG_2PI
    highest = log_b.max(1, keepdims=True)
    b = np.exp(log_b - highest)
    forward, scale = np.empty((times, states)), np.empty(times)
    a = pi * b[0]
    for t in range(times):
        if t:
            a = (forward[t - 1] @ A) * b[t]
        scale[t] = a.sum()
        forward[t] = a / scale[t]
    backward = np.ones((times, states))
    moves = np.zeros((states, states))
    for t in range(times - 2, -1, -1):
        q = b[t + 1] * backward[t + 1] / scale[t + 1]
        moves += np.outer(forward[t], q)
        backward[t] = A @ q
    moves *= A
    there = forward * backward
    by_mu = (there * z / sigma).sum(0)
    by_step = np.cumsum(by_mu[::-1])[::-1].copy()
    by_step[1:] *= step[1:]
    return {
        "value": np.sum(np.log(scale) + highest[:, 0]),
        "grad_pi_raw": there[0] - pi,
        "grad_A_raw": moves - moves.sum(1, keepdims=True) * A,
        "grad_mu_raw": by_step,
        "grad_log_sigma": (there * (z * z - 1)).sum(0),
    }
