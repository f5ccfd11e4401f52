"""Derivatives of the incomplete gamma and beta functions by their parameters.

They have no closed form, but are integrals of those of the densities. With a density e^g, its
derivatives are e^g times Bell polynomials in the derivatives of g.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[Any]
Derivatives: TypeAlias = Mapping[tuple[int, int], Array]
"""Mixed derivatives of a function of two variables, by their orders."""

PANELS, (PLACES, WEIGHTS) = 8, np.polynomial.legendre.leggauss(16)
FALL = 42.0
"""An integral ends where the integrand has fallen by the factor e^-42, 6e-19."""

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
SERIES_FROM = 10
"""From here on the asymptotic series of Stirling are exact to the last digit."""


def series(coefficients: tuple[float, ...], a: Array) -> Array:
    """c0 / a + c1 / a^3 + c2 / a^5 + ..."""
    total = np.zeros_like(a)
    for c in reversed(coefficients):
        total = total / (a * a) + c
    return total / a


def deviance(x: Array, a: Array) -> Array:
    """log(x / a) - (x - a) / a, exact also for `x` near `a` (Loader 2000)"""
    s, d = (x - a) / (x + a), (x - a) / a
    near = np.zeros_like(s)
    for n in range(23, 1, -2):
        near = near * s * s + 2 / n
    return np.where(np.abs(s) < 0.2, s * (near * s * s - d), np.log(x / a) - d)


def log_less_digamma(x: Array, a: Array) -> Array:
    """log(x) - digamma(a + 1), exact also where `a` is large and `x` near it"""
    large = np.maximum(a, SERIES_FROM)
    near = np.log(x / large) - 1 / (2 * large) - series(DIGAMMA, large) / large
    return np.where(a < SERIES_FROM, np.log(x) - special.digamma(a + 1), near)


def kernel(a: Array, x: Array) -> Array:
    """x^(a-1) e^-x / gamma(a + 1), exact also where `a` and `x` are large"""
    x = np.minimum(x, 1e300)  # where it is 0, as at infinity
    large = np.maximum(a, SERIES_FROM)
    near = large * deviance(x, large) - series(STIRLING, large)
    small, bounded = np.minimum(a, SERIES_FROM), np.minimum(x, 2000)
    half = np.exp(-bounded / 2)
    found: Array = np.where(
        a < SERIES_FROM,
        half * bounded ** (small - 1) * special.rgamma(small + 1) * half,
        np.exp(near) / np.sqrt(2 * np.pi * large) / x,
    )
    return found


def bell(m: int, n: int, g: Derivatives) -> Array | float:
    """The (m, n)-th derivative of e^g over e^g"""
    if m < n:
        return bell(n, m, {(j, i): value for (i, j), value in g.items()})
    total: Array | float = 0.0 if m else 1.0
    for i in range(m):
        for j in range(n + 1):
            ways = comb(m - 1, i) * comb(n, j)
            total = total + ways * g[i + 1, j] * bell(m - 1 - i, n - j, g)
    return total


def slope(m: int, n: int, a: Array, b: Array, g: Derivatives) -> Array:
    """The (m, n)-th derivative by `a` and `b` of a b e^g, over e^g"""
    total = a * b * bell(m, n, g)
    if m:
        total = total + m * b * bell(m - 1, n, g)
    if n:
        total = total + n * a * bell(m, n - 1, g)
    if m and n:
        total = total + m * n * bell(m - 1, n - 1, g)
    return total


def integral(
    fall: Callable[[Array], Array],
    rate: Callable[[Array], Array],
    beyond: Array,
    factor: Callable[[Array], Array],
) -> Array:
    """The integral over s > 0 of factor(s) e^-fall(s), for a convex `fall` of derivative `rate`.

    It ends where Newton's method, coming down from a point `beyond`, finds the rest negligible.
    """
    end = beyond
    for _ in range(20):
        end = end - np.maximum(fall(end) - FALL, 0) / rate(end)
    total = np.zeros_like(end)
    for panel in range(PANELS):
        for place, weight in zip(PLACES, WEIGHTS, strict=True):
            s = end * ((panel + (1 + place) / 2) / PANELS)
            total += weight * np.exp(-fall(s)) * factor(s)
    return total * end / (2 * PANELS)


def gamma_slope(n: int, a: Array) -> Callable[[Array], Array]:
    """`slope` for x^(a-1) e^-x / gamma(a) = a kernel(a, x), as of log(x) - digamma(a + 1)."""
    higher = {(i, 0): -special.polygamma(i - 1, a + 1) for i in range(2, n + 1)}
    one = np.ones_like(a)
    return lambda log_x: slope(n, 0, a, one, higher | {(1, 0): log_x})


def density_of_gamma(n: int, a: Array, x: Array) -> Array:
    """The n-th derivative by `a` of x^(a-1) e^-x / gamma(a)"""
    k = kernel(a, x)
    found = np.where(k == 0, 0, k * gamma_slope(n, a)(log_less_digamma(x, a)))
    return np.where(x < 0, np.nan, found)


def integral_of_gamma(n: int, a: Array, x: Array) -> Array:
    """The n-th derivative of gammainc by `a`: an integral from x to 0 or to infinity."""
    shifted = (a < 1) & (x < 1)  # gammainc(a, x) = gammainc(a + 1, x) + gamma_density(a + 1, x)
    extra = np.where(shifted, density_of_gamma(n, a + 1, x), 0)
    shape = np.where(shifted, a + 1, a)
    side = np.where(x < shape, -1.0, 1.0)
    log_x, slope_at = log_less_digamma(x, shape), gamma_slope(n, shape)
    total = integral(
        lambda s: x * np.expm1(side * s) - side * shape * s,
        lambda s: side * (x * np.exp(side * s) - shape),
        np.where(x < shape, (FALL + x) / shape, np.sqrt(2 * FALL / x)),
        lambda s: slope_at(log_x + side * s),
    )
    found = np.where((x == 0) | (x == np.inf), 0, extra - side * x * kernel(shape, x) * total)
    return np.where(a < 0, np.nan, found)


def beta_slope(m: int, n: int, a: Array, b: Array, s: Array) -> Callable[[Array, Array], Array]:
    """`slope` for gamma(s) x^(a-1) y^(b-1) / (gamma(a) gamma(b)), where s - a - b is constant.

    It is a function of log(s x) - digamma(a + 1), and of the same of `y` and `b`.
    """
    less = log_less_digamma(s, s) + 1 / s  # log(s) - digamma(s)
    higher = {}
    for i in range(m + 1):
        for j in range(n + 1):
            if (order := i + j - 1) > 0:
                own = 0 if i and j else special.polygamma(order, (a if i else b) + 1)
                higher[i, j] = special.polygamma(order, s) - own
    return lambda x, y: slope(m, n, a, b, higher | {(1, 0): x - less, (0, 1): y - less})


def beta_kernel(a: Array, b: Array, s: Array, x: Array, y: Array) -> Array:
    """gamma(s) x^(a-1) y^(b-1) / (gamma(a+1) gamma(b+1)) / s^(s-a-b)"""
    return kernel(a, s * x) * kernel(b, s * y) / kernel(s, s)


def beta_derivative(
    m: int, n: int, i: int, j: int, a: Array, b: Array, x: Array, y: Array
) -> Array:
    """The (m, n)-th of gamma(a+b) x^(a-i-1) y^(b-j-1) / (gamma(a-i) gamma(b-j))"""
    s, a, b = a + b, a - i, b - j
    k = s ** float(i + j) * beta_kernel(a, b, s, x, y)
    logs = log_less_digamma(s * x, a), log_less_digamma(s * y, b)
    return np.where(k == 0, 0, k * beta_slope(m, n, a, b, s)(*logs))


def density_of_beta(m: int, n: int, i: int, j: int, a: Array, b: Array, x: Array) -> Array:
    """The same for y = 1 - x"""
    return beta_derivative(m, n, i, j, a, b, x, 1 - x)


def betainc_below(m: int, n: int, a: Array, b: Array, x: Array, y: Array) -> Array:
    """The (m, n)-th derivative of betainc by `a` and `b`, for an `x` below the mode; y = 1 - x"""
    shifted = a < 1  # betainc(a, b, x) = betainc(a + 1, b, x) + y beta_density(a + 1, b, x)
    extra = np.where(shifted, y * beta_derivative(m, n, -1, 0, a, b, x, y), 0)
    a = np.where(shifted, a + 1, a)
    s = a + b
    log_x, log_y = log_less_digamma(s * x, a), log_less_digamma(s * y, b)
    slope_at = beta_slope(m, n, a, b, s)

    def factor(u: Array) -> Array:
        rise = np.log1p(x * np.expm1(-u))
        return slope_at(log_x - u - rise, log_y - rise)

    total = integral(
        lambda u: a * u + s * np.log1p(x * np.expm1(-u)),
        lambda u: a - s * x * np.exp(-u) / (1 + x * np.expm1(-u)),
        (FALL - s * np.log(y)) / a,
        factor,
    )
    found: Array = extra + x * y * beta_kernel(a, b, s, x, y) * total
    return found


def integral_of_beta(m: int, n: int, a: Array, b: Array, x: Array) -> Array:
    """The (m, n)-th derivative of betainc by `a` and `b`: an integral from x to 0 or to 1."""
    y = 1 - x
    below = x * (a + b) < a
    found = np.where(below, betainc_below(m, n, a, b, x, y), -betainc_below(n, m, b, a, y, x))
    found = np.where((x == 0) | (x == 1), 0, found)
    return np.where((a < 0) | (b < 0), np.nan, found)
