"""The normal distribution and the error function, where JAX loses digits or has nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import jax.scipy.special as jaxs
import numpy as np
from jax import lax

from graphcore.backends.error_function import FAR

from .entries import Value
from .floats import log1p

Rule: TypeAlias = Callable[..., Value]

ROOT_2 = math.sqrt(2)


def rounding_of_square(x: Value) -> Value:
    """What x * x lacks of the square of `x`, by a half of the digits of `x` and the rest."""
    double = x.dtype == np.float64
    bits = np.dtype("i8" if double else "i4")
    mask = np.array(-(2**27) if double else -(2**12), bits)
    high = lax.bitcast_convert_type(lax.bitcast_convert_type(x, bits) & mask, x.dtype)
    low = x - high
    return high * high - x * x + 2 * high * low + low * low


def erfcx(x: Value) -> Value:
    size = jnp.abs(x)
    s = jnp.maximum(size, 0.5)
    t = jnp.where(jnp.isinf(s), jnp.ones_like(s), (s - 3) / (s + 3))
    total = jnp.zeros_like(x)
    for c in reversed(FAR):
        total = total * t + c
    series, step = jnp.ones_like(x), 0.5 / (s * s)
    for k in range(9, 0, -1):
        series = 1 - (2 * k - 1) * step * series
    series = series / (s * math.sqrt(math.pi))
    far = jnp.where(s > 20, series, total / (1 + 2 * s))
    power = jnp.exp(x * x)
    power = jnp.where(jnp.isinf(power), power, power * (1 + rounding_of_square(x)))
    near = power * jaxs.erfc(x)
    return jnp.where(size < 0.5, near, jnp.where(x < 0, 2 * power - far, far))


def erfcinv(x: Value) -> Value:
    """By the tail that `x` is nearer to; of the least numbers by logarithms: a half may be 0."""
    size = jnp.where(x < 1, x, 2 - x)
    least = size < 4 * np.finfo(x.dtype).tiny
    far = jnp.where(least, ndtri_exp(jnp.log(size) - math.log(2)), jaxs.ndtri(size / 2)) / -ROOT_2
    far = jnp.where(x < 1, far, -far)
    return jnp.where(jnp.abs(1 - x) < 0.5, jaxs.erfinv(1 - x), far)


def log_ndtr(x: Value) -> Value:
    t = x / ROOT_2
    left = jnp.log(erfcx(jnp.maximum(-t, 0.5)) / 2) - x * (x / 2)
    return jnp.where(x < -1, left, log1p(-jaxs.erfc(jnp.maximum(t, -1)) / 2))


def ndtri_exp(y: Value) -> Value:
    """Far to the left by Newton's method: `log_ndtr` is concave, so that it comes from there."""
    start = -jnp.sqrt(-2 * jnp.minimum(y, -2))
    x = start
    for _ in range(6):
        slope = math.sqrt(2 / math.pi) / erfcx(-x / ROOT_2)
        x = x - (log_ndtr(x) - y) / slope
    left = jnp.where(jnp.isinf(start), start, x)
    right = jnp.where(y > -0.1, -jaxs.ndtri(-jnp.expm1(y)), jaxs.ndtri(jnp.exp(y)))
    return jnp.where(y < -2, left, right)


def owens_t(h: Value, a: Value) -> Value:
    """JAX's, but at 0 and far away, where it has lost its digits."""
    found = jnp.where(h == 0, jnp.arctan(a) / (2 * math.pi), jaxs.owens_t(h, a))
    return jnp.where(jnp.abs(h) > 6, far_owens_t(h, a), found)


def far_owens_t(h: Value, a: Value) -> Value:
    """e^(-h^2 / 2) / (2 pi h) times the integral of e^(-t^2 / 2) / (1 + t^2 / h^2) up to a h."""
    size = jnp.clip(jnp.abs(h), 1, 40)
    half = jnp.minimum(jnp.abs(a) * size, 9) / 2
    places, weights = (jnp.asarray(each, h.dtype) for each in np.polynomial.legendre.leggauss(40))

    def add(k: int, total: Value) -> Value:
        t = half * (1 + places[k])
        return total + weights[k] * half * jnp.exp(-t * t / 2) / (1 + (t / size) ** 2)

    total = lax.fori_loop(0, len(places), add, jnp.zeros_like(half))
    power = jnp.exp(-size * size / 2) * (1 - rounding_of_square(size) / 2)
    return jnp.sign(a) * power / (2 * math.pi * size) * total


FUNCTIONS: dict[str, Rule] = {
    "owens_t": owens_t,
    "erfcx": erfcx,
    "erfcinv": erfcinv,
    "log_ndtr": log_ndtr,
    "ndtri_exp": ndtri_exp,
}
"""Functions by name."""
