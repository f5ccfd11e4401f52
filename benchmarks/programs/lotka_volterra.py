"""Lynxes and hares: the log density of a population model given counts of pelts, and its gradient.

posteriordb's lotka_volterra (Carpenter's case study for Stan), on the log scale and up to a
constant; the equations are integrated by Runge and Kutta's method with 20 steps a year.
The counts, in thousands, are those of the Hudson's Bay Company from 1900 to 1920 (Howard 2009).
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"year": 3}, "small": {"year": 20}}
HARES = (
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
)  # fmt: skip
LYNXES = (
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
)  # fmt: skip
STEPS = 20
MEANS, DEVIATIONS = np.array([1.0, 0.05, 1.0, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])


def inputs(size: str) -> dict[str, np.ndarray]:
    pelts = np.array([HARES, LYNXES]).T[: SIZES[size]["year"] + 1]
    return {
        "log_theta": np.log([0.55, 0.028, 0.80, 0.024]),
        "log_start": np.log([33.0, 6.0]),
        "log_sigma": np.log([0.25, 0.3]),
        "pelts": pelts,
    }


def program() -> gc.Compiled:
    log_theta = gc.tensor("log_theta", {"rate": 4})
    log_start, log_sigma = (gc.tensor(x, {"species": 2}) for x in ("log_start", "log_sigma"))
    pelts = gc.tensor("pelts", {"year": None, "species": 2})

    theta, sigma = gc.exp(log_theta), gc.exp(log_sigma)
    birth, hunted, death, fed = gc.unbind(theta, "rate")

    def slope(hares: gc.Tensor, lynxes: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        return (birth - hunted * lynxes) * hares, (fed * hares - death) * lynxes

    def moved(state: tuple, by: float, along: tuple) -> tuple:
        return tuple(z + by * d for z, d in zip(state, along))

    def step(_: gc.Tensor, state: tuple) -> tuple:
        h = 1 / STEPS
        k1 = slope(*state)
        k2 = slope(*moved(state, h / 2, k1))
        k3 = slope(*moved(state, h / 2, k2))
        k4 = slope(*moved(state, h, k3))
        means = tuple((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4))
        return moved(state, h, means)

    def year(state: tuple, _: None) -> tuple[tuple, tuple]:
        state = gc.fori_loop(0, STEPS, step, state)
        return state, state

    start = tuple(gc.exp(z) for z in gc.unbind(log_start, "species"))
    _, years = gc.scan(year, start, length=pelts.sizes["year"] - 1, dim="year")
    populations = gc.concat([log_start, gc.log(gc.concat(years, "species"))], "year")

    z = (gc.log(pelts) - populations) / sigma
    likelihood = -0.5 * (z**2).sum() - pelts.sizes["year"] * log_sigma.sum()
    rates = (
        -0.5 * (((theta - gc.constant(MEANS, "rate")) / gc.constant(DEVIATIONS, "rate")) ** 2).sum()
    )
    scales = -0.5 * ((log_sigma + 1) ** 2).sum() - 0.5 * ((log_start - np.log(10)) ** 2).sum()
    value = likelihood + rates + log_theta.sum() + scales

    wrt = [log_theta, log_start, log_sigma]
    grads = gc.grad(value, {f"grad_{v.name}": v for v in wrt})
    return gc.compile([*wrt, pelts], {"value": value, **grads})


def reference(
    log_theta: np.ndarray, log_start: np.ndarray, log_sigma: np.ndarray, pelts: np.ndarray
) -> dict[str, np.ndarray]:
    """The derivatives by the six parameters are integrated with the populations."""
    theta, start, sigma = np.exp(log_theta), np.exp(log_start), np.exp(log_sigma)
    birth, hunted, death, fed = theta

    def slope(state: np.ndarray) -> np.ndarray:
        """Of (hares, lynxes) in the first column, of their derivatives in the others."""
        hares, lynxes = state[:, 0]
        jacobian = np.array(
            [[birth - hunted * lynxes, -hunted * hares], [fed * lynxes, fed * hares - death]]
        )
        d = jacobian @ state
        d[:, 0] = (birth - hunted * lynxes) * hares, (fed * hares - death) * lynxes
        both = hares * lynxes
        d[:, 1:5] += [[hares, -both, 0, 0], [0, 0, -lynxes, both]]
        return d

    h = 1 / STEPS
    state = np.zeros((2, 7))
    state[:, 0], state[:, 5:] = start, np.eye(2)
    states = [state]
    for _ in range(len(pelts) - 1):
        for _ in range(STEPS):
            k1 = slope(state)
            k2 = slope(state + h / 2 * k1)
            k3 = slope(state + h / 2 * k2)
            k4 = slope(state + h * k3)
            state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        states.append(state)
    found = np.array(states)

    z = (np.log(pelts) - np.log(found[:, :, 0])) / sigma
    off = (theta - MEANS) / DEVIATIONS
    likelihood = -0.5 * (z**2).sum() - len(pelts) * log_sigma.sum()
    rates = -0.5 * (off**2).sum() + log_theta.sum()
    scales = -0.5 * ((log_sigma + 1) ** 2).sum() - 0.5 * ((log_start - np.log(10)) ** 2).sum()
    by = np.einsum("ys,ysp->p", z / sigma / found[:, :, 0], found[:, :, 1:])
    return {
        "value": likelihood + rates + scales,
        "grad_log_theta": (by[:4] - off / DEVIATIONS) * theta + 1,
        "grad_log_start": by[4:] * start - (log_start - np.log(10)),
        "grad_log_sigma": (z**2).sum(0) - len(pelts) - (log_sigma + 1),
    }
