"""The gamma function, and functions written by it, to more digits than JAX has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import jax.scipy.special as jaxs
import numpy as np
import scipy.special
from jax import lax

from graphcore.ops.incomplete import SERIES_FROM, STIRLING

from .entries import Value
from .floats import log1p

Rule: TypeAlias = Callable[..., Value]

EULER = float(np.euler_gamma)
ZETA = [float(z) for z in scipy.special.zetac(np.arange(2.0, 32.0))]
"""zeta(k) - 1 from k = 2 on."""


def is_pole(x: Value) -> Value:
    """Whether `x` is 0, -1, -2, ..."""
    return (x <= 0) & (x == jnp.floor(x))


def sin_pi(x: Value) -> Value:
    """sin(pi x), exact also where `x` is large"""
    n = jnp.rint(x)
    rest = jnp.where(n == 0, x, jnp.where(jnp.isinf(x), jnp.full_like(x, np.nan), x - n))
    even = n / 2 == jnp.rint(n / 2)
    return jnp.where(even, 1, -1) * jnp.sin(math.pi * rest)


def stirling(x: Value) -> Value:
    """log gamma(x) less (x - 1/2) log(x) - x + log(2 pi) / 2, for `x` from `SERIES_FROM` on."""
    over = 1 / x
    total = jnp.zeros_like(x)
    for c in reversed(STIRLING):
        total = total * over * over + c
    return total * over


def largest(x: Value) -> float:
    """From where on gamma is infinite in the dtype."""
    return 171.62437695630272 if x.dtype == np.float64 else 35.0401


def gamma_above(x: Value) -> Value:
    """gamma(x) for `x` from 1/2 on: of a larger number by Stirling's series, and divided."""
    high, product = x, jnp.ones_like(x)
    for _ in range(SERIES_FROM):
        low = high < SERIES_FROM
        product = jnp.where(low, product * high, product)
        high = jnp.where(low, high + 1, high)
    root = jnp.power(high, high / 2 - 0.25)
    found = root * jnp.exp(stirling(high) - high) * root * math.sqrt(2 * math.pi) / product
    return jnp.where(x > largest(x), jnp.full_like(x, np.inf), found)


def gamma(x: Value) -> Value:
    above = gamma_above(jnp.where(x < 0.5, 1 - x, x))
    found = jnp.where(x < 0.5, math.pi / (sin_pi(x) * above), above)
    return jnp.where(is_pole(x) & (x != 0), jnp.full_like(x, np.nan), found)


def rgamma(x: Value) -> Value:
    above = gamma_above(jnp.where(x < 0.5, 1 - x, x))
    found = jnp.where(x < 0.5, sin_pi(x) * above / math.pi, 1 / above)
    return jnp.where(is_pole(x), jnp.zeros_like(x), found)


def near_2(w: Value) -> Value:
    """log gamma(2 + w) for |w| up to 1/2"""
    total = jnp.zeros_like(w)
    for k in range(len(ZETA) + 1, 1, -1):
        total = total * -w + ZETA[k - 2] / k
    return w * (1 - EULER + w * total)


def gammaln(x: Value) -> Value:
    """Near 1 and 2, where it is 0, by series there; else of numbers near 2, or by Stirling's."""
    y = jnp.where(x < -0.5, 1 - x, x)
    w, product = y, jnp.ones_like(y)
    for _ in range(SERIES_FROM):
        high = w > 2.5
        w = jnp.where(high, w - 1, w)
        product = jnp.where(high, product * w, product)
    base = jnp.where(y < 0.5, 0, jnp.where(y < 1.5, 1, 2))
    w = jnp.clip(w - base.astype(x.dtype), -0.5, 0.5)
    found = near_2(w) + jnp.log(product)
    found = jnp.where(y < 1.5, found - log1p(w), found)
    found = jnp.where(y < 0.5, found - jnp.log(jnp.abs(x)), found)
    large = jnp.maximum(y, SERIES_FROM)
    half = math.log(2 * math.pi) / 2
    far = (large - 0.5) * (jnp.log(large) - 1) + (half - 0.5) + stirling(large)
    found = jnp.where(y < SERIES_FROM, found, far)
    mirrored = math.log(math.pi) - jnp.log(jnp.abs(sin_pi(x))) - found
    found = jnp.where(x < -0.5, mirrored, found)
    found = jnp.where(is_pole(x), jnp.full_like(x, np.inf), found)
    return jnp.where(jnp.isinf(x), x, found)


def loggamma(x: Value) -> Value:
    """nan where gamma is negative, and at its poles but 0."""
    return jnp.where(x < 0, jnp.full_like(x, np.nan), gammaln(x))


# ---- quotients


def log_rise(a: Value, m: Value) -> Value:
    """log gamma(a + m) - log gamma(a), of numbers above `SERIES_FROM`"""
    a = jnp.maximum(a, SERIES_FROM)
    b = jnp.maximum(a + m, SERIES_FROM)
    far = (a > 1e17) & (jnp.abs(m) < 1e-17 * a)  # the quotient may be no float
    first = jnp.where(far, m, (a - 0.5) * log1p(m / a))
    return first + m * (jnp.log(b) - 1) + (stirling(b) - stirling(a))


def is_near_pole(x: Value) -> Value:
    """Whether `x` is a pole, and no number so large that all are whole."""
    return is_pole(x) & (jnp.abs(x) < 1e13)


def poch(a: Value, m: Value) -> Value:
    """As Cephes has it: `m` is brought to within 1 of 0 by factors, the rest is a quotient."""

    def goes_on(m: Value, r: Value) -> Value:
        return (jnp.abs(m) >= 1) & (a + m != (m >= 1)) & jnp.isfinite(r) & (r != 0)

    def step(state: tuple[Value, Value]) -> tuple[Value, Value]:
        m, r = state
        on, up = goes_on(m, r), m >= 1
        after = jnp.where(up, r * (a + (m - 1)), r / (a + m))
        return jnp.where(on, m - jnp.sign(m), m), jnp.where(on, after, r)

    m, r = lax.while_loop(lambda state: jnp.any(goes_on(*state)), step, (m, jnp.ones_like(a)))
    signs = jaxs.gammasgn(a + m) * jaxs.gammasgn(a)
    found = jnp.exp(gammaln(a + m) - gammaln(a)) * signs
    large = jnp.where(a == np.inf, jnp.power(a, m), jnp.exp(log_rise(a, m)))
    found = r * jnp.where((a > SERIES_FROM + 1) & (jnp.abs(m) <= 1), large, found)
    found = jnp.where(~is_near_pole(a + m) & is_near_pole(a), jnp.zeros_like(a), found)
    endless = is_near_pole(a + m) & ~is_near_pole(a) & (a + m != m)
    found = jnp.where(endless, jnp.full_like(a, np.inf), found)
    return jnp.where(m == 0, r, found)


def larger_first(a: Value, b: Value) -> tuple[Value, Value]:
    swap = jnp.abs(a) < jnp.abs(b)
    return jnp.where(swap, b, a), jnp.where(swap, a, b)


class Pole(NamedTuple):
    """Whether the first of two numbers is a pole that the other cancels.

    Then beta is that of the number `instead`, with a sign.
    """

    cancels: Value
    instead: Value
    sign: Value


def at_pole(a: Value, b: Value) -> Pole:
    cancels = is_pole(a) & (b == jnp.floor(b)) & (1 - a - b > 0)
    even = b / 2 == jnp.floor(b / 2)
    return Pole(cancels, 1 - a - b, jnp.where(even, jnp.ones_like(b), -jnp.ones_like(b)))


def beta_of_two(a: Value, b: Value) -> Value:
    """Away from poles."""
    a, b = larger_first(a, b)
    signs = jaxs.gammasgn(a) * jaxs.gammasgn(b) * jaxs.gammasgn(a + b)
    far = signs * jnp.exp(log_beta_of_two(a, b))
    p, q, r = gamma(a), gamma(b), rgamma(a + b)
    first = jnp.abs(jnp.abs(p) - 1 / jnp.abs(r)) > jnp.abs(jnp.abs(q) - 1 / jnp.abs(r))
    near = jnp.where(first, q * r * p, p * r * q)
    most = largest(a)
    large = (jnp.abs(a + b) > most) | (jnp.abs(a) > most) | (jnp.abs(b) > most)
    return jnp.where(large, far, near)


def log_beta_of_two(a: Value, b: Value) -> Value:
    a, b = larger_first(a, b)
    plain = gammaln(a) - gammaln(a + b)
    large = (a > SERIES_FROM) & (a + b > SERIES_FROM)
    found = gammaln(b) + jnp.where(large, -log_rise(a, b), plain)
    return jnp.where(a == np.inf, jnp.where(b > 0, -a, jnp.where(b < 0, a, b * a)), found)


def with_poles(a: Value, b: Value, function: Rule, signed: bool) -> Value:
    """A function of two numbers, with a sign: infinite at poles of gamma, unless they cancel."""
    one, other = at_pole(a, b), at_pole(b, a)
    first, second = one.cancels, ~is_pole(a) & other.cancels
    lost = is_pole(a) & ~first | ~is_pole(a) & is_pole(b) & ~second
    x = jnp.where(first, one.instead, jnp.where(second, other.instead, a))
    y = jnp.where(second, a, b)
    sign = jnp.where(first, one.sign, jnp.where(second, other.sign, jnp.ones_like(a)))
    sign = sign if signed else jnp.ones_like(a)
    found = sign * jnp.where(is_pole(x) | is_pole(y), np.inf, function(x, y))
    return jnp.where(lost, jnp.full_like(a, np.inf), found)


def beta(a: Value, b: Value) -> Value:
    return with_poles(a, b, beta_of_two, signed=True)


def betaln(a: Value, b: Value) -> Value:
    return with_poles(a, b, log_beta_of_two, signed=False)


FACTORS = 20
"""Fewer whole numbers are taken of others by products."""


def product_of_quotients(n: Value, k: Value) -> Value:
    """`n` choose `k` for k = 0, ..., FACTORS - 1"""
    found = jnp.ones_like(n)
    for i in range(1, FACTORS):
        found = jnp.where(i <= k, found * (i - k + n) / i, found)
    return found


def binom(n: Value, k: Value) -> Value:
    """As SciPy has it: products for few whole `k`, else by beta, with care where one is large."""
    whole = k == jnp.floor(k)
    mirrored = (n == jnp.floor(n)) & (k > jnp.floor(n) / 2) & (n > 0)
    few = jnp.where(mirrored, n - k, k)
    found = 1 / (n + 1) / beta(1 + n - k, 1 + k)
    large = jnp.exp(-betaln(1 + n - k, 1 + k) - jnp.log(n + 1))
    found = jnp.where((n >= 1e10 * k) & (k > 0), large, found)
    top, size = gamma(1 + n), jnp.abs(k)
    top = (top / size + top * n / (2 * k * k)) / (math.pi * jnp.power(size, n))
    right = top * sin_pi(k - n)
    left = jnp.where(k == jnp.floor(k), jnp.zeros_like(k), top * sin_pi(k))
    found = jnp.where(k > 1e8 * jnp.abs(n), jnp.where(k > 0, right, left), found)
    product = whole & (few >= 0) & (few < FACTORS)
    found = jnp.where(product, product_of_quotients(n, few), found)
    no_number = (n < 0) & (n == jnp.floor(n)) | jnp.isnan(n)
    return jnp.where(no_number, jnp.full_like(n, np.nan), found)


FUNCTIONS: dict[str, Rule] = {
    "gamma": gamma,
    "rgamma": rgamma,
    "gammaln": gammaln,
    "loggamma": loggamma,
}
"""Functions by name."""
OF_TWO: dict[str, Rule] = {"poch": poch, "beta": beta, "betaln": betaln, "binom": binom}
"""Functions whose parts may be no floats of a small dtype while their values are."""
