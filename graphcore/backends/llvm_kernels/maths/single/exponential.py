"""Exponentials of float32, and the hyperbolic functions made of them.

e^x = 2^n e^r, where r is x less a multiple of log(2), and e^r = 1 + r + r^2 q(r).
"""

from __future__ import annotations

import math

from graphcore.backends.llvm_kernels.builder import Builder, Value
from graphcore.backends.llvm_kernels.maths import floats as fp
from graphcore.backends.llvm_kernels.maths.exponential import (
    at_most,
    cosine_of,
    halves,
    nearest,
    sine_of,
)

from . import pieces

LOG_2 = 0.693147182464599609375, -1.904654299957767e-09
"""log(2) as a sum of two float32: with fused multiply-add the first product is exact."""
EXP = (
    *(0.5, 0.1666651964187622, 0.04166639223694801),
    *(0.008368832059204578, 0.0013941535726189613),
)
"""q, to 3.3e-9 of e^r"""
EXP2 = (
    *(0.6931471824645996, 0.24022650718688965, 0.055503591895103455),
    *(0.009618065319955349, 0.001339117530733347, 0.00015461664588656276),
)
"""(2^r - 1) / r, to 3.2e-9 of 2^r"""

TANGENT = (
    *(-0.33333298563957214, 0.13331931829452515, -0.05378406494855881),
    *(0.02079569734632969, -0.00589383440092206),
)
"""(tanh(x) / x - 1) / x^2 by x^2, to 2.9e-9 of the tangent, for |x| up to 0.6"""
TWICE = (
    *(2.0, 1.3333215713500977, 0.6666622757911682, 0.2678026258945465),
    0.08922582864761353,
)
"""(e^2r - 1 - 2r) / r^2, to 3.3e-9 of e^2r, for |r| up to log(2) / 4"""
EVEN = (0.5, 0.041666459292173386, 0.0013935437891632318)
"""(cosh(r) - 1) / r^2 by r^2, to 1e-10"""
ODD = (0.16666541993618011, 0.00836669746786356)
"""(sinh(r) / r - 1) / r^2 by r^2, to 1.4e-8 of the sine"""


def reduced(b: Builder, x: Value) -> tuple[Value, Value]:
    """n in the last bits, and r, where x = n log(2) + r."""
    times, n = nearest(b, x, 1 / math.log(2))
    r = fp.fma(b, times, pieces.number(-LOG_2[0]), x)
    return n, fp.fma(b, times, pieces.number(-LOG_2[1]), r)


def part_of(b: Builder, r: Value) -> Value:
    """e^r - 1"""
    return fp.fma(b, fp.mul(b, r, r), pieces.horner(b, r, *EXP), r)


def exp(b: Builder, x: Value) -> Value:
    """Where 2^n is too large for a float e^r is below 1."""
    n, r = reduced(b, b.select(fp.less(b, x, pieces.number(-104.0)), pieces.number(-104.0), x))
    low = fp.less(b, x, pieces.number(-60.0))
    y = pieces.in_binades(b, fp.add(b, part_of(b, r), pieces.ONE), n, low)
    return or_endless(b, fp.less(b, x, pieces.number(88.72283935546875)), y, x)


def exp2(b: Builder, x: Value) -> Value:
    bounded = b.select(fp.less(b, x, pieces.number(-151.0)), pieces.number(-151.0), x)
    times, n = nearest(b, bounded, 1.0)
    part = power_of_part(b, fp.sub(b, bounded, times))
    y = pieces.in_binades(b, part, n, fp.less(b, x, pieces.number(-60.0)))
    return or_endless(b, fp.less(b, x, pieces.number(128.0)), y, x)


def power_of_part(b: Builder, r: Value) -> Value:
    """2^r for |r| <= 1/2"""
    return fp.fma(b, r, pieces.horner(b, r, *EXP2), pieces.ONE)


def or_endless(b: Builder, fits: Value, y: Value, x: Value) -> Value:
    """`y` where that `fits`, else infinity, or nan where `x` is."""
    return b.select(fits, y, fp.mul(b, x, pieces.INF))


def expm1(b: Builder, x: Value) -> Value:
    """In halves, whose powers of two are floats."""
    n, r = reduced(b, fp.clamp(b, x, -20.0, 89.0))
    scale = fp.power_of_two(b, b.op("sub", n, pieces.whole(1)))
    half = fp.fma(b, part_of(b, r), scale, fp.sub(b, scale, pieces.HALF))
    return pieces.itself_near_0(b, x, fp.add(b, half, half))


def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + e), or e / (1 + e) below 0, where e = e^-|x|; 1 + e as a sum of two."""
    power = exp(b, b.negative(fp.fabs(b, x)))
    below = fp.quick_sum(b, pieces.ONE, power)
    inverse = fp.div(b, pieces.ONE, below.high)
    top = b.select(fp.less(b, x, pieces.ZERO), power, pieces.ONE)
    y = fp.mul(b, top, inverse)
    left = fp.fma(b, b.negative(y), below.low, fp.fma(b, b.negative(y), below.high, top))
    return fp.fma(b, left, inverse, y)


def tanh(b: Builder, x: Value) -> Value:
    """x + x^3 p(x^2) near 0, else 1 - 2 / (e^2|x| + 1)."""
    size = fp.fabs(b, x)
    size = b.select(b.op("fcmp ogt", size, pieces.number(10.0)), pieces.number(10.0), size)
    near = pieces.odd(b, size, fp.mul(b, size, size), *TANGENT)
    times, n = nearest(b, size, 2 / math.log(2))
    r = fp.fma(b, times, pieces.number(-LOG_2[0] / 2), size)
    power = pieces.horner(b, r, 1.0, 2.0, *TWICE)
    far = fp.sub(
        b,
        pieces.ONE,
        fp.div(b, pieces.number(2.0), fp.add(b, pieces.raised(b, power, n), pieces.ONE)),
    )
    return fp.copysign(b, b.select(b.op("fcmp ogt", size, pieces.number(0.6)), far, near), x)


def sinh(b: Builder, x: Value) -> Value:
    h = halves(b, *reduced(b, at_most(b, x, 89.6)), EVEN, ODD)
    return pieces.itself_near_0(b, x, fp.copysign(b, sine_of(b, h), x))


def cosh(b: Builder, x: Value) -> Value:
    return cosine_of(b, halves(b, *reduced(b, at_most(b, x, 89.6)), EVEN, ODD))
