"""Exponentials, and the hyperbolic functions made of them."""

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
LOG_2 = 0.693147180369123816490, 1.90821492927058770002e-10
"""log(2) as a sum, whose first part has so many zeros at its end that small multiples are exact."""


def nearest(b: Builder, x: Value, factor: float) -> tuple[Value, Value]:
    """The integer nearest to x * factor, as a float and as an integer."""
    shifted = fma(b, x, real(factor), real(SHIFT))
    whole = sub(b, shifted, real(SHIFT))
    n = b.op("sub", bits_of(b, shifted), integer(0x4338000000000000))
    return whole, n


def tail(b: Builder, r: Value) -> Value:
    """(e^r - 1 - r) / r^2 for |r| <= log(2) / 2"""
    return polynomial(b, r, *[1 / math.factorial(n) for n in range(2, 14)])


def reduced(b: Builder, x: Value) -> tuple[Value, Pair]:
    """n and e^r - 1, where x = n log(2) + r."""
    whole, n = nearest(b, x, 1 / math.log(2))
    high = fma(b, whole, real(-LOG_2[0]), x)
    r = fma(b, whole, real(-LOG_2[1]), high)
    lost = fma(b, whole, real(-LOG_2[1]), sub(b, high, r))
    part = quick_sum(b, r, mul(b, mul(b, r, r), tail(b, r)))
    return n, Pair(part.high, add(b, part.low, lost))


def scaled(b: Builder, x: Value, n: Value) -> Value:
    """x * 2^n, in two steps: 2^n itself may be no float."""
    half = b.op("ashr", n, integer(1))
    first = mul(b, x, power_of_two(b, half))
    return mul(b, first, power_of_two(b, b.op("sub", n, half)))


def exp(b: Builder, x: Value) -> Value:
    x = clamp(b, x, -746.0, 710.0)
    whole, n = nearest(b, x, 1 / math.log(2))
    r = fma(b, whole, real(-LOG_2[0]), x)
    r = fma(b, whole, real(-LOG_2[1]), r)
    part = fma(b, mul(b, r, r), tail(b, r), r)
    return scaled(b, add(b, part, real(1.0)), n)


def expm1_pair(b: Builder, x: Value) -> Pair:
    """e^x - 1 for x from -40 to 709."""
    n, part = reduced(b, x)
    scale = power_of_two(b, n)
    total = sum_of(b, sub(b, scale, real(1.0)), mul(b, scale, part.high))
    return quick_sum(b, total.high, fma(b, scale, part.low, total.low))


def expm1(b: Builder, x: Value) -> Value:
    n, part = reduced(b, clamp(b, x, -40.0, 709.79))
    half = power_of_two(b, b.op("sub", n, integer(1)))  # 2^1024 is no float
    whole = sub(b, half, real(0.5))
    total = sum_of(b, whole, mul(b, half, part.high))
    y = add(b, total.high, fma(b, half, part.low, total.low))
    y = add(b, y, y)
    y = b.select(b.op("fcmp ogt", x, real(709.782712893384)), INF, y)
    return b.select(equal(b, x, real(0.0)), x, y)


def tanh(b: Builder, x: Value) -> Value:
    """E / (E + 2), where E = e^2x - 1."""
    size = fabs(b, x)
    size = b.select(b.op("fcmp ogt", size, real(20.0)), real(20.0), size)
    top = expm1_pair(b, add(b, size, size))
    below = sum_of(b, real(2.0), top.high)
    lower = add(b, below.low, top.low)
    inverse = div(b, real(1.0), below.high)
    y = mul(b, top.high, inverse)
    minus = neg(b, y)
    left = add(b, fma(b, minus, below.high, top.high), fma(b, minus, lower, top.low))
    return copysign(b, fma(b, left, inverse, y), x)
