"""Exponentials, and the hyperbolic functions made of them.

e^x = 2^n e^r, where r is x less a multiple of log(2), and e^r - 1 = r + r^2 q(r).
"""

from __future__ import annotations

import math

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

from .pairs import (
    INF,
    Pair,
    add,
    bits_of,
    clamp,
    copysign,
    div,
    equal,
    fabs,
    fma,
    mul,
    neg,
    polynomial,
    power_of_two,
    quick_sum,
    sub,
    sum_of,
)

SHIFT = 1.5 * 2**52
"""Added to a float it leaves the nearest integer, in the last bits."""
LOG_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log(2) as a sum, whose first part ends in zeros, so that its small multiples are exact."""
LOG_2_PAIR = 0.6931471805599453, 2.3190468138462996e-17

TAIL = (
    *(0.5, 0.16666666666666685, 0.04166666666666672, 0.008333333333316744),
    *(0.0013888888888858996, 0.00019841269897049083, 2.4801587372762216e-05),
    *(2.7557234244413105e-06, 2.7557234119311747e-07, 2.5112237810411726e-08),
    2.092672782027769e-09,
)
"""q to 5e-20 of e^r"""
MIDDLE_TAIL = (
    *(0.5000000000000012, 0.166666666666667, 0.04166666666651546, 0.00833333333330763),
    *(0.0013888888947008553, 0.0001984126991647832, 2.4801489947158682e-05),
    *(2.7557217078635575e-06, 2.763127935846449e-07, 2.5117626174824666e-08),
)
"""q to 4e-18 of e^r"""
SHORT_TAIL = (
    *(0.5000000077861173, 0.16666666861869045, 0.04166626998150911),
    *(0.008333264194100555, 0.0013946073287344563, 0.00019918438071950864),
)
"""q to 5e-11 of e^r"""


def nearest(b: Builder, x: Value, factor: float) -> tuple[Value, Value]:
    """The integer nearest to x * factor, as a float and in the last bits of an integer."""
    shifted = fma(b, x, real(factor), real(SHIFT))
    return sub(b, shifted, real(SHIFT)), bits_of(b, shifted)


def remainder(b: Builder, x: Value, low: Value | None = None) -> tuple[Value, Pair]:
    """n and r, where x + low = n log(2) + r."""
    whole, n = nearest(b, x, 1 / math.log(2))
    high = fma(b, whole, real(-LOG_2[0]), x)
    r = fma(b, whole, real(-LOG_2[1]), high)
    lost = fma(b, whole, real(-LOG_2[1]), sub(b, high, r))
    return n, Pair(r, lost if low is None else add(b, lost, low))


def less_one(b: Builder, r: Pair) -> Pair:
    """e^r - 1"""
    part = quick_sum(b, r.high, mul(b, mul(b, r.high, r.high), polynomial(b, r.high, *TAIL)))
    return Pair(part.high, fma(b, r.low, add(b, part.high, real(1.0)), part.low))


def scaled(b: Builder, x: Value, n: Value) -> Value:
    """x * 2^n, in two steps: 2^n itself may be no float. n is in the last bits."""
    half = b.op("lshr", n, integer(1))
    first = mul(b, x, power_of_two(b, half))
    return mul(b, first, power_of_two(b, b.op("sub", n, half)))


def exp(b: Builder, x: Value) -> Value:
    x = clamp(b, x, -746.0, 710.0)
    whole, n = nearest(b, x, 1 / math.log(2))
    r = fma(b, whole, real(-LOG_2[0]), x)
    r = fma(b, whole, real(-LOG_2[1]), r)
    part = fma(b, mul(b, r, r), polynomial(b, r, *MIDDLE_TAIL), r)
    return scaled(b, add(b, part, real(1.0)), n)


def short_exp(b: Builder, x: Value) -> Value:
    """For float32, whose powers of two are floats throughout."""
    x = clamp(b, x, -150.0, 130.0)
    whole, n = nearest(b, x, 1 / math.log(2))
    r = fma(b, whole, real(-LOG_2_PAIR[0]), x)
    part = fma(b, mul(b, r, r), polynomial(b, r, *SHORT_TAIL), r)
    scale = power_of_two(b, n)
    return fma(b, part, scale, scale)


def exp_of_pair(b: Builder, x: Pair) -> tuple[Pair, Value]:
    """e^x as a pair from 0.7 to 1.42, and the power of two it is to be scaled by."""
    n, r = remainder(b, x.high, x.low)
    part = less_one(b, r)
    total = quick_sum(b, real(1.0), part.high)
    return Pair(total.high, add(b, total.low, part.low)), n


def exp2(b: Builder, x: Value) -> Value:
    x = clamp(b, x, -1080.0, 1025.0)
    whole, n = nearest(b, x, 1.0)
    left = sub(b, x, whole)
    r = mul(b, left, real(LOG_2_PAIR[0]))
    lost = fma(b, left, real(LOG_2_PAIR[0]), neg(b, r))
    part = less_one(b, Pair(r, fma(b, left, real(LOG_2_PAIR[1]), lost)))
    return scaled(b, add(b, real(1.0), add(b, part.high, part.low)), n)


def half_expm1(b: Builder, x: Value) -> Pair:
    """(e^x - 1) / 2 for x from -40 to 710.5; quarters have powers of two that are floats."""
    n, r = remainder(b, x)
    part = less_one(b, r)
    scale = power_of_two(b, b.op("sub", n, integer(2)))
    total = sum_of(b, sub(b, scale, real(0.25)), mul(b, scale, part.high))
    total = quick_sum(b, total.high, fma(b, scale, part.low, total.low))
    return Pair(add(b, total.high, total.high), add(b, total.low, total.low))


def expm1(b: Builder, x: Value) -> Value:
    half = half_expm1(b, clamp(b, x, -40.0, 709.79))
    y = add(b, half.high, half.high)
    y = b.select(b.op("fcmp ogt", x, real(709.782712893384)), INF, y)
    return b.select(less_than(b, x, 2.0**-1020), x, y)


def less_than(b: Builder, x: Value, limit: float) -> Value:
    return b.op("fcmp olt", fabs(b, x), real(limit))


def short_expm1(b: Builder, x: Value) -> Value:
    x = clamp(b, x, -40.0, 130.0)
    whole, n = nearest(b, x, 1 / math.log(2))
    r = fma(b, whole, real(-LOG_2_PAIR[0]), x)
    part = fma(b, mul(b, r, r), polynomial(b, r, *SHORT_TAIL), r)
    scale = power_of_two(b, n)
    y = fma(b, part, scale, sub(b, scale, real(1.0)))
    return b.select(equal(b, x, real(0.0)), x, y)


def tanh(b: Builder, x: Value) -> Value:
    """H / (H + 1), where H = (e^2|x| - 1) / 2."""
    size = fabs(b, x)
    size = b.select(b.op("fcmp ogt", size, real(20.0)), real(20.0), size)
    return copysign(b, add(b, *part_of_one(b, half_expm1(b, add(b, size, size)), 1.0)), x)


def part_of_one(b: Builder, top: Pair, one: float, factor: float = 1.0) -> Pair:
    """h / (factor h + one) for a pair h from 0 on."""
    below = sum_of(b, real(one), mul(b, top.high, real(factor)))
    lower = fma(b, top.low, real(factor), below.low)
    inverse = div(b, real(1.0), below.high)
    y = mul(b, top.high, inverse)
    minus = neg(b, y)
    left = add(b, fma(b, minus, below.high, top.high), fma(b, minus, lower, top.low))
    return Pair(y, mul(b, left, inverse))


def short_tanh(b: Builder, x: Value) -> Value:
    size = fabs(b, x)
    size = b.select(b.op("fcmp ogt", size, real(20.0)), real(20.0), size)
    top = short_expm1(b, add(b, size, size))
    return copysign(b, div(b, top, add(b, top, real(2.0))), x)


def sinh(b: Builder, x: Value) -> Value:
    """H + H / (2H + 1), where H = (e^|x| - 1) / 2."""
    size = fabs(b, x)
    half = half_expm1(b, clamp(b, size, 0.0, 710.4757))
    rest = part_of_one(b, half, 1.0, 2.0)
    large = b.op("fcmp ogt", size, real(40.0))
    more = b.select(large, real(0.0), rest.high)
    total = quick_sum(b, half.high, more)
    low = add(b, half.low, b.select(large, real(0.0), rest.low))
    y = add(b, total.high, add(b, total.low, low))
    y = b.select(b.op("fcmp ogt", size, real(710.4758600739439)), INF, y)
    return copysign(b, b.select(less_than(b, x, 2.0**-1020), size, y), x)


def cosh(b: Builder, x: Value) -> Value:
    """h + 1/4h, where h = e^|x| / 2."""
    size = clamp(b, fabs(b, x), 0.0, 711.0)
    one, n = exp_of_pair(b, Pair(size, real(0.0)))
    half = scaled(b, one.high, b.op("sub", n, integer(1)))
    low = scaled(b, one.low, b.op("sub", n, integer(1)))
    return add(b, half, add(b, low, div(b, real(0.25), half)))


def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + e), or e / (1 + e) below 0, where e = e^-|x|."""
    one, n = exp_of_pair(b, Pair(clamp(b, neg(b, fabs(b, x)), -745.2, 0.0), real(0.0)))
    high, low = scaled(b, one.high, n), scaled(b, one.low, n)
    below = quick_sum(b, real(1.0), high)
    lower = add(b, below.low, low)
    top = b.select(b.op("fcmp olt", x, real(0.0)), high, real(1.0))
    top_low = b.select(b.op("fcmp olt", x, real(0.0)), low, real(0.0))
    inverse = div(b, real(1.0), below.high)
    y = mul(b, top, inverse)
    left = fma(b, neg(b, y), below.high, top)
    left = add(b, left, fma(b, neg(b, y), lower, top_low))
    return fma(b, left, inverse, y)


def short_sigmoid(b: Builder, x: Value) -> Value:
    power = short_exp(b, neg(b, fabs(b, x)))
    top = b.select(b.op("fcmp olt", x, real(0.0)), power, real(1.0))
    return div(b, top, add(b, power, real(1.0)))
