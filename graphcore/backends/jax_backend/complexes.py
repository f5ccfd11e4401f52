"""Complex numbers at zeros, infinities and nan, by the formulas that NumPy has for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from .entries import Value
from .floats import hypot

Rule: TypeAlias = Callable[..., Value]


def parts(z: Value) -> tuple[Value, Value]:
    return jnp.real(z), jnp.imag(z)


def divide(x: Value, y: Value) -> Value:
    """Smith's way: divided by the larger part first, so that no square overflows."""
    (xr, xi), (yr, yi) = parts(x), parts(y)
    first = jnp.abs(yr) >= jnp.abs(yi)
    large, small = jnp.where(first, yr, yi), jnp.where(first, yi, yr)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    re = jnp.where(first, xr + xi * ratio, xr * ratio + xi) * scale
    im = jnp.where(first, xi - xr * ratio, xi * ratio - xr) * scale
    none = first & (large == 0)
    nothing = jnp.abs(large)
    return lax.complex(jnp.where(none, xr / nothing, re), jnp.where(none, xi / nothing, im))


def reciprocal(z: Value) -> Value:
    re, im = parts(z)
    first = jnp.abs(im) <= jnp.abs(re)
    large, small = jnp.where(first, re, im), jnp.where(first, im, re)
    ratio = small / large
    scale = large + small * ratio
    whole, part = 1 / scale, ratio / scale
    return lax.complex(jnp.where(first, whole, part), -jnp.where(first, part, whole))


def absolute(z: Value) -> Value:
    return hypot(*parts(z))


def sign(z: Value) -> Value:
    """z / |z|; of an infinite part 1 or -1, if the other is finite."""
    re, im = parts(z)
    size = hypot(re, im)
    found = []
    for part, other in ((re, im), (im, re)):
        one = jnp.copysign(jnp.ones_like(part), part)
        edge = jnp.where(jnp.isinf(other), jnp.zeros_like(part), one)
        edge = jnp.where(jnp.isinf(part) & jnp.isinf(other), jnp.nan, edge)
        whole = jnp.where(jnp.isinf(size), edge, part / size)
        found.append(jnp.where(size == 0, jnp.zeros_like(part), whole))
    return lax.complex(*found)


def sqrt(z: Value) -> Value:
    """JAX's root, and what C has for it where a part is 0, infinite or nan."""
    x, y = parts(z)
    re, im = parts(jnp.sqrt(z))
    inf, zero = jnp.full_like(x, np.inf), jnp.zeros_like(x)
    im = jnp.copysign(im, y)
    none = (x == 0) & (y == 0)
    re, im = jnp.where(none, zero, re), jnp.where(none, y, im)
    re, im = jnp.where(jnp.isnan(x), x, re), jnp.where(jnp.isnan(x), x + y, im)
    endless, right = jnp.isinf(x), x > 0
    flat = jnp.where(jnp.isnan(y), y, jnp.copysign(zero, y))
    re = jnp.where(endless, jnp.where(right, x, y - y), re)
    im = jnp.where(endless, jnp.where(right, flat, jnp.copysign(inf, y)), im)
    across = jnp.isinf(y)
    return lax.complex(jnp.where(across, inf, re), jnp.where(across, y, im))


# ---- exponentials and logarithms


def exp(z: Value) -> Value:
    """e^x (cos y + i sin y), in two factors: e^x may be no float where the product is one."""
    x, y = parts(z)
    half = jnp.exp(x / 2)
    re, im = half * jnp.cos(y) * half, half * jnp.sin(y) * half
    end, above = ~jnp.isfinite(y) & jnp.isinf(x), x > 0
    re = jnp.where(end, jnp.where(above, x, jnp.zeros_like(x)), re)
    im = jnp.where(end & ~above, jnp.copysign(jnp.zeros_like(x), y), im)
    straight = y == 0
    return lax.complex(jnp.where(straight, jnp.exp(x), re), jnp.where(straight, y, im))


def exp2(z: Value) -> Value:
    return exp(lax.complex(*[x * np.array(np.log(2), x.dtype) for x in parts(z)]))


def expm1(z: Value) -> Value:
    x, y = parts(z)
    half = jnp.sin(y / 2)
    return lax.complex(jnp.expm1(x) * jnp.cos(y) - 2 * half * half, jnp.exp(x) * jnp.sin(y))


def logarithm(function: Rule, shift: float = 0.0, base: float = math.e) -> Rule:
    """The real part by a function of JAX, the angle apart: it knows the signs of zeros."""

    def run(z: Value) -> Value:
        x, y = parts(z)
        endless = jnp.isinf(x) | jnp.isinf(y)
        size = jnp.where(endless, jnp.full_like(x, np.inf), jnp.real(function(z)))
        angle = jnp.arctan2(y, x + np.array(shift, x.dtype))
        return lax.complex(size, angle * np.array(1 / np.log(base), x.dtype))

    return run


log = logarithm(jnp.log)
log1p = logarithm(jnp.log1p, shift=1.0)
log2 = logarithm(jnp.log2, base=2.0)
log10 = logarithm(jnp.log10, base=10.0)


# ---- hyperbolic functions, and circular ones by them


def halves(x: Value) -> tuple[Value, Value, Value]:
    """sinh(x) and cosh(x) over e^m, and e^m: an m of 0, or so large that these are floats."""
    most = np.array(700.0 if x.dtype == np.float64 else 80.0, x.dtype)
    near = jnp.clip(x, -most, most)
    return jnp.sinh(near), jnp.cosh(near), jnp.exp(jnp.maximum(jnp.abs(x) - most, 0))


def sinh(z: Value) -> Value:
    """sinh x cos y + i cosh x sin y"""
    x, y = parts(z)
    s, c, more = halves(x)
    re, im = s * jnp.cos(y) * more, c * jnp.sin(y) * more
    im, no_angle = jnp.where(y == 0, y, im), ~jnp.isfinite(y)
    re = jnp.where(no_angle & (x == 0), x, re)
    return lax.complex(jnp.where(no_angle & jnp.isinf(x), jnp.full_like(x, np.inf), re), im)


def cosh(z: Value) -> Value:
    """cosh x cos y + i sinh x sin y"""
    x, y = parts(z)
    s, c, more = halves(x)
    re, im = c * jnp.cos(y) * more, s * jnp.sin(y) * more
    im, no_angle = jnp.where(y == 0, y * jnp.copysign(jnp.ones_like(x), x), im), ~jnp.isfinite(y)
    im = jnp.where(no_angle & (x == 0), jnp.zeros_like(x), im)
    return lax.complex(jnp.where(no_angle & jnp.isinf(x), jnp.full_like(x, np.inf), re), im)


def tanh(z: Value) -> Value:
    """(sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y)"""
    x, y = parts(z)
    most = np.array(300.0 if x.dtype == np.float64 else 30.0, x.dtype)
    near = jnp.clip(x, -most, most)
    s, c = jnp.sinh(near), jnp.cosh(near)
    sin, cos = jnp.sin(y), jnp.cos(y)
    below, angle = s * s + cos * cos, sin * cos
    part = sin / c
    re = jnp.where(jnp.abs(x) > 2, jnp.tanh(x) / (1 - part * part), s * c / below)
    im = angle / below * jnp.exp(-2 * jnp.maximum(jnp.abs(x) - most, 0))
    im, no_angle = jnp.where(y == 0, y, im), ~jnp.isfinite(y)
    re = jnp.where(no_angle & (x == 0), x, re)
    turned = (jnp.abs(y) > 1) & ~no_angle
    flat = jnp.copysign(jnp.zeros_like(x), jnp.where(turned, angle, y))
    end = jnp.isinf(x)
    re = jnp.where(end, jnp.copysign(jnp.ones_like(x), x), re)
    return lax.complex(re, jnp.where(end, flat, im))


def rotated(function: Rule) -> Rule:
    """-i f(iz): the sine of a hyperbolic sine."""

    def run(z: Value) -> Value:
        x, y = parts(z)
        re, im = parts(function(lax.complex(-y, x)))
        return lax.complex(im, -re)

    return run


def cos(z: Value) -> Value:
    x, y = parts(z)
    return cosh(lax.complex(-y, x))


def odd(function: Rule) -> Rule:
    """An odd function that is real on the real axis, by its values in the first quadrant."""

    def run(z: Value) -> Value:
        x, y = parts(z)
        re, im = parts(function(lax.complex(jnp.abs(x), jnp.abs(y))))
        return lax.complex(jnp.copysign(re, x), jnp.copysign(im, y))

    return run


arcsinh, arctanh = odd(jnp.arcsinh), odd(jnp.arctanh)


def arccos(z: Value) -> Value:
    """By the values in the first quadrant."""
    x, y = parts(z)
    re, im = parts(jnp.arccos(lax.complex(jnp.abs(x), jnp.abs(y))))
    re = jnp.where(jnp.signbit(x), np.array(np.pi, x.dtype) - re, re)
    return lax.complex(re, -jnp.copysign(im, y))


def arccosh(z: Value) -> Value:
    _, y = parts(z)
    re, im = parts(arccos(z))
    return lax.complex(jnp.abs(im), jnp.copysign(re, y))


# ---- powers

FEW = 100
"""Whole exponents of less than this are products."""


def multiply(x: Value, y: Value) -> Value:
    (xr, xi), (yr, yi) = parts(x), parts(y)
    return lax.complex(xr * yr - xi * yi, xr * yi + xi * yr)


def power(x: Value, y: Value) -> Value:
    """By squaring where the exponent is a whole number, else e^(y log x)."""
    (xr, xi), (yr, yi) = parts(x), parts(y)
    whole = (yi == 0) & (jnp.trunc(yr) == yr) & (jnp.abs(yr) < FEW)
    n = jnp.where(whole, jnp.abs(yr), jnp.zeros_like(yr)).astype(np.int32)
    product, square = jnp.ones_like(x), x
    for bit in range(FEW.bit_length()):
        is_set = (n >> bit) & 1 == 1
        product = jnp.where(is_set, multiply(product, square), product)
        square = multiply(square, square)
    product = jnp.where(yr < 0, divide(jnp.ones_like(x), product), product)
    few = [x, multiply(x, x), multiply(x, multiply(x, x))]
    for k, own in enumerate(few, 1):
        product = jnp.where(yr == k, own, product)
    found = jnp.where(whole, product, exp(multiply(y, log(x))))
    nan = jnp.full_like(x, complex(np.nan, np.nan))
    found = jnp.where((xr == 0) & (xi == 0), jnp.where(yr > 0, jnp.zeros_like(x), nan), found)
    return jnp.where((yr == 0) & (yi == 0), jnp.ones_like(x), found)


# ---- order


def ordered(relation: str) -> Rule:
    """The order by real parts, then by imaginary ones."""
    strict: Rule = getattr(jnp, relation.partition("_")[0])
    last: Rule = getattr(jnp, relation)

    def run(x: Value, y: Value) -> Value:
        (xr, xi), (yr, yi) = parts(x), parts(y)
        known = ~(jnp.isnan(xi) | jnp.isnan(yi))
        return (strict(xr, yr) & known) | ((xr == yr) & last(xi, yi))

    return run


def extreme(relation: str) -> Rule:
    """The larger, or the smaller, in that order; the first one that has a nan."""
    first = ordered(relation)
    return lambda x, y: jnp.where(jnp.isnan(x) | first(x, y), x, y)


def known_extreme(relation: str) -> Rule:
    """The larger, or the smaller, in that order; the one that has no nan."""
    first = ordered(relation)
    return lambda x, y: jnp.where(jnp.isnan(y) | first(x, y), x, y)
