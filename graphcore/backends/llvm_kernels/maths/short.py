"""Functions of float32, computed in float64, so that no sum needs to be carried as a pair."""

from __future__ import annotations

import math

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

from .angles import ARCSINE, ARCTANGENT, EIGHTH, QUARTER, is_odd, short_parts
from .exponential import LOG_2_PAIR, SHORT_TAIL, nearest, short_exp, short_expm1
from .logarithm import PER_LOG_2, PER_LOG_10, log, short_log, short_log1p
from .pairs import (
    INF,
    NAN,
    add,
    bits_of,
    clamp,
    copysign,
    div,
    equal,
    fabs,
    fma,
    less,
    mul,
    neg,
    polynomial,
    power_of_two,
    sub,
)
from .powers import power_at_edges


def exp2(b: Builder, x: Value) -> Value:
    x = clamp(b, x, -150.0, 130.0)
    whole, n = nearest(b, x, 1.0)
    r = mul(b, sub(b, x, whole), real(LOG_2_PAIR[0]))
    part = fma(b, mul(b, r, r), polynomial(b, r, *SHORT_TAIL), r)
    scale = power_of_two(b, n)
    return fma(b, part, scale, scale)


def log2(b: Builder, x: Value) -> Value:
    return mul(b, short_log(b, x), real(PER_LOG_2[0]))


def log10(b: Builder, x: Value) -> Value:
    return mul(b, short_log(b, x), real(PER_LOG_10[0]))


def power(b: Builder, x: Value, y: Value) -> Value:
    return power_at_edges(b, x, y, short_exp(b, mul(b, y, log(b, fabs(b, x)))))


def hypot(b: Builder, x: Value, y: Value) -> Value:
    """Squares of float32 are floats throughout."""
    found = b.call("sqrt", fma(b, x, x, mul(b, y, y)))
    endless = b.op("or", equal(b, fabs(b, x), INF), equal(b, fabs(b, y), INF))
    return b.select(endless, INF, found)


def softplus(b: Builder, x: Value) -> Value:
    above = b.select(b.op("fcmp ogt", x, real(0.0)), x, real(0.0))
    return add(b, above, short_log1p(b, short_exp(b, neg(b, fabs(b, x)))))


# ---- hyperbolic functions and their inverses


def sinh(b: Builder, x: Value) -> Value:
    """(t + t / (t + 1)) / 2, where t = e^|x| - 1."""
    t = short_expm1(b, fabs(b, x))
    return copysign(b, mul(b, add(b, t, div(b, t, add(b, t, real(1.0)))), real(0.5)), x)


def cosh(b: Builder, x: Value) -> Value:
    t = short_exp(b, fabs(b, x))
    return mul(b, add(b, t, div(b, real(1.0), t)), real(0.5))


def arcsinh(b: Builder, x: Value) -> Value:
    """log(1 + a + a^2 / (1 + sqrt(1 + a^2))), where a = |x|."""
    a = fabs(b, x)
    square = mul(b, a, a)
    root = b.call("sqrt", add(b, square, real(1.0)))
    found = short_log1p(b, add(b, a, div(b, square, add(b, root, real(1.0)))))
    return copysign(b, b.select(equal(b, a, INF), INF, found), x)


def arccosh(b: Builder, x: Value) -> Value:
    """log(1 + t + sqrt(t (t + 2))), where t = x - 1."""
    t = sub(b, x, real(1.0))
    root = b.call("sqrt", mul(b, t, add(b, t, real(2.0))))
    return b.select(less(b, x, real(1.0)), NAN, short_log1p(b, add(b, t, root)))


def arctanh(b: Builder, x: Value) -> Value:
    """log(1 + 2a / (1 - a)) / 2, where a = |x|."""
    a = fabs(b, x)
    inner = div(b, add(b, a, a), sub(b, real(1.0), a))
    return copysign(b, mul(b, short_log1p(b, inner), real(0.5)), x)


# ---- angles


def tan(b: Builder, x: Value) -> Value:
    n, s, c = short_parts(b, x)
    odd = is_odd(b, n)
    y = div(b, b.select(odd, neg(b, c), s), b.select(odd, s, c))
    y = b.select(equal(b, x, real(0.0)), x, y)
    return b.select(less(b, fabs(b, x), INF), y, NAN)


def angle(b: Builder, num: Value, den: Value) -> Value:
    """The angle whose tangent is num / den, for 0 <= num <= den and den > 0."""
    steep = b.op("fcmp ogt", num, mul(b, den, real(math.sqrt(2) - 1)))
    top = b.select(steep, sub(b, num, den), num)
    t = div(b, top, b.select(steep, add(b, num, den), den))
    z = mul(b, t, t)
    found = fma(b, mul(b, t, z), polynomial(b, z, *ARCTANGENT), t)
    return b.select(steep, add(b, found, real(EIGHTH[0])), found)


def arctan(b: Builder, x: Value) -> Value:
    a = fabs(b, x)
    above = b.op("fcmp ogt", a, real(1.0))
    y = angle(b, b.select(above, real(1.0), a), b.select(above, a, real(1.0)))
    return copysign(b, b.select(above, sub(b, real(QUARTER[0]), y), y), x)


def arctan2(b: Builder, y: Value, x: Value) -> Value:
    a, c = fabs(b, y), fabs(b, x)
    steep = b.op("fcmp ogt", a, c)
    large, small = b.select(steep, a, c), b.select(steep, c, a)
    alike = b.op("or", equal(b, large, real(0.0)), equal(b, small, INF))
    nothing = b.op("fcmp oeq", large, real(0.0))
    num = b.select(alike, b.select(nothing, real(0.0), real(1.0)), small)
    found = angle(b, num, b.select(alike, real(1.0), large))
    found = b.select(steep, sub(b, real(QUARTER[0]), found), found)
    left = b.op("icmp slt", bits_of(b, x), integer(0))
    found = b.select(left, sub(b, real(2 * QUARTER[0]), found), found)
    return copysign(b, b.select(b.op("fcmp uno", x, y), NAN, found), y)


def arcsin_part(b: Builder, a: Value) -> tuple[Value, Value]:
    """Whether a > 1/2, and then arcsin(sqrt((1 - a) / 2)), else arcsin(a)."""
    large = b.op("fcmp ogt", a, real(0.5))
    half = mul(b, sub(b, real(1.0), a), real(0.5))
    z = b.select(large, half, mul(b, a, a))
    s = b.select(large, b.call("sqrt", half), a)
    return large, fma(b, mul(b, s, z), polynomial(b, z, *ARCSINE), s)


def arcsin(b: Builder, x: Value) -> Value:
    a = fabs(b, x)
    large, part = arcsin_part(b, a)
    return copysign(b, b.select(large, fma(b, part, real(-2.0), real(QUARTER[0])), part), x)


def arccos(b: Builder, x: Value) -> Value:
    a = fabs(b, x)
    large, part = arcsin_part(b, a)
    twice = add(b, part, part)
    far = b.select(less(b, x, real(0.0)), sub(b, real(2 * QUARTER[0]), twice), twice)
    return b.select(large, far, sub(b, real(QUARTER[0]), copysign(b, part, x)))
