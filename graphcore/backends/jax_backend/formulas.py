"""Special functions in a few elementary ones, at their edges as SciPy has them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

import jax.numpy as jnp
import jax.scipy.special as jaxs
import numpy as np
from scipy.special import factorial, polygamma

from . import complexes
from .entries import Value
from .floats import KEPT, hypot, log1p

Rule: TypeAlias = Callable[..., Value]


def is_complex(x: Value) -> bool:
    return bool(x.dtype.kind == "c")


def over(x: Value, y: Value) -> Value:
    """x / y, and 0 where `y` is 0."""
    return jnp.where(y == 0, jnp.zeros_like(x), x / jnp.where(y == 0, jnp.ones_like(y), y))


# ---- the logistic function and its relatives


def sigmoid(x: Value) -> Value:
    if is_complex(x):
        return complexes.reciprocal(1 + complexes.exp(-x))
    power = jnp.exp(-jnp.abs(x))
    return jnp.where(x < 0, power, jnp.ones_like(x)) / (1 + power)


def softplus(x: Value) -> Value:
    return jnp.maximum(x, 0) + log1p(jnp.exp(-jnp.abs(x)))


def log1mexp(x: Value) -> Value:
    """log(-(e^x - 1)) near 0, log(1 - e^x) below."""
    return jnp.where(x > -np.log(2), jnp.log(-jnp.expm1(x)), log1p(-jnp.exp(x)))


def logit(x: Value) -> Value:
    """log(x / (1 - x)); near 1/2 of the distance from there."""
    s = 2 * (x - 0.5)
    near = log1p(s) - log1p(-s)
    return jnp.where(jnp.abs(s) < 0.5, near, jnp.log(x / (1 - x)))


def sigmoid_slope(x: Value, y: Value) -> Value:
    """y (1 - y), and y^2 e^-x where 1 - y loses digits: both are computed at all places"""
    return jnp.where(x > 1, y * y * jnp.exp(-x), y * (1 - y))


def tanh_slope(x: Value, y: Value) -> Value:
    """1 - y^2, and (1 + |y|)^2 e^(-2|x|) where 1 - |y| loses digits"""
    far = jnp.square(1 + jnp.abs(y)) * jnp.exp(-2 * jnp.abs(x))
    return jnp.where(jnp.abs(x) > 0.5, far, (1 - y) * (1 + y))


# ---- products with logarithms


def times_log(log: Rule) -> Rule:
    """x log(y), and 0 where `x` is 0, unless `y` is nan."""

    def run(x: Value, y: Value) -> Value:
        product = complexes.multiply if is_complex(x) else jnp.multiply
        return jnp.where((x == 0) & ~jnp.isnan(y), jnp.zeros_like(x), product(x, log(y)))

    return run


def either(real: Rule, of_complex: Rule) -> Rule:
    """A function of real numbers, and one of complex numbers."""
    return lambda x: of_complex(x) if is_complex(x) else real(x)


def entr(x: Value) -> Value:
    found = jnp.where(x == 0, jnp.zeros_like(x), -x * jnp.log(x))
    return jnp.where(x < 0, jnp.full_like(x, -np.inf), found)


def log_ratio(x: Value, y: Value) -> Value:
    """log(x / y) of numbers above 0, exact also where they are near each other."""
    gap = (x - y) / y
    near = jnp.abs(gap) < 0.5
    ratio = x / y
    fits = (ratio > np.finfo(x.dtype).tiny) & jnp.isfinite(ratio)
    far = jnp.where(fits, jnp.log(ratio), jnp.log(x) - jnp.log(y))
    return jnp.where(near, log1p(jnp.where(near, gap, jnp.zeros_like(gap))), far)


def relative(x: Value, y: Value, found: Value, at_0: Value) -> Value:
    """What is found above 0; infinite below."""
    found = jnp.where((x > 0) & (y > 0), found, jnp.full_like(x, np.inf))
    found = jnp.where((x == 0) & (y >= 0), at_0, found)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), jnp.full_like(x, np.nan), found)


def rel_entr(x: Value, y: Value) -> Value:
    return relative(x, y, x * log_ratio(x, y), jnp.zeros_like(x))


def log_gap(s: Value) -> Value:
    """log(1 + s) - s for |s| < 0.4, exact also near 0: a series in r = s / (2 + s)."""
    r = s / (2 + s)
    total = jnp.zeros_like(s)
    for n in range(35, 1, -2):
        total = total * r * r + np.array(2 / n, s.dtype)
    return r * (total * r * r - s)


def kl_div(x: Value, y: Value) -> Value:
    """x log(x / y) - x + y, which is -x (log(1 + s) - s) for s = (y - x) / x"""
    s = (y - x) / x
    near = jnp.abs(s) < 0.4
    found = -x * log_gap(jnp.where(near, s, jnp.zeros_like(s)))
    return relative(x, y, jnp.where(near, found, x * log_ratio(x, y) - x + y), y)


# ---- differences


def exprel(x: Value) -> Value:
    found = over(jnp.expm1(x), x)
    found = jnp.where(x == np.inf, x, found)
    return jnp.where(x == 0, jnp.ones_like(x), found)


def cosm1(x: Value) -> Value:
    half = jnp.sin(x / 2)
    return 0 - 2 * half * half


# ---- of the point (x, y) and its distance from the origin


def cosine(x: Value, y: Value) -> Value:
    return over(x, hypot(x, y))


def inversion(x: Value, y: Value) -> Value:
    size = hypot(x, y)
    return over(over(x, size), size)


def inversion_slope(x: Value, y: Value) -> Value:
    """In the square of 1 over the distance."""
    size = hypot(x, y)
    p, q = over(x, size), over(y, size)
    return over(over((q - p) * (q + p), size), size)


def pseudo_huber(delta: Value, r: Value) -> Value:
    """d |r| (|r| / (hypot(d, r) + d)), r^2 / 2 where d is much larger, and limits at infinity."""
    d, size = delta, jnp.abs(r)
    found = d * (size * over(size, hypot(d, size) + d))
    much = 1e-9 if d.dtype == np.float64 else 1e-4
    found = jnp.where(size < much * d, size * size / 2, found)
    found = jnp.where(jnp.isinf(r) & jnp.isfinite(d), jnp.full_like(d, np.inf), found)
    none = (d == 0) & ~jnp.isnan(size) | (size == 0) & ~jnp.isnan(d)
    return jnp.where(d < 0, jnp.full_like(d, np.inf), jnp.where(none, jnp.zeros_like(d), found))


def pseudo_huber_by_delta(delta: Value, r: Value) -> Value:
    """r^4 / (h (h + delta)^2) for h = hypot(delta, r)"""
    h = hypot(delta, r)
    return over(r, h) * r * jnp.square(over(r, h + delta))


def pseudo_huber_by_r(delta: Value, r: Value) -> Value:
    """delta r / hypot(delta, r), the larger one first over the distance."""
    h = hypot(delta, r)
    return jnp.where(jnp.abs(delta) > jnp.abs(r), over(delta, h) * r, delta * over(r, h))


# ---- JAX's, but at 0 and where it has lost its digits


ROOT = Decimal("1.46163214496836234126265954232572132846819620400645")
"""Where `digamma` is 0: https://oeis.org/A030169."""
AT_ROOT = [polygamma(k, float(ROOT)) / factorial(k) for k in range(1, 21)]
"""The coefficients of its Taylor series there."""


def digamma(x: Value) -> Value:
    """Near its root by the Taylor series: relative to a value near 0, JAX's has lost its digits."""
    high = x.dtype.type(ROOT)
    low = x.dtype.type(ROOT - Decimal(float(high)))
    step, series = KEPT(x - high) - low, jnp.zeros_like(x)  # XLA would add up high and low
    for coefficient in reversed(AT_ROOT):
        series = series * step + x.dtype.type(coefficient)
    found = jnp.where(jnp.abs(step) < 0.25, step * series, jaxs.digamma(x))
    return jnp.where(x == 0, -jnp.copysign(jnp.full_like(x, np.inf), x), found)


FUNCTIONS: dict[str, Rule] = {
    "expit": sigmoid,
    "softplus": softplus,
    "log1mexp": log1mexp,
    "logit": logit,
    "xlogy": times_log(either(jnp.log, complexes.log)),
    "xlog1py": times_log(either(log1p, complexes.log1p)),
    "entr": entr,
    "rel_entr": rel_entr,
    "kl_div": kl_div,
    "exprel": exprel,
    "cosm1": cosm1,
    "sigmoid_slope": sigmoid_slope,
    "tanh_slope": tanh_slope,
    "arctan_slope": lambda x: 1 / (1 + x * x),
    "cosine": cosine,
    "inversion": inversion,
    "inversion_slope": inversion_slope,
    "square_complement": lambda x: (1 - x) * (1 + x),
    "pseudo_huber": pseudo_huber,
    "pseudo_huber_by_delta": pseudo_huber_by_delta,
    "pseudo_huber_by_r": pseudo_huber_by_r,
    "digamma": digamma,
}
"""Functions by name."""
