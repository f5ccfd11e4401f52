"""Modified Bessel functions, as integrals of positive functions. All compute in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import gammas
from .entries import Value
from .floats import hypot

Rule: TypeAlias = Callable[..., Value]

FALL = 42.0
"""An integral ends where the integrand has fallen by the factor e^-42, 6e-19."""
LEAST = float(np.finfo(np.float64).tiny)
"""The smallest argument: XLA takes smaller ones for 0."""
MOST = 4000
"""Places of the longest integral, of the smallest numbers."""


def second_kind(v: Value, x: Value, scaled: bool) -> Value:
    """The integral of e^(-x cosh t) cosh(v t), by the trapezoidal rule.

    The logarithm of e^(v t - x cosh t) is concave; t runs around its maximum as far as it counts.
    """
    v = jnp.minimum(jnp.abs(v), 1e300)
    x = jnp.clip(x, LEAST, 1e300)
    ratio, size = v / x, hypot(x, v)
    top = jnp.where(ratio < 1e100, jnp.arcsinh(ratio), jnp.log(2 * v) - jnp.log(x))
    rising, falling = (size + v) / 2, x / (size + v) * x / 2  # factors of e^t and e^-t

    def fall(t: Value) -> Value:
        half, root = jnp.sinh(t / 2), jnp.exp(t / 2)
        near = 2 * size * half * half + v * (jnp.sinh(t) - t)
        far = rising * root * root + falling / root / root - size - v * t
        return jnp.where(jnp.abs(t) < 1, near, far)

    def nearer(_: Value, t: Value) -> Value:
        root = jnp.exp(t / 2)
        near = size * jnp.sinh(t) + v * (jnp.cosh(t) - 1)
        far = rising * root * root - falling / root / root - v
        return t - (fall(t) - FALL) / jnp.where(t < 1, near, far)

    start = 2 * jnp.arcsinh(math.sqrt(FALL / 2) / jnp.sqrt(size))
    last = lax.fori_loop(0, 30, nearer, start)
    width = 1 / jnp.sqrt(size)
    first = -jnp.minimum(top, 10 * width + FALL / jnp.maximum(v, 1e-3))
    step = jnp.minimum(0.2, 0.4 * width)

    def goes_on(state: tuple[Value, Value]) -> Value:
        return (state[0] < MOST) & jnp.any(first + state[0] * step < last)

    def add(state: tuple[Value, Value]) -> tuple[Value, Value]:
        k, total = state
        t = first + k * step
        weight = jnp.where((k == 0) & (first == -top), 0.25, 0.5)
        there = jnp.exp(-fall(t)) * (1 + jnp.exp(-2 * v * (top + t)))
        return k + 1, total + jnp.where(t <= last, weight * there, 0)

    total = lax.while_loop(goes_on, add, (0.0, jnp.zeros_like(x)))[1]
    height = v * top - v * (v / (size + x))
    root = jnp.exp((height if scaled else height - x) / 2)
    return root * (total * step) * root


def kve(v: Value, x: Value) -> Value:
    return with_limits_of_k(second_kind(v, x, True), v, x)


def kv(v: Value, x: Value) -> Value:
    return with_limits_of_k(second_kind(v, x, False), v, x)


def with_limits_of_k(found: Value, v: Value, x: Value) -> Value:
    found = jnp.where(x == 0, jnp.full_like(x, np.inf), jnp.where(jnp.isinf(x), 0, found))
    none = (x < 0) | jnp.isnan(x) | ~jnp.isfinite(v)
    return jnp.where(none, jnp.full_like(x, np.nan), found)


# ---- first kind

PLACES = 48
TERMS = 90


def by_series(v: Value, x: Value) -> tuple[Value, Value]:
    """The series of iv in powers of x / 2, and the logarithm of its first term, for `x` to 25."""
    square = x * x / 4

    def add(k: Value, state: tuple[Value, Value]) -> tuple[Value, Value]:
        term, total = state
        term = term * square / (k * (v + k))
        return term, total + term

    total = lax.fori_loop(1, TERMS, add, (jnp.ones_like(x), jnp.ones_like(x)))[1]
    return total, v * (jnp.log(x) - math.log(2)) - gammas.gammaln(v + 1)


def by_integral(v: Value, x: Value) -> tuple[Value, Value]:
    """The integral of iv along the path of steepest descent, and the logarithm of its height.

    There t = u + i s with x sinh(u) = v s / sin(s); heights are less that of e^x.
    """
    low = v / x
    high = jnp.sqrt(1 + low * low)
    width = 1 / jnp.sqrt(hypot(x, v))
    step = jnp.minimum(10 * width, math.pi) / PLACES

    def add(k: Value, total: Value) -> Value:
        s = k * step
        small = s * s / 6 * (1 + s * s * (7 / 60))
        more = jnp.where(s < 1e-3, small, s / jnp.sin(s) - 1)  # s / sin(s) - 1
        gained = low * low * more * (2 + more)
        sinh = low * (1 + more)
        cosh = jnp.sqrt(1 + sinh * sinh)
        half = jnp.sin(s / 2)
        risen = gained / (cosh + high) * jnp.cos(s) - 2 * high * half * half
        turned = jnp.arcsinh(gained / jnp.maximum(sinh * high + low * cosh, 1e-300))
        there = jnp.exp(x * risen - v * turned)
        return total + jnp.where(s < math.pi, there, 0)

    total = lax.fori_loop(1, PLACES + 1, add, jnp.full_like(x, 0.5))
    height = v * (low / (high + 1) - jnp.arcsinh(low))
    return total * step / math.pi, height


def first_kind(v: Value, x: Value, scaled: bool) -> Value:
    """For `v` from 0 on and `x` above 0."""
    v, x = jnp.minimum(v, 1e100), jnp.clip(x, LEAST, 1e300)
    near = x < 25
    total, log = by_series(v, jnp.minimum(x, 25))
    integral, height = by_integral(v, jnp.maximum(x, 25))
    log = jnp.where(near, log - x if scaled else log, height if scaled else height + x)
    root = jnp.exp(log / 2)
    return root * jnp.where(near, total, integral) * root


def mirrored(scaled: bool) -> Rule:
    """Of all `v` and `x`: by the second kind below 0; nan for negative `x` unless `v` is whole."""

    def run(v: Value, x: Value) -> Value:
        order, size = jnp.abs(v), jnp.abs(x)
        found = first_kind(order, size, scaled)
        other = second_kind(order, size, False) * (jnp.exp(-size) if scaled else 1)
        other = 2 / math.pi * gammas.sin_pi(order) * other
        whole = v == jnp.floor(v)
        found = jnp.where((v < 0) & ~whole, found + other, found)
        odd = whole & (v / 2 != jnp.floor(v / 2))
        found = jnp.where((x < 0) & odd, -found, found)
        at_0 = jnp.where(v == 0, 1.0, jnp.where((v < 0) & ~whole, jnp.inf, 0.0))
        found = jnp.where(x == 0, at_0, found)
        endless = jnp.zeros_like(x) if scaled else jnp.full_like(x, np.inf)
        found = jnp.where(jnp.isinf(x), jnp.where((x < 0) & odd, -endless, endless), found)
        none = (x < 0) & ~whole | ~jnp.isfinite(v) | jnp.isnan(x)
        return jnp.where(none, jnp.full_like(x, np.nan), found)

    return run


def of_order(function: Rule, order: float) -> Rule:
    return lambda x: function(jnp.full_like(x, order), x)


FUNCTIONS: dict[str, Rule] = {
    "kv": kv,
    "kve": kve,
    "k0": of_order(kv, 0.0),
    "k1": of_order(kv, 1.0),
    "k0e": of_order(kve, 0.0),
    "k1e": of_order(kve, 1.0),
    "iv": mirrored(scaled=False),
    "ive": mirrored(scaled=True),
}
"""Functions by name."""
