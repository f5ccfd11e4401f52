"""Derivatives of the incomplete gamma and beta functions by their parameters.

They have no closed form, but are integrals of those of the densities. With a density e^g, its
derivatives are e^g times Bell polynomials in the derivatives of g.

The formulas are those of arrays of any module that has the functions of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb
from typing import Any, TypeAlias

import numpy as np
from scipy import special

Values: TypeAlias = Any
"""An array of the module that computes."""
Derivatives: TypeAlias = Mapping[tuple[int, int], Values]
"""Mixed derivatives of a function of two variables, by their orders."""

PANELS, (PLACES, WEIGHTS) = 8, np.polynomial.legendre.leggauss(16)
FALL = 42.0
"""An integral ends where the integrand has fallen by the factor e^-42, 6e-19."""

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)
SERIES_FROM = 10
"""From here on the asymptotic series of Stirling are exact to the last digit."""


def bell(m: int, n: int, g: Derivatives) -> Values | float:
    """The (m, n)-th derivative of e^g over e^g"""
    if m < n:
        return bell(n, m, {(j, i): value for (i, j), value in g.items()})
    total: Values | float = 0.0 if m else 1.0
    for i in range(m):
        for j in range(n + 1):
            ways = comb(m - 1, i) * comb(n, j)
            total = total + ways * g[i + 1, j] * bell(m - 1 - i, n - j, g)
    return total


def slope(m: int, n: int, a: Values, b: Values, g: Derivatives) -> Values:
    """The (m, n)-th derivative by `a` and `b` of a b e^g, over e^g"""
    total = a * b * bell(m, n, g)
    if m:
        total = total + m * b * bell(m - 1, n, g)
    if n:
        total = total + n * a * bell(m, n - 1, g)
    if m and n:
        total = total + m * n * bell(m - 1, n - 1, g)
    return total


class Incomplete:
    """The functions by the modules of arrays: like `numpy`, and like `scipy.special`."""

    def __init__(self, arrays: Any, functions: Any) -> None:
        self.np, self.special = arrays, functions

    def series(self, coefficients: tuple[float, ...], a: Values) -> Values:
        """c0 / a + c1 / a^3 + c2 / a^5 + ..."""
        total = self.np.zeros_like(a)
        for c in reversed(coefficients):
            total = total / (a * a) + c
        return total / a

    def exp_rest(self, x: Values) -> Values:
        """e^x - 1 - x, exact also near 0"""
        near = self.np.clip(x, -0.25, 0.25)
        total = self.np.ones_like(x)
        for n in range(13, 2, -1):
            total = 1 + near / n * total
        far = self.np.expm1(x) - x
        return self.np.where(self.np.abs(x) < 0.25, near * near / 2 * total, far)

    def deviance(self, x: Values, a: Values) -> Values:
        """log(x / a) - (x - a) / a, exact also for `x` near `a` (Loader 2000)"""
        s, d = (x - a) / (x + a), (x - a) / a
        near = self.np.zeros_like(s)
        for n in range(23, 1, -2):
            near = near * s * s + 2 / n
        return self.np.where(self.np.abs(s) < 0.2, s * (near * s * s - d), self.np.log(x / a) - d)

    def log_less_digamma(self, x: Values, a: Values) -> Values:
        """log(x) - digamma(a + 1), exact also where `a` is large and `x` near it"""
        large = self.np.maximum(a, SERIES_FROM)
        near = self.np.log(x / large) - 1 / (2 * large) - self.series(DIGAMMA, large) / large
        return self.np.where(a < SERIES_FROM, self.np.log(x) - self.special.digamma(a + 1), near)

    def kernel(self, a: Values, x: Values) -> Values:
        """x^(a-1) e^-x / gamma(a + 1), exact also where `a` and `x` are large"""
        x = self.np.minimum(x, 1e300)  # where it is 0, as at infinity
        large = self.np.maximum(a, SERIES_FROM)
        near = large * self.deviance(x, large) - self.series(STIRLING, large)
        small, bounded = self.np.minimum(a, SERIES_FROM), self.np.minimum(x, 2000)
        half = self.np.exp(-bounded / 2)
        found: Values = self.np.where(
            a < SERIES_FROM,
            half * bounded ** (small - 1) * self.special.rgamma(small + 1) * half,
            self.np.exp(near) / self.np.sqrt(2 * self.np.pi * large) / x,
        )
        return found

    def integral(
        self,
        fall: Callable[[Values], Values],
        rate: Callable[[Values], Values],
        beyond: Values,
        factor: Callable[[Values], Values],
    ) -> Values:
        """The integral over s > 0 of factor(s) e^-fall(s); `fall` is convex, of derivative `rate`.

        It ends where Newton's method, coming down from a point `beyond`, finds the rest negligible.
        """
        end = beyond
        for _ in range(20):
            end = end - self.np.maximum(fall(end) - FALL, 0) / rate(end)
        total = self.np.zeros_like(end)
        for panel in range(PANELS):
            for place, weight in zip(PLACES, WEIGHTS, strict=True):
                s = end * ((panel + (1 + place) / 2) / PANELS)
                total += weight * self.np.exp(-fall(s)) * factor(s)
        return total * end / (2 * PANELS)

    def gamma_slope(self, n: int, a: Values) -> Callable[[Values], Values]:
        """`slope` for x^(a-1) e^-x / gamma(a) = a kernel(a, x) by log(x) - digamma(a + 1)."""
        higher = {(i, 0): -self.special.polygamma(i - 1, a + 1) for i in range(2, n + 1)}
        one = self.np.ones_like(a)
        return lambda log_x: slope(n, 0, a, one, higher | {(1, 0): log_x})

    def density_of_gamma(self, n: int, a: Values, x: Values) -> Values:
        """The n-th derivative by `a` of x^(a-1) e^-x / gamma(a)"""
        k = self.kernel(a, x)
        found = self.np.where(k == 0, 0, k * self.gamma_slope(n, a)(self.log_less_digamma(x, a)))
        return self.np.where(x < 0, self.np.nan, found)

    def integral_of_gamma(self, n: int, a: Values, x: Values) -> Values:
        """The n-th derivative of gammainc by `a`: an integral from x to 0 or to infinity."""
        shifted = (a < 1) & (x < 1)  # gammainc(a, x) = gammainc(a + 1, x) + gamma_density(a + 1, x)
        extra = self.np.where(shifted, self.density_of_gamma(n, a + 1, x), 0)
        shape = self.np.where(shifted, a + 1, a)
        side = self.np.where(x < shape, -1.0, 1.0)
        log_x, slope_at = self.log_less_digamma(x, shape), self.gamma_slope(n, shape)
        total = self.integral(
            lambda s: x * self.exp_rest(side * s) + side * (x - shape) * s,
            lambda s: side * (x * self.np.expm1(side * s) + (x - shape)),
            self.np.where(x < shape, (FALL + x) / shape, self.np.sqrt(2 * FALL / x)),
            lambda s: slope_at(log_x + side * s),
        )
        found = self.np.where(
            (x == 0) | (x == self.np.inf), 0, extra - side * x * self.kernel(shape, x) * total
        )
        return self.np.where(a < 0, self.np.nan, found)

    def beta_slope(
        self, m: int, n: int, a: Values, b: Values, s: Values
    ) -> Callable[[Values, Values], Values]:
        """`slope` for gamma(s) x^(a-1) y^(b-1) / (gamma(a) gamma(b)), where s - a - b is constant.

        It is a function of log(s x) - digamma(a + 1), and of the same of `y` and `b`.
        """
        less = self.log_less_digamma(s, s) + 1 / s  # log(s) - digamma(s)
        higher = {}
        for i in range(m + 1):
            for j in range(n + 1):
                if (order := i + j - 1) > 0:
                    own = 0 if i and j else self.special.polygamma(order, (a if i else b) + 1)
                    higher[i, j] = self.special.polygamma(order, s) - own
        return lambda x, y: slope(m, n, a, b, higher | {(1, 0): x - less, (0, 1): y - less})

    def beta_kernel(self, a: Values, b: Values, s: Values, x: Values, y: Values) -> Values:
        """gamma(s) x^(a-1) y^(b-1) / (gamma(a+1) gamma(b+1)) / s^(s-a-b)"""
        return self.kernel(a, s * x) * self.kernel(b, s * y) / self.kernel(s, s)

    def beta_derivative(
        self, m: int, n: int, i: int, j: int, a: Values, b: Values, x: Values, y: Values
    ) -> Values:
        """The (m, n)-th of gamma(a+b) x^(a-i-1) y^(b-j-1) / (gamma(a-i) gamma(b-j))"""
        s, a, b = a + b, a - i, b - j
        k = s ** float(i + j) * self.beta_kernel(a, b, s, x, y)
        logs = self.log_less_digamma(s * x, a), self.log_less_digamma(s * y, b)
        return self.np.where(k == 0, 0, k * self.beta_slope(m, n, a, b, s)(*logs))

    def density_of_beta(
        self, m: int, n: int, i: int, j: int, a: Values, b: Values, x: Values
    ) -> Values:
        """The same for y = 1 - x"""
        return self.beta_derivative(m, n, i, j, a, b, x, 1 - x)

    def betainc_below(self, m: int, n: int, a: Values, b: Values, x: Values, y: Values) -> Values:
        """The (m, n)-th derivative of betainc by `a` and `b`: `x` is below the mode, y = 1 - x."""
        shifted = a < 1  # betainc(a, b, x) = betainc(a + 1, b, x) + y beta_density(a + 1, b, x)
        extra = self.np.where(shifted, y * self.beta_derivative(m, n, -1, 0, a, b, x, y), 0)
        a = self.np.where(shifted, a + 1, a)
        s = a + b
        log_x, log_y = self.log_less_digamma(s * x, a), self.log_less_digamma(s * y, b)
        slope_at = self.beta_slope(m, n, a, b, s)

        def factor(u: Values) -> Values:
            rise = self.np.log1p(x * self.np.expm1(-u))
            return slope_at(log_x - u - rise, log_y - rise)

        total = self.integral(
            lambda u: a * u + s * self.np.log1p(x * self.np.expm1(-u)),
            lambda u: a - s * x * self.np.exp(-u) / (1 + x * self.np.expm1(-u)),
            (FALL - s * self.np.log(y)) / a,
            factor,
        )
        found: Values = extra + x * y * self.beta_kernel(a, b, s, x, y) * total
        return found

    def integral_of_beta(self, m: int, n: int, a: Values, b: Values, x: Values) -> Values:
        """The (m, n)-th derivative of betainc by `a` and `b`: an integral from x to 0 or to 1."""
        y = 1 - x
        below = x * (a + b) < a
        found = self.np.where(
            below, self.betainc_below(m, n, a, b, x, y), -self.betainc_below(n, m, b, a, y, x)
        )
        found = self.np.where((x == 0) | (x == 1), 0, found)
        return self.np.where((a < 0) | (b < 0), self.np.nan, found)


NUMPYS = Incomplete(np, special)
