"""Loops whose steps solve with one matrix, by us and by SciPy, which is given its factors by hand.

python -m benchmarks.factored [--size N] [--steps N] [--rounds N]

Each row has the medians of a value by NumPy calls, by machine code, and by a loop over SciPy's
`lu_solve` or `cho_solve`; then those of the value and its gradient by the matrix.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

import graphcore as gc
from benchmarks.measure import seconds, settle_allocator, use_one_thread

T, Array = gc.Tensor, np.ndarray
PAIR = ("row", "col")


class Loop(NamedTuple):
    """A program: its value by a matrix `a` and `b` of all steps, and the same by hand."""

    ours: Callable[[T, T], T]
    by_hand: Callable[[Array, Array], Any]


def solved(a: T, b: T) -> T:
    return gc.linalg.solve(a, b).rename(col="row")


def along_rows(b: T) -> T:
    return gc.zeros({"row": b.sizes["row"]})


def implicit_euler(a: T, b: T) -> T:
    """u' = -a u + sin(u) + b"""
    matrix = gc.eye(PAIR, shape=b.sizes["row"]) + 0.01 * a
    step = lambda u, e: (solved(matrix, u + 0.01 * (gc.sin(u) + e)), None)
    return (gc.scan(step, along_rows(b), b, dim="time")[0] ** 2).sum()


def implicit_euler_by_hand(a: Array, b: Array) -> float:
    factors = scipy.linalg.lu_factor(np.eye(len(a)) + 0.01 * a)
    u = np.zeros(len(a))
    for e in b:
        u = scipy.linalg.lu_solve(factors, u + 0.01 * (np.sin(u) + e), check_finite=False)
    return (u**2).sum()


def kalman_with_a_fixed_gain(a: T, b: T) -> T:
    """Log density of innovations of a fixed covariance: that of a filter that has converged."""

    def step(m: T, y: T) -> tuple[T, T]:
        away = y - 0.9 * m
        gained = solved(a, away)
        return 0.9 * m + 0.5 * gained, gc.dot(away, gained)

    _, terms = gc.scan(step, along_rows(b), b, dim="time")
    return -0.5 * (terms + gc.linalg.slogdet(a).logabsdet).sum()


def kalman_by_hand(a: Array, b: Array) -> float:
    factors = scipy.linalg.lu_factor(a)
    size, m, total = np.log(np.abs(np.diagonal(factors[0]))).sum(), np.zeros(len(a)), 0.0
    for y in b:
        away = y - 0.9 * m
        gained = scipy.linalg.lu_solve(factors, away, check_finite=False)
        m, total = 0.9 * m + 0.5 * gained, total - 0.5 * (away @ gained + size)
    return total


def gauss_newton(a: T, b: T) -> T:
    """Fit of y = exp(x₀ s) + x₁ by weights that are the inverse of a covariance."""
    s, y = gc.linspace(0, 1, b.sizes["row"], dim="row"), b.isel(time=0)

    def step(x: T, _: T) -> tuple[T, None]:
        curve = gc.exp(x.isel(part=0) * s)
        jacobian = gc.stack([s * curve, gc.ones_like(s)], "part")
        weighted = solved(a, jacobian)
        normal = gc.dot(weighted, jacobian.rename(part="other"), dim="row")
        right = gc.dot(weighted, y - curve - x.isel(part=1), dim="row")
        move = gc.linalg.solve(normal, right, ("part", "other")).rename(other="part")
        return x + 0.5 * move, None

    return (gc.scan(step, gc.constant([0.1, 0.1], "part"), b, dim="time")[0] ** 2).sum()


def gauss_newton_by_hand(a: Array, b: Array) -> float:
    factors, x = scipy.linalg.lu_factor(a), np.array([0.1, 0.1])
    s, y = np.linspace(0, 1, len(a)), b[0]
    for _ in b:
        curve = np.exp(x[0] * s)
        jacobian = np.stack([s * curve, np.ones_like(s)], 1)
        weighted = scipy.linalg.lu_solve(factors, jacobian, check_finite=False)
        x = x + 0.5 * np.linalg.solve(weighted.T @ jacobian, weighted.T @ (y - curve - x[1]))
    return (x**2).sum()


def gaussian_process(a: T, b: T) -> T:
    """Series that each start from a part of the last one's weights, by one covariance."""
    n = b.sizes["row"]
    square = gc.dot(a, a.rename(row="other"), dim="col").rename(other="col")
    covariance = square / n + gc.eye(PAIR, shape=n)

    def step(m: T, y: T) -> tuple[T, T]:
        away = y - gc.tanh(m)
        weights = solved(covariance, away)
        return 0.5 * weights, gc.dot(away, weights)

    _, terms = gc.scan(step, along_rows(b), b, dim="time")
    return -0.5 * (terms + gc.linalg.slogdet(covariance).logabsdet).sum()


def gaussian_process_by_hand(a: Array, b: Array) -> float:
    factor = scipy.linalg.cho_factor(a @ a.T / len(a) + np.eye(len(a)), lower=True)
    size, m, total = 2 * np.log(np.diagonal(factor[0])).sum(), np.zeros(len(a)), 0.0
    for y in b:
        away = y - np.tanh(m)
        weights = scipy.linalg.cho_solve(factor, away, check_finite=False)
        m, total = 0.5 * weights, total - 0.5 * (away @ weights + size)
    return total


def lqr(a: T, b: T) -> T:
    """The cost of controls u = -a⁻¹ p of costates, which are carried back in time."""

    def step(p: T, x: T) -> tuple[T, T]:
        u = solved(a, -p)
        return 0.9 * p + x + 0.1 * u, gc.dot(u, p)

    _, terms = gc.scan(step, along_rows(b), b, dim="time", reverse=True)
    return terms.sum()


def lqr_by_hand(a: Array, b: Array) -> float:
    factors, p, total = scipy.linalg.lu_factor(a), np.zeros(len(a)), 0.0
    for x in b[::-1]:
        u = scipy.linalg.lu_solve(factors, -p, check_finite=False)
        p, total = 0.9 * p + x + 0.1 * u, total + u @ p
    return total


LOOPS = {
    "implicit Euler": Loop(implicit_euler, implicit_euler_by_hand),
    "Kalman, fixed gain": Loop(kalman_with_a_fixed_gain, kalman_by_hand),
    "Gauss-Newton": Loop(gauss_newton, gauss_newton_by_hand),
    "GP in a scan": Loop(gaussian_process, gaussian_process_by_hand),
    "LQR": Loop(lqr, lqr_by_hand),
}


def compiled(name: str) -> dict[str, gc.Compiled]:
    """The program, value alone and with its gradient, on both targets."""
    a, b = gc.tensor("a", {"row": None, "col": "row"}), gc.tensor("b", {"time": None, "row": None})
    y = LOOPS[name].ours(a, b)
    asked = {"": y, "grad ": [y, gc.grad(y, a)]}
    return {
        f"{kind}{target}": gc.compile([a, b], wanted, native=target == "native")
        for kind, wanted in asked.items()
        for target in ("numpy", "native")
    }


def inputs(size: int, steps: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    square = rng.normal(size=(size, size))
    return square @ square.T / size + 3 * np.eye(size), rng.normal(size=(steps, size))


def race(name: str, size: int, steps: int, rounds: int) -> dict[str, float]:
    """The median of each way in seconds, called in turn, once all agree."""
    a, b = inputs(size, steps)
    ways: dict[str, Callable[..., Any]] = {**compiled(name), "scipy": LOOPS[name].by_hand}
    wanted, times = ways["scipy"](a, b), dict[str, list[float]]()
    for way, function in ways.items():
        found = function(a, b)
        value = found[0] if way.startswith("grad") else found
        np.testing.assert_allclose(value, wanted, 1e-8, err_msg=f"{name} by {way}")
    for _ in range(rounds):
        for way, function in ways.items():
            start = time.perf_counter()
            function(a, b)
            times.setdefault(way, []).append(time.perf_counter() - start)
    return {way: statistics.median(some) for way, some in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=120)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    use_one_thread()
    settle_allocator()
    ways = ("numpy", "native", "scipy", "grad numpy", "grad native")
    print(f"{'':20}" + "".join(f"{way:>12}" for way in ways))
    for name in LOOPS:
        found = race(name, chosen.size, chosen.steps, chosen.rounds)
        print(f"{name:20}" + "".join(f"{seconds(found[way]):>12}" for way in ways))


if __name__ == "__main__":
    main()
