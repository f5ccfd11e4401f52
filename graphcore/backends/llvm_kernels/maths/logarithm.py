"""Logarithms, and the inverse hyperbolic functions made of them.

x = 2^k m with m from 0.71 to 1.42, and log(m) = 2s + s^3 R(s^2) with s = (m - 1) / (m + 1).
"""

from __future__ import annotations

import math

from graphcore.backends.llvm_kernels.builder import FALSE, Builder, Value, integer, real

from . import floats as fp
from .exponential import LOG_2, LOG_2_PAIR, exp

SERIES = (
    *(0.6666666666666734, 0.3999999999941536, 0.2857142874227078, 0.22222198581515573),
    *(0.18183564074544, 0.1531405272546147, 0.1479596641576367),
)
"""R to 1e-18 of log(m)"""
NEXT = (
    *(0.39999999999999997, 0.28571428571434215, 0.22222222220104962, 0.18181818565743665),
    *(0.15384576921608487, 0.13335573473095036, 0.11689382694030179, 0.11871992381648583),
)
"""(R - 2/3) / s^2 to 2e-20 of log(m)"""

TWO_THIRDS = 0.6666666666666666, 3.700743415417188e-17
PER_LOG_2 = 1.4426950408889634, 2.0355273740931033e-17
PER_LOG_10 = 0.4342944819032518, 1.098319650216765e-17
LOG10_2 = 0.30102999566361177, 3.694239077158931e-13
"""log10(2) as a sum, whose first part ends in zeros."""


def split(b: Builder, x: Value) -> tuple[Value, Value]:
    """k and m of a float above 0; k is a float."""
    tiny = fp.less(b, x, real(2.0**-1022))
    k, m = split_normal(b, b.select(tiny, fp.mul(b, x, real(2.0**54)), x))
    shift = b.select(tiny, real(-54.0), real(0.0))
    return fp.add(b, b.convert("sitofp", k, "f64"), shift), m


def split_normal(b: Builder, x: Value) -> tuple[Value, Value]:
    """k and m of a float from 2^-1022 on; k is an integer."""
    bits = fp.bits_of(b, x)
    k = b.op("ashr", b.op("sub", bits, integer(0x3FE6A09E667F3BCD)), integer(52))
    return k, fp.float_of(b, b.op("sub", bits, b.op("shl", k, integer(52))))


def at_edges(b: Builder, x: Value, y: Value) -> Value:
    """A logarithm `y` of `x`, but where `x` is 0, below, infinite or nan."""
    y = b.select(b.op("fcmp ult", x, real(0.0)), fp.NAN, y)
    y = b.select(fp.equal(b, x, real(0.0)), real(-math.inf), y)
    return b.select(fp.equal(b, x, fp.INF), fp.INF, y)


def log(b: Builder, x: Value) -> Value:
    """As fdlibm has it."""
    k, m = split(b, x)
    f = fp.sub(b, m, real(1.0))
    s = fp.div(b, f, fp.add(b, f, real(2.0)))
    z = fp.mul(b, s, s)
    r = fp.mul(b, fp.polynomial(b, z, *SERIES), z)
    half = fp.mul(b, fp.mul(b, f, f), real(0.5))
    t = fp.fma(b, s, fp.add(b, half, r), fp.mul(b, k, real(LOG_2[1])))
    t = fp.sub(b, fp.sub(b, half, t), f)
    return at_edges(b, x, fp.fma(b, k, real(LOG_2[0]), b.negative(t)))


def log_of_pair(b: Builder, x: fp.Pair) -> fp.Pair:
    """log(x) to 2^-64 for x > 0."""
    k, m = split(b, x.high)
    n = b.convert("fptosi", b.negative(k), "i64")
    n = b.call("smax", b.call("smin", n, integer(1023)), integer(-1022))
    f = fp.quick_sum(b, fp.sub(b, m, real(1.0)), fp.mul(b, x.low, fp.power_of_two(b, n)))
    below = fp.sum_of(b, real(2.0), f.high)
    s = fp.pair_quotient(b, f, fp.Pair(below.high, fp.add(b, below.low, f.low)))
    z = fp.mul(b, s.high, s.high)
    z_low = fp.fma(b, s.high, s.high, b.negative(z))
    z_low = fp.fma(b, fp.add(b, s.high, s.high), s.low, z_low)
    r = fp.quick_sum(b, real(TWO_THIRDS[0]), fp.mul(b, z, fp.polynomial(b, z, *NEXT)))
    r = fp.Pair(r.high, fp.add(b, r.low, real(TWO_THIRDS[1])))
    cube = fp.pair_product(b, fp.pair_product(b, s, fp.Pair(z, z_low)), r)
    part = fp.quick_sum(b, fp.add(b, s.high, s.high), cube.high)
    low = fp.fma(b, s.low, real(2.0), fp.add(b, part.low, cube.low))
    total = fp.quick_sum(b, fp.mul(b, k, real(LOG_2[0])), part.high)
    low = fp.add(b, fp.fma(b, k, real(LOG_2[1]), low), total.low)
    return fp.quick_sum(b, total.high, low)


def single(x: Value) -> fp.Pair:
    return fp.Pair(x, real(0.0))


def log_hypot(b: Builder, x: Value, y: Value) -> Value:
    """log(sqrt(x^2 + y^2)), exact also where that is near 1."""
    first, second = fp.fabs(b, x), fp.fabs(b, y)
    large, small = b.call("maxnum", first, second), b.call("minnum", first, second)
    huge, tiny = b.op("fcmp ogt", large, real(2.0**500)), fp.less(b, large, real(2.0**-500))
    scale = b.select(huge, real(2.0**-600), b.select(tiny, real(2.0**600), real(1.0)))
    power = b.select(huge, real(600.0), b.select(tiny, real(-600.0), real(0.0)))
    p, q = fp.mul(b, large, scale), fp.mul(b, small, scale)
    square = fp.pair_sum(b, fp.product_of(b, p, p), fp.product_of(b, q, q))
    y_of_one = log_of_pair(b, square)
    half = fp.Pair(fp.mul(b, y_of_one.high, real(0.5)), fp.mul(b, y_of_one.low, real(0.5)))
    shift = fp.pair_times(b, fp.constant_pair(*LOG_2_PAIR), power)
    found = at_edges(b, square.high, fp.pair_sum(b, shift, half).high)
    found = b.select(b.op("fcmp uno", x, y), fp.NAN, found)
    endless = b.op("or", fp.equal(b, first, fp.INF), fp.equal(b, second, fp.INF))
    return b.select(endless, fp.INF, found)


def log2(b: Builder, x: Value) -> Value:
    """k + log(m) / log(2), with what the sum and the product lose."""
    k, part, lost = log_in_base(b, x, PER_LOG_2)
    total = fp.sum_of(b, k, part)
    return at_edges(b, x, fp.add(b, total.high, fp.add(b, total.low, lost)))


def log10(b: Builder, x: Value) -> Value:
    """k log10(2) + log(m) / log(10), with what the sum and the products lose."""
    k, part, lost = log_in_base(b, x, PER_LOG_10)
    total = fp.sum_of(b, fp.mul(b, k, real(LOG10_2[0])), part)
    low = fp.fma(b, k, real(LOG10_2[1]), fp.add(b, total.low, lost))
    return at_edges(b, x, fp.add(b, total.high, low))


def log_in_base(b: Builder, x: Value, factor: tuple[float, float]) -> tuple[Value, Value, Value]:
    """k, and log(m) times a factor, as a sum."""
    k, m = split(b, x)
    f = fp.sub(b, m, real(1.0))
    s = fp.div(b, f, fp.add(b, f, real(2.0)))
    z = fp.mul(b, s, s)
    half = fp.mul(b, fp.mul(b, f, f), real(0.5))
    t = fp.fma(b, b.negative(s), fp.fma(b, z, fp.polynomial(b, z, *SERIES), half), half)
    log = fp.quick_sum(b, f, b.negative(t))
    part = fp.mul(b, log.high, real(factor[0]))
    lost = fp.fma(b, log.high, real(factor[0]), b.negative(part))
    return k, part, fp.fma(b, log.low, real(factor[0]), fp.fma(b, log.high, real(factor[1]), lost))


def log1p(b: Builder, x: Value) -> Value:
    """As `log` of 1 + x, but what the sum loses is part of m - 1."""
    u = fp.sum_of(b, real(1.0), b.select(fp.equal(b, x, fp.INF), real(1.0), x))
    y = at_edges(b, u.high, log_of_sum(b, u))
    y = b.select(fp.equal(b, x, fp.INF), fp.INF, y)
    return b.select(fp.less(b, fp.fabs(b, x), real(2.0**-60)), x, y)


def log_of_sum(b: Builder, u: fp.Pair, doubled: Value = FALSE) -> Value:
    """log(u) of a normal u > 0, plus log(2) where `doubled`."""
    n, m = split_normal(b, u.high)
    k = b.convert("sitofp", n, "f64")
    k = k if doubled is FALSE else b.select(doubled, fp.add(b, k, real(1.0)), k)
    back = fp.power_of_two(b, b.op("sub", integer(0), b.call("smin", n, integer(1022))))
    f = fp.quick_sum(b, fp.sub(b, m, real(1.0)), fp.mul(b, u.low, back))
    s = fp.div(b, f.high, fp.add(b, f.high, real(2.0)))
    z = fp.mul(b, s, s)
    r = fp.mul(b, fp.polynomial(b, z, *SERIES), z)
    half = fp.mul(b, fp.mul(b, f.high, f.high), real(0.5))
    low = fp.fma(b, k, real(LOG_2[1]), fp.fma(b, b.negative(f.high), f.low, f.low))
    t = fp.fma(b, s, fp.add(b, half, r), low)
    t = fp.sub(b, fp.sub(b, half, t), f.high)
    return fp.fma(b, k, real(LOG_2[0]), b.negative(t))


def log1p_of_part(b: Builder, x: Value) -> Value:
    """log(1 + x) of an x from 0 to 1: as `log` of 1 + x, or of half of it, whose m - 1 is exact."""
    large = b.op("fcmp ogt", x, real(math.sqrt(2) - 1))
    f = b.select(large, fp.fma(b, x, real(0.5), real(-0.5)), x)
    s = fp.div(b, f, fp.add(b, f, real(2.0)))
    z = fp.mul(b, s, s)
    half = fp.mul(b, fp.mul(b, f, f), real(0.5))
    r = fp.fma(b, fp.polynomial(b, z, *SERIES), z, half)
    t = fp.fma(b, s, r, b.select(large, real(LOG_2[1]), real(0.0)))
    t = fp.sub(b, fp.sub(b, half, t), f)
    return fp.sub(b, b.select(large, real(LOG_2[0]), real(0.0)), t)


def plus_one(b: Builder, x: fp.Pair) -> fp.Pair:
    """1 + x"""
    total = fp.sum_of(b, real(1.0), x.high)
    return fp.Pair(total.high, fp.add(b, total.low, x.low))


def softplus(b: Builder, x: Value) -> Value:
    """max(x, 0) + log(1 + e^-|x|)"""
    above = b.select(b.op("fcmp ogt", x, real(0.0)), x, real(0.0))
    return unknown_too(b, fp.add(b, above, log1p_of_part(b, exp(b, b.negative(fp.fabs(b, x))))), x)


def unknown_too(b: Builder, y: Value, x: Value) -> Value:
    return b.select(b.op("fcmp uno", x, x), x, y)


def logaddexp(b: Builder, x: Value, y: Value) -> Value:
    """The larger one + log(1 + e^-|x - y|)"""
    large = b.call("maximum", x, y)
    apart = b.negative(fp.fabs(b, fp.sub(b, x, y)))
    found = fp.add(b, large, log1p_of_part(b, exp(b, apart)))
    found = b.select(b.op("fcmp uno", x, y), fp.NAN, found)
    return b.select(fp.equal(b, x, y), fp.add(b, x, real(math.log(2))), found)


def logaddexp2(b: Builder, x: Value, y: Value) -> Value:
    from .exponential import exp2

    large = b.call("maximum", x, y)
    apart = b.negative(fp.fabs(b, fp.sub(b, x, y)))
    more = fp.mul(b, log1p_of_part(b, exp2(b, apart)), real(PER_LOG_2[0]))
    found = b.select(b.op("fcmp uno", x, y), fp.NAN, fp.add(b, large, more))
    return b.select(fp.equal(b, x, y), fp.add(b, x, real(1.0)), found)


# ---- inverse hyperbolic functions


def arcsinh(b: Builder, x: Value) -> Value:
    """log(1 + a + a^2 / (1 + sqrt(1 + a^2))), where a = |x|; log(2a) where that is the same."""
    a = fp.fabs(b, x)
    large = b.op("fcmp ogt", a, real(2.0**30))
    safe = b.select(large, real(1.0), a)
    square = fp.mul(b, safe, safe)
    root = b.call("sqrt", fp.add(b, square, real(1.0)))
    one = plus_one(b, fp.quick_sum(b, safe, fp.div(b, square, fp.add(b, root, real(1.0)))))
    start = fp.Pair(b.select(large, a, one.high), b.select(large, real(0.0), one.low))
    found = log_of_sum(b, start, large)
    found = b.select(fp.less(b, a, real(2.0**-28)), a, found)
    found = b.select(fp.less(b, a, fp.INF), found, a)
    return fp.copysign(b, found, x)


def arccosh(b: Builder, x: Value) -> Value:
    """log(1 + t + sqrt(t (t + 2))), where t = x - 1; log(2x) where that is the same."""
    large = b.op("fcmp ogt", x, real(2.0**30))
    t = b.select(large, real(1.0), fp.sub(b, x, real(1.0)))
    root = b.call("sqrt", fp.fma(b, t, t, fp.add(b, t, t)))
    one = plus_one(b, fp.quick_sum(b, root, t))
    start = fp.Pair(b.select(large, x, one.high), b.select(large, real(0.0), one.low))
    found = log_of_sum(b, start, large)
    found = b.select(b.op("fcmp ult", x, real(1.0)), fp.NAN, found)
    return b.select(fp.equal(b, x, fp.INF), fp.INF, found)


def arctanh(b: Builder, x: Value) -> Value:
    """log(1 + 2a / (1 - a)) / 2, where a = |x|."""
    a = fp.fabs(b, x)
    safe = b.select(fp.less(b, a, real(1.0)), a, real(0.5))
    below = fp.sum_of(b, real(1.0), b.negative(safe))
    ratio = fp.pair_quotient(b, single(fp.add(b, safe, safe)), below)
    found = fp.mul(b, log_of_sum(b, plus_one(b, ratio)), real(0.5))
    found = b.select(fp.less(b, a, real(2.0**-28)), a, found)
    found = b.select(fp.equal(b, a, real(1.0)), fp.INF, found)
    found = b.select(b.op("fcmp ugt", a, real(1.0)), fp.NAN, found)
    return fp.copysign(b, found, x)
