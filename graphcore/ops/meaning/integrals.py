"""What derivatives of the incomplete gamma and beta functions by their parameters mean.

Their arguments are orders, shifts, parameters and a place, each an array of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import binom, gamma, polygamma, psi, rgamma

Array = np.ndarray[Any, Any]


def reading(orders: int) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """The function in the dtype of its operands, of which the first so many are whole numbers."""

    def register(function: Callable[..., Array]) -> Callable[..., Array]:
        def run(*xs: Array) -> Array:
            shape, dtype = np.broadcast_shapes(*[x.shape for x in xs]), np.result_type(*xs)
            if 0 in shape:
                return np.zeros(shape, dtype)
            whole = [int(x.flat[0]) for x in xs[:orders]]
            found = function(*whole, *[x.astype(np.float64) for x in xs[orders:]])
            return np.asarray(found, dtype).reshape(shape)

        return run

    return register


def ratios(orders: int, slopes: list[Any]) -> list[Any]:
    """The derivatives of e^g over e^g up to an order, given g', g'', ..."""
    found = [1.0]
    for n in range(orders):
        found.append(sum(binom(n, k) * slopes[k] * found[n - k] for k in range(n + 1)))
    return found


def psis(orders: int, a: Array) -> list[Array]:
    """The derivatives of log gamma."""
    return [psi(a), *[polygamma(k, a) for k in range(1, orders)]]


def power(n: int, a: Array, x: Array) -> Array:
    """The n-th derivative by a of x^(a-1) / gamma(a), from that at a + 1 where gamma has a pole."""
    if n < 0:
        return np.zeros_like(a * x)
    slopes = [-p for p in psis(n + 1, a)]
    slopes[0] = slopes[0] + np.log(x)
    found: Array = x ** (a - 1) * rgamma(a) * ratios(n, slopes)[n]
    if (a <= 0).any():
        upper = a * power(n, a + 1, x) + n * power(n - 1, a + 1, x)
        found = np.where(a <= 0, upper / x, found)
    return found


def beta_power(m: int, n: int, i: int, j: int, a: Array, b: Array, x: Array, y: Array) -> Array:
    """By the rule of Leibniz for gamma(a + b), x^(a-i-1) / gamma(a - i) and the same of y."""
    gammas = [gamma(a + b) * ratio for ratio in ratios(m + n, psis(m + n + 1, a + b))]
    return np.asarray(
        sum(
            binom(m, p)
            * binom(n, q)
            * gammas[p + q]
            * power(m - p, a - i, x)
            * power(n - q, b - j, y)
            for p in range(m + 1)
            for q in range(n + 1)
        )
    )


def below(function: Callable[[Array], Array], x: Array) -> Array:
    """The integral from 0 to x over t = x e^-s, s = e^(pi/2 sinh r) (Takahasi & Mori 1974)"""
    r, step = np.linspace(-4, 4, 241, retstep=True)
    s = np.exp(np.pi / 2 * np.sinh(r))
    weights = step * s * np.pi / 2 * np.cosh(r)
    total = np.zeros_like(x)
    for place, weight in zip(s[s < 300], weights[s < 300], strict=True):
        t = x * np.exp(-place)
        total = total + weight * t * function(t)
    return total


@reading(orders=1)
def gamma_density(n: int, a: Array, x: Array) -> Array:
    return power(n, a, x) * np.exp(-x)


@reading(orders=1)
def gammainc_by(n: int, a: Array, x: Array) -> Array:
    return below(lambda t: power(n, a, t) * np.exp(-t), x)


@reading(orders=4)
def beta_density(m: int, n: int, i: int, j: int, a: Array, b: Array, x: Array) -> Array:
    return beta_power(m, n, i, j, a, b, x, 1 - x)


@reading(orders=2)
def betainc_by(m: int, n: int, a: Array, b: Array, x: Array) -> Array:
    return below(lambda t: beta_power(m, n, 0, 0, a, b, t, 1 - t), x)
