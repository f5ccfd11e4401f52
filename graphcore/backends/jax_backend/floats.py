"""Functions of floats, where JAX has none as exact, or one that answers otherwise than NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.ir.types import DType

from .entries import Value

Rule: TypeAlias = Callable[..., Value]


KEPT: Rule = lax.optimization_barrier
"""Hides from XLA how a value is computed, so that it does not reorder the additions."""


def adding(dtype: DType, count: int) -> DType:
    """The dtype in which so many values are added one after the other: rounding must not count."""
    if count <= FEW.get(dtype.name, 1):
        return dtype
    return np.dtype(LONGER.get(dtype.name, dtype))


LONGER = {
    **{"bool": "int32", "float16": "float32"},
    **{"float32": "float64", "complex64": "complex128"},
}
"""The dtypes in which many values are added."""
FEW = {"float32": 1024, "complex64": 1024}
"""How many values are added in the dtype itself."""


def sign(x: Value) -> Value:
    """0 of -0 too."""
    return jnp.where(x == 0, jnp.zeros_like(x), jnp.sign(x))


def divided(x: Value, y: Value) -> tuple[Value, Value]:
    """The quotient, rounded down, and the rest."""
    rest = lax.rem(x, y)
    quotient = (x - rest) / y
    turned = (rest != 0) & ((y < 0) != (rest < 0))
    quotient = quotient - turned.astype(x.dtype)
    above_0 = jnp.where(turned, rest + y, jnp.where(rest == 0, jnp.copysign(rest, y), rest))
    down = jnp.floor(quotient)
    down = down + (quotient - down > 0.5).astype(x.dtype)
    down = jnp.where(quotient == 0, jnp.copysign(jnp.zeros_like(x), x / y), down)
    return jnp.where(y == 0, x / y, down), jnp.where(y == 0, rest, above_0)


# ---- powers of two


def power_of_two(n: Value, dtype: DType) -> Value:
    """2^n by its bits, of a normal float."""
    info = np.finfo(dtype)
    bits = np.dtype(f"i{dtype.itemsize}")
    biased = (n + (int(info.maxexp) - 1)).astype(bits)
    return lax.bitcast_convert_type(biased << np.array(info.nmant, bits), dtype)


def ldexp(x: Value, n: Value) -> Value:
    """In three steps: powers of two are no longer floats before results are."""
    most = int(np.finfo(x.dtype).maxexp) - 1
    n = jnp.clip(n, -4 * most, 4 * most).astype(np.int32)
    for _ in range(2):
        step = jnp.clip(n, -most + 1, most)
        x, n = x * power_of_two(step, x.dtype), n - step
    return x * power_of_two(jnp.clip(n, -most + 1, most), x.dtype)


def power_below(x: Value) -> Value:
    """The largest power of two that is at most `x`, which is not negative; its inverse is normal.

    Of infinity, nan and numbers that are not normal it is one at the ends of the range.
    """
    info, bits = np.finfo(x.dtype), np.dtype(f"i{x.dtype.itemsize}")
    exponent = np.array(np.inf, x.dtype).view(bits)
    power = lax.bitcast_convert_type(lax.bitcast_convert_type(x, bits) & exponent, x.dtype)
    return jnp.clip(power, info.smallest_normal, 1 / info.smallest_normal)


def hypot(x: Value, y: Value) -> Value:
    """Scaled by a power of two, so that no square leaves the range."""
    x, y = jnp.abs(x), jnp.abs(y)
    unit = power_below(jnp.maximum(x, y))
    p, q = x * (1 / unit), y * (1 / unit)
    found = jnp.sqrt(p * p + q * q) * unit
    return jnp.where(jnp.isinf(x) | jnp.isinf(y), jnp.full_like(x, np.inf), found)


def exp2(x: Value) -> Value:
    """2^n e^(r log 2) for x = n + r: the product with log 2 would lose digits of a large `x`."""
    n = jnp.rint(jnp.clip(x, -5000, 5000))
    rest = jnp.where(jnp.abs(x) < 5000, x - n, jnp.where(jnp.isnan(x), x, jnp.zeros_like(x)))
    return ldexp(jnp.exp(rest * np.array(np.log(2), x.dtype)), n.astype(np.int32))


def log1p(x: Value) -> Value:
    """The logarithm of the rounded sum, times what rounding has changed `x` by."""
    total = KEPT(1 + x)
    gained = total - 1
    plain = (gained == 0) | (total == np.inf)
    found = jnp.log(total) * (x / jnp.where(plain, jnp.ones_like(x), gained))
    return jnp.where(plain, x, found)


def log_sum(function: Rule, inverse: Rule, unit: float) -> Rule:
    """log(e^x + e^y) for the exponential and the logarithm of a base."""

    def run(x: Value, y: Value) -> Value:
        same = x == y  # two infinities among them
        gap = jnp.where(same, jnp.zeros_like(x), -jnp.abs(x - y))
        found = jnp.maximum(x, y) + inverse(function(gap))
        return jnp.where(same, x + np.array(unit, x.dtype), found)

    return run


logaddexp = log_sum(jnp.exp, log1p, np.log(2))
logaddexp2 = log_sum(exp2, lambda x: log1p(x) * np.array(1 / np.log(2), x.dtype), 1.0)


def sinh(x: Value) -> Value:
    """Far from 0 half of e^|x|, in two factors: that may be no float where this is one."""
    size = jnp.abs(x)
    less = jnp.expm1(size)
    root = jnp.exp(size / 2)
    near = (less + less / (less + 1)) / 2
    return jnp.copysign(jnp.where(size > 20, root / 2 * root, near), x)


def cosh(x: Value) -> Value:
    size = jnp.abs(x)
    power, root = jnp.exp(size), jnp.exp(size / 2)
    return jnp.where(size > 20, root / 2 * root, (power + 1 / power) / 2)


def arctanh(x: Value) -> Value:
    size = jnp.abs(x)
    return jnp.copysign(log1p(2 * size / (1 - size)) / 2, x)


# ---- the form of floats


def nextafter(x: Value, y: Value) -> Value:
    """Of two zeros the second, but for float16."""
    found = jnp.nextafter(x, y)
    return jnp.where(x == y, x, found) if x.dtype == np.float16 else found


def spacing(x: Value) -> Value:
    """The distance to the next float away from 0, with the sign of `x`; of float16 to that above.

    By bits, as subnormals are 0 on some devices.
    """
    bits = np.dtype(f"i{x.dtype.itemsize}")
    size = lax.bitcast_convert_type(x, bits) & np.array(np.iinfo(bits).max, bits)
    if x.dtype == np.float16:
        size = size - (x < 0).astype(bits)
    one, digits = np.array(1, bits), np.array(np.finfo(x.dtype).nmant, bits)
    exponent = size >> digits
    subnormal = one << jnp.maximum(exponent - one, np.array(0, bits))
    found = jnp.where(exponent > digits, (exponent - digits) << digits, subnormal)
    if x.dtype != np.float16:
        found = found | jnp.where(x < 0, np.array(np.iinfo(bits).min, bits), np.array(0, bits))
    found = lax.bitcast_convert_type(found, x.dtype)
    return jnp.where(jnp.isfinite(x), found, jnp.full_like(x, np.nan))


def heaviside(x: Value, y: Value) -> Value:
    one, zero = jnp.ones_like(x), jnp.zeros_like(x)
    found = jnp.where(x > 0, one, jnp.where(x < 0, zero, y))
    return jnp.where(jnp.isnan(x), x, found)
