"""Incomplete gamma and beta functions, their inverses, and derivatives by their parameters.

All compute in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
import jax.scipy.special as jaxs
import numpy as np
from jax import lax

from graphcore.ops.incomplete import FALL, PANELS, PLACES, WEIGHTS, Incomplete

from . import gammas
from .entries import Value
from .floats import log1p

Rule: TypeAlias = Callable[..., Value]

AT = np.concatenate([(k + (1 + PLACES) / 2) / PANELS for k in range(PANELS)])
OF = np.tile(WEIGHTS, PANELS) / (2 * PANELS)
"""Places in an integral from 0 to 1, and their weights."""
EPS = float(np.finfo(np.float64).eps)


class Functions:
    """The special functions that the formulas need."""

    digamma = staticmethod(jaxs.digamma)
    rgamma = staticmethod(gammas.rgamma)

    @staticmethod
    def polygamma(n: int, x: Value) -> Value:
        """The n-th derivative of `digamma`."""
        if n == 0:
            return jaxs.digamma(x)
        return (-1.0) ** (n + 1) * float(np.prod(np.arange(1.0, n + 1))) * jaxs.zeta(n + 1.0, x)


class Traced(Incomplete):
    """The formulas for values that JAX traces: places of an integral are steps of a loop."""

    def integral(self, fall: Rule, rate: Rule, beyond: Value, factor: Rule) -> Value:
        """The integral over s > 0 of factor(s) e^-fall(s)."""

        def nearer(_: Value, end: Value) -> Value:
            return end - jnp.maximum(fall(end) - FALL, 0) / rate(end)

        end = lax.fori_loop(0, 20, nearer, beyond)
        places, weights = jnp.asarray(AT), jnp.asarray(OF)

        def add(k: Value, total: Value) -> Value:
            s = end * places[k]
            return total + weights[k] * jnp.exp(-fall(s)) * factor(s)

        return end * lax.fori_loop(0, len(AT), add, jnp.zeros_like(end))


TRACED = Traced(jnp, Functions)


# ---- gamma


def log_gamma_of_1_and(a: Value) -> Value:
    """log gamma(1 + a), exact also near 0"""
    near = jnp.clip(a, -0.5, 0.5)
    return jnp.where(jnp.abs(a) < 0.5, gammas.near_2(near) - log1p(near), gammas.gammaln(1 + a))


def upper_by_series(a: Value, x: Value) -> Value:
    """gammaincc for small `a` and `x` up to 1.1."""
    x = jnp.minimum(x, 1.1)
    term, total = jnp.ones_like(x), jnp.zeros_like(x)
    for n in range(1, 25):
        term = term * -x / n
        total = total + term / (a + n)
    log = a * jnp.log(x) - log_gamma_of_1_and(a)
    return -jnp.expm1(log) - a * jnp.exp(log) * total


def both_of_gamma(a: Value, x: Value) -> tuple[Value, Value]:
    """gammainc and gammaincc of positive numbers; the smaller one is exact."""
    part = TRACED.integral_of_gamma(0, a, x)
    left = (x < a) | (x < 1) & (a < 1)
    lower = jnp.where(left, part, 1 + part)
    upper = jnp.where(left, 1 - part, -part)
    small = jnp.where(x <= 0.5, a * -jnp.log(x) <= 0.4, (x <= 1.1) & (0.75 * x >= a))
    upper = jnp.where(small & (x > 0), upper_by_series(a, x), upper)
    return lower, upper


STEP_FROM = 1e40
"""Of larger parameters not even neighbours of them have values other than 0 and 1."""


def with_limits_of_gamma(found: Value, a: Value, x: Value, left: float) -> Value:
    """What is found, with limits at 0 and infinity; `left` is the value at x = 0."""
    right, full = 1 - left, jnp.full_like
    step = jnp.where(x < a, left, jnp.where(x == a, 0.5, right))
    found = jnp.where(a > STEP_FROM, step, found)
    found = jnp.where((x == 0) | jnp.isinf(a), full(a, left), found)
    found = jnp.where((a == 0) | jnp.isinf(x) & ~jnp.isinf(a), full(a, right), found)
    none = (a == 0) & (x == 0) | jnp.isinf(a) & jnp.isinf(x) | (a < 0) | (x < 0)
    return jnp.where(none | jnp.isnan(a) | jnp.isnan(x), full(a, np.nan), found)


def gammainc(a: Value, x: Value) -> Value:
    return with_limits_of_gamma(both_of_gamma(a, x)[0], a, x, 0.0)


def gammaincc(a: Value, x: Value) -> Value:
    return with_limits_of_gamma(both_of_gamma(a, x)[1], a, x, 1.0)


def newton(step: Rule, start: Value) -> Value:
    """Where steps end, or are as small as rounding, at the latest after 60."""

    def goes_on(state: tuple[Value, Value, Value]) -> Value:
        count, x, change = state
        return (count < 60) & jnp.any(jnp.abs(change) > EPS * (1 + jnp.abs(x)))

    def go(state: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
        count, x, _ = state
        change = step(x)
        change = jnp.where(jnp.isfinite(change), jnp.clip(change, -50, 50), 0)
        return count + 1, x + change, change

    found: Value = lax.while_loop(goes_on, go, (0, start, jnp.full_like(start, np.inf)))[1]
    return found


def inverse_of_gamma(a: Value, p: Value, q: Value) -> Value:
    """The `x` with gammainc(a, x) = p and gammaincc(a, x) = q.

    Of the logarithm of `x`, those of both functions are concave: Newton's method comes from one
    side after the first step.
    """
    upper = p > 0.9
    z = jnp.where(p < 0.5, jaxs.ndtri(p), -jaxs.ndtri(q))
    cubed = 1 - 1 / (9 * a) + z / (3 * jnp.sqrt(a))
    middle = jnp.log(a) + 3 * jnp.log(jnp.maximum(cubed, 1e-3))
    low = (jnp.log(p) + log_gamma_of_1_and(a)) / a
    high = jnp.log(jnp.maximum(-jnp.log(q) - gammas.gammaln(a), 0.1))
    start = jnp.where((a > 1) & (cubed > 0.2), middle, jnp.where(upper, high, low))

    def step(t: Value) -> Value:
        x = jnp.exp(t)
        lower, above = both_of_gamma(a, x)
        density = x * a * TRACED.kernel(a, x)
        down = -(jnp.log(lower) - jnp.log(p)) * lower / density
        down = jnp.where(lower == 0, 1 / jnp.sqrt(a), down)  # too small for a float
        up = (jnp.log(above) - jnp.log(q)) * above / density
        up = jnp.where(above == 0, -0.05 / jnp.sqrt(a), up)  # as well
        return jnp.where(upper, up, down)

    found = jnp.exp(newton(step, jnp.maximum(start, -700)))
    return jnp.where(low < -600, jnp.exp(low), found)  # there a power of `x` is all


def with_ends(found: Value, a: Value, p: Value, low: float) -> Value:
    """0 for the probability `low`, infinity for the other one."""
    nan = jnp.full_like(p, np.nan)
    found = jnp.where((p >= 0) & (p <= 1) & (a > 0) & jnp.isfinite(a), found, nan)
    found = jnp.where(p == low, jnp.zeros_like(p), jnp.where(p == 1 - low, jnp.inf, found))
    return jnp.where(a >= 0, found, nan)


def gammaincinv(a: Value, p: Value) -> Value:
    return with_ends(inverse_of_gamma(a, p, 1 - p), a, p, 0.0)


def gammainccinv(a: Value, q: Value) -> Value:
    return with_ends(inverse_of_gamma(a, 1 - q, q), a, q, 1.0)


# ---- beta


def fraction_of_beta(a: Value, b: Value, x: Value) -> Value:
    """The continued fraction of betainc, by the method of Lentz."""
    s, one = a + b, jnp.ones_like(x)

    def go(state: tuple[Value, ...]) -> tuple[Value, ...]:
        m, c, d, h, _ = state
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + even * d)
        c = 1 + even / c
        h = h * d * c
        odd = -(a + m) * (s + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + odd * d)
        c = 1 + odd / c
        return m + 1, c, d, h * d * c, jnp.abs(d * c - 1)

    def goes_on(state: tuple[Value, ...]) -> Value:
        return (state[0] < 5000) & jnp.any(state[4] > EPS)

    d = 1 / (1 - s * x / (a + 1))
    found: Value = lax.while_loop(goes_on, go, (1.0, one, d, d, one))[3]
    return found


def both_of_beta(a: Value, b: Value, x: Value, y: Value) -> tuple[Value, Value]:
    """betainc and betaincc for y = 1 - x, between 0 and 1; the smaller one is exact."""
    right = x > (a + 1) / (a + b + 2)
    p, q = jnp.where(right, b, a), jnp.where(right, a, b)
    u, v = jnp.where(right, y, x), jnp.where(right, x, y)
    part = u * v * q * TRACED.beta_kernel(p, q, p + q, u, v) * fraction_of_beta(p, q, u)
    return jnp.where(right, 1 - part, part), jnp.where(right, part, 1 - part)


def with_limits_of_beta(found: Value, a: Value, b: Value, x: Value, left: float) -> Value:
    """What is found, with limits at 0 and infinity; `left` is the value at x = 0."""
    full = jnp.full_like
    found = jnp.where((x == 0) | (b == 0) | jnp.isinf(a), full(a, left), found)
    found = jnp.where((x == 1) | (a == 0) | jnp.isinf(b), full(a, 1 - left), found)
    found = jnp.where((x == 0) & ((a == 0) | jnp.isinf(b)), full(a, left), found)
    none = (a == 0) & (b == 0) | jnp.isinf(a) & jnp.isinf(b)
    none = none | ~((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1))
    return jnp.where(none, full(a, np.nan), found)


def betainc(a: Value, b: Value, x: Value) -> Value:
    return with_limits_of_beta(both_of_beta(a, b, x, 1 - x)[0], a, b, x, 0.0)


def betaincc(a: Value, b: Value, x: Value) -> Value:
    return with_limits_of_beta(both_of_beta(a, b, x, 1 - x)[1], a, b, x, 1.0)


def inverse_of_beta(a: Value, b: Value, p: Value, q: Value) -> Value:
    """The `x` with betainc(a, b, x) = p and betaincc(a, b, x) = q.

    Of log(x / (1 - x)) the logarithm of the function is concave: Newton's method comes from the
    left, from where the function is a power of `x`.
    """
    swap = p > 0.5
    a, b = jnp.where(swap, b, a), jnp.where(swap, a, b)
    log_p = jnp.log(jnp.where(swap, q, p))
    start = (log_p + jnp.log(a) + gammas.betaln(a, b)) / a

    def step(t: Value) -> Value:
        x, y = 1 / (1 + jnp.exp(-t)), 1 / (1 + jnp.exp(t))
        lower, _ = both_of_beta(a, b, x, y)
        density = x * y * a * b * TRACED.beta_kernel(a, b, a + b, x, y)
        change = -(jnp.log(lower) - log_p) * lower / density
        return jnp.where(lower == 0, 1 / jnp.sqrt(a + b), change)  # too small for a float

    t = newton(step, jnp.clip(start, -740, 740))
    return 1 / (1 + jnp.exp(jnp.where(swap, t, -t)))


def between(found: Value, a: Value, b: Value, p: Value, low: float) -> Value:
    """0 for the probability `low`, 1 for the other one."""
    found = jnp.where(p == low, jnp.zeros_like(p), jnp.where(p == 1 - low, 1.0, found))
    return jnp.where((a > 0) & (b > 0) & (p >= 0) & (p <= 1), found, jnp.full_like(p, np.nan))


def betaincinv(a: Value, b: Value, p: Value) -> Value:
    return between(inverse_of_beta(a, b, p, 1 - p), a, b, p, 0.0)


def betainccinv(a: Value, b: Value, q: Value) -> Value:
    return between(inverse_of_beta(a, b, 1 - q, q), a, b, q, 1.0)


FUNCTIONS: dict[str, Rule] = {
    "gammainc": gammainc,
    "gammaincc": gammaincc,
    "gammaincinv": gammaincinv,
    "gammainccinv": gammainccinv,
    "betainc": betainc,
    "betaincc": betaincc,
    "betaincinv": betaincinv,
    "betainccinv": betainccinv,
}
"""Functions by name."""


def digamma_step(n: int, x: Value, m: Value) -> Value:
    return Functions.polygamma(n, x + m) - Functions.polygamma(n, x)


BY_ORDERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "gamma_density": (1, TRACED.density_of_gamma),
    "gammainc_by": (1, TRACED.integral_of_gamma),
    "beta_density": (4, TRACED.density_of_beta),
    "betainc_by": (2, TRACED.integral_of_beta),
    "digamma_step": (1, digamma_step),
}
"""Functions of so many constant whole numbers, and of others."""
