"""Exponentials, and the hyperbolic functions made of them.

e^x = 2^n e^r, where r is x less a multiple of log(2), and e^r - 1 = r + r^2 q(r).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

from . import floats as fp

SHIFT = 1.5 * 2**52
"""Added to a float it leaves the nearest integer, in the last bits."""
SHORT_SHIFT = 1.5 * 2**23
"""The same for float32."""
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

TWICE = (
    *(2.0000000000000004, 1.3333333333333335, 0.6666666666659812, 0.26666666666656125),
    *(0.08888888907114932, 0.025396825424859593, 0.00634918939081426, 0.0014109321357775716),
    *(0.00028283086429216304, 5.140576769166335e-05),
)
"""(e^2r - 1 - 2r) / r^2, to 2e-17 of e^2r, for |r| up to log(2) / 4"""
TANGENT = (
    *(-0.33333333333333326, 0.13333333333330114, -0.0539682539646764, 0.021869488380670713),
    *(-0.008863232053378519, 0.003592082500984208, -0.0014554603412882216),
    *(0.000588035705567165, -0.00023220508430289748, 8.148418109987203e-05),
    -1.8299122136886595e-05,
)
"""(tanh(x) / x - 1) / x^2 by x^2, to 3e-17 of the tangent, for |x| up to 0.6"""
EVEN = (
    *(0.5000000000000001, 0.041666666666623824, 0.0013888888917367081),
    *(2.4801521057868204e-05, 2.7620201591031547e-07),
)
"""(cosh(r) - 1) / r^2 by r^2, to 2e-17, for |r| up to log(2) / 2"""
ODD = (
    *(0.16666666666666669, 0.008333333333330039, 0.00019841269863171557),
    *(2.7557268276905696e-06, 2.5100472505694996e-08),
)
"""(sinh(r) / r - 1) / r^2 by r^2, to 3e-18 of the sine"""


def nearest(b: Builder, x: Value, factor: float) -> tuple[Value, Value]:
    """The integer nearest to x * factor, as a float and in the last bits of an integer."""
    shift = real(SHIFT if x.kind == "f64" else SHORT_SHIFT, x.kind)
    shifted = fp.fma(b, x, real(factor, x.kind), shift)
    return fp.sub(b, shifted, shift), fp.bits_of(b, shifted)


def reduced(b: Builder, x: Value) -> tuple[Value, Value]:
    """n in the last bits, and r, where x = n log(2) + r."""
    whole, n = nearest(b, x, 1 / math.log(2))
    r = fp.fma(b, whole, real(-LOG_2[0]), x)
    return n, fp.fma(b, whole, real(-LOG_2[1]), r)


def remainder(b: Builder, x: Value, low: Value | None = None) -> tuple[Value, fp.Pair]:
    """n and r, where x + low = n log(2) + r."""
    whole, n = nearest(b, x, 1 / math.log(2))
    high = fp.fma(b, whole, real(-LOG_2[0]), x)
    r = fp.fma(b, whole, real(-LOG_2[1]), high)
    lost = fp.fma(b, whole, real(-LOG_2[1]), fp.sub(b, high, r))
    return n, fp.Pair(r, lost if low is None else fp.add(b, lost, low))


def less_one(b: Builder, r: fp.Pair) -> fp.Pair:
    """e^r - 1"""
    part = fp.quick_sum(
        b, r.high, fp.mul(b, fp.mul(b, r.high, r.high), fp.polynomial(b, r.high, *TAIL))
    )
    return fp.Pair(part.high, fp.fma(b, r.low, fp.add(b, part.high, real(1.0)), part.low))


def scaled(b: Builder, x: Value, n: Value) -> Value:
    """x * 2^n, in two steps: 2^n itself may be no float. n is in the last bits."""
    half = b.op("lshr", n, integer(1, n.kind))
    first = fp.mul(b, x, fp.power_of_two(b, half))
    return fp.mul(b, first, fp.power_of_two(b, b.op("sub", n, half)))


def raised(b: Builder, x: Value, n: Value, low: Value) -> Value:
    """x * 2^n for an x from 1/2 to 2; where it is `low` it may be less than normal floats.

    n is in the last bits: it is added to the exponent, as 2^n itself may be no float.
    """
    up = b.select(low, b.op("add", n, integer(128)), n)
    y = b.op("add", fp.bits_of(b, x), b.op("shl", up, integer(52)))
    y = b.convert("bitcast", y, "f64")
    return b.select(low, fp.mul(b, y, real(2.0**-128)), y)


def multiplied(
    b: Builder, total: Value, n: Value, x: Value, near: float, least: float, most: float
) -> Value:
    """total * 2^n, for the exponential of x: 0 below `least`; infinite above `most`, or nan.

    Where all lanes are closer to 0 than `near` none of the work for these limits is done.
    """

    def far() -> Sequence[Value]:
        y = raised(b, total, n, fp.less(b, x, real(-near)))
        y = b.select(fp.less(b, x, real(least)), real(0.0), y)
        return [b.select(b.op("fcmp ole", x, real(most)), y, fp.mul(b, x, fp.INF))]

    def plain() -> Sequence[Value]:
        up = b.op("add", fp.bits_of(b, total), b.op("shl", n, integer(52)))
        return [fp.float_of(b, up)]

    outside = b.neither(less_than(b, x, near))
    return b.branch(b.any_lane(outside), far, plain)[0]


def exp(b: Builder, x: Value) -> Value:
    """Where it is beyond all floats it is infinite, or nan where x is."""
    n, r = reduced(b, x)
    part = fp.fma(b, fp.mul(b, r, r), fp.polynomial(b, r, *MIDDLE_TAIL), r)
    return multiplied(b, fp.add(b, part, real(1.0)), n, x, 600.0, -746.0, 709.782712893384)


def exp_of_pair(b: Builder, x: fp.Pair) -> tuple[fp.Pair, Value]:
    """e^x as a pair from 0.7 to 1.42, and the power of two it is to be scaled by."""
    n, r = remainder(b, x.high, x.low)
    part = less_one(b, r)
    total = fp.quick_sum(b, real(1.0), part.high)
    return fp.Pair(total.high, fp.add(b, total.low, part.low)), n


def exp2(b: Builder, x: Value) -> Value:
    """As e^r, where what the product r with log(2) loses is added."""
    whole, n = nearest(b, x, 1.0)
    left = fp.sub(b, x, whole)
    r = fp.mul(b, left, real(LOG_2_PAIR[0]))
    lost = fp.fma(b, left, real(LOG_2_PAIR[0]), b.negative(r))
    lost = fp.fma(b, left, real(LOG_2_PAIR[1]), lost)
    part = fp.add(b, r, fp.fma(b, fp.mul(b, r, r), fp.polynomial(b, r, *MIDDLE_TAIL), lost))
    most = math.nextafter(1024.0, 0.0)
    return multiplied(b, fp.add(b, part, real(1.0)), n, x, 900.0, -1080.0, most)


def half_expm1(b: Builder, x: Value) -> fp.Pair:
    """(e^x - 1) / 2 for x from -40 to 710.5; quarters have powers of two that are floats."""
    n, r = remainder(b, x)
    part = less_one(b, r)
    scale = fp.power_of_two(b, b.op("sub", n, integer(2)))
    total = fp.sum_of(b, fp.sub(b, scale, real(0.25)), fp.mul(b, scale, part.high))
    total = fp.quick_sum(b, total.high, fp.fma(b, scale, part.low, total.low))
    return fp.Pair(fp.add(b, total.high, total.high), fp.add(b, total.low, total.low))


def expm1(b: Builder, x: Value) -> Value:
    half = half_expm1(b, fp.clamp(b, x, -40.0, 709.79))
    y = fp.add(b, half.high, half.high)
    y = b.select(b.op("fcmp ogt", x, real(709.782712893384)), fp.INF, y)
    return b.select(less_than(b, x, 2.0**-1020), x, y)


def less_than(b: Builder, x: Value, limit: float) -> Value:
    return b.op("fcmp olt", fp.fabs(b, x), real(limit))


def odd(b: Builder, x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """x + x^3 p(x^2)"""
    return fp.fma(b, fp.mul(b, x, square), fp.polynomial(b, square, *coefficients), x)


def tanh(b: Builder, x: Value) -> Value:
    """x + x^3 p(x^2) near 0, else 1 - 2 / (e^2|x| + 1)."""
    size = fp.fabs(b, x)
    size = b.select(b.op("fcmp ogt", size, real(20.0)), real(20.0), size)
    near = odd(b, size, fp.mul(b, size, size), TANGENT)
    whole, n = nearest(b, size, 2 / math.log(2))
    r = fp.fma(b, whole, real(-LOG_2[1] / 2), fp.fma(b, whole, real(-LOG_2[0] / 2), size))
    part = fp.fma(b, fp.mul(b, r, r), fp.polynomial(b, r, *TWICE), fp.add(b, r, r))
    scale = fp.power_of_two(b, n)
    below = fp.add(b, fp.fma(b, part, scale, scale), real(1.0))
    far = fp.sub(b, real(1.0), fp.div(b, real(2.0), below))
    return fp.copysign(b, b.select(b.op("fcmp ogt", size, real(0.6)), far, near), x)


class Halves(NamedTuple):
    """x = n log(2) + r: sinh(r), cosh(r) - 1, and their factors in a quarter of those of x."""

    sine: Value
    more: Value
    total: Value
    difference: Value


def halves(b: Builder, n: Value, r: Value, even: Sequence[float], odds: Sequence[float]) -> Halves:
    """Of x from 0 to where its cosine overflows: 2^(n-2) and 2^(-n-2), added and subtracted."""
    z = fp.mul(b, r, r)
    up = fp.power_of_two(b, b.op("sub", n, integer(2, n.kind)))
    product = 2042 << 52 if n.kind == "i64" else 250 << 23  # of both, as exponents in their places
    least = b.op("sub", integer(product, n.kind), fp.bits_of(b, up))
    down = fp.float_of(b, b.call("smax", least, integer(0, n.kind)))
    more = fp.mul(b, z, fp.polynomial(b, z, *even))
    return Halves(odd(b, r, z, odds), more, fp.add(b, up, down), fp.sub(b, up, down))


def sine_of(b: Builder, h: Halves, low: Value | None = None) -> Value:
    """sinh(x + low), as the sine of a sum: near 0 one of the factors is 0."""
    y = fp.mul(b, h.more, h.difference)
    y = y if low is None else fp.fma(b, low, h.total, y)
    y = fp.fma(b, h.sine, h.total, y)
    y = fp.add(b, h.difference, y)
    return fp.add(b, y, y)


def cosine_of(b: Builder, h: Halves) -> Value:
    """cosh(x), as the cosine of a sum."""
    y = fp.fma(b, h.more, h.total, fp.mul(b, h.sine, h.difference))
    y = fp.add(b, h.total, y)
    return fp.add(b, y, y)


def at_most(b: Builder, x: Value, most: float) -> Value:
    """|x| up to a limit beyond which hyperbolic functions are infinite."""
    size, limit = fp.fabs(b, x), real(most, x.kind)
    return b.select(b.op("fcmp ogt", size, limit), limit, size)


def sinh(b: Builder, x: Value) -> Value:
    n, r = remainder(b, at_most(b, x, 710.6))
    y = sine_of(b, halves(b, n, r.high, EVEN, ODD), r.low)
    return b.select(less_than(b, x, 2.0**-60), x, fp.copysign(b, y, x))


def cosh(b: Builder, x: Value) -> Value:
    return cosine_of(b, halves(b, *reduced(b, at_most(b, x, 710.6)), EVEN, ODD))


def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + e), or e / (1 + e) below 0, where e = e^-|x|."""
    one, n = exp_of_pair(b, fp.Pair(fp.clamp(b, b.negative(fp.fabs(b, x)), -745.2, 0.0), real(0.0)))
    high, low = scaled(b, one.high, n), scaled(b, one.low, n)
    below = fp.quick_sum(b, real(1.0), high)
    lower = fp.add(b, below.low, low)
    top = b.select(b.op("fcmp olt", x, real(0.0)), high, real(1.0))
    top_low = b.select(b.op("fcmp olt", x, real(0.0)), low, real(0.0))
    inverse = fp.div(b, real(1.0), below.high)
    y = fp.mul(b, top, inverse)
    left = fp.fma(b, b.negative(y), below.high, top)
    left = fp.add(b, left, fp.fma(b, b.negative(y), lower, top_low))
    return fp.fma(b, left, inverse, y)


def sigmoid_slope(b: Builder, x: Value, y: Value) -> Value:
    """y (1 - y), and y^2 e^-x where 1 - y has lost digits"""
    near, far = fp.mul(b, y, fp.sub(b, real(1.0), y)), b.op("fcmp ogt", x, real(7.0))

    def beyond() -> Sequence[Value]:
        return [b.select(far, fp.mul(b, fp.mul(b, y, y), exp(b, b.negative(x))), near)]

    return b.branch(b.any_lane(far), beyond, lambda: [near])[0]


def tanh_slope(b: Builder, x: Value, y: Value) -> Value:
    """1 - y^2, and (1 + |y|)^2 e^(-2|x|) where 1 - |y| has lost digits"""
    near = fp.mul(b, fp.sub(b, real(1.0), y), fp.add(b, real(1.0), y))
    size = fp.fabs(b, x)
    far = b.op("fcmp ogt", size, real(4.0))

    def beyond() -> Sequence[Value]:
        above = fp.add(b, real(1.0), fp.fabs(b, y))
        power = exp(b, fp.mul(b, size, real(-2.0)))
        return [b.select(far, fp.mul(b, fp.mul(b, above, above), power), near)]

    return b.branch(b.any_lane(far), beyond, lambda: [near])[0]
