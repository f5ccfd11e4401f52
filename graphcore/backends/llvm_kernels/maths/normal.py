"""The error function and the normal distribution.

Near 0 erf(x) = x + x p(x^2); from 1/2 on erfc(x) = e^(-x^2) g(t) / (1 + 2x) with the g of FAR.
"""

from __future__ import annotations

from graphcore.backends.error_function import FAR
from graphcore.backends.llvm_kernels.builder import Builder, Value, real

from . import floats as fp
from .exponential import exp_of_pair, scaled

NEAR = (
    *(0.1283791670955126, -0.3761263890318375, 0.11283791670954885, -0.026866170645077875),
    *(0.005223977624828431, -0.0008548326981425542, 0.0001205533113295582),
    *(-1.4925595772180906e-05, 1.64610084778027e-06, -1.6350396222864617e-07),
    *(1.466032872274226e-08, -1.137495573607015e-09, 5.960685338520971e-11),
)
"""p for |x| <= 1, to 2e-19"""
ROOT_HALF = 0.7071067811865476, -4.833646656726457e-17


def near(b: Builder, x: Value) -> Value:
    """erf(x) - x for |x| <= 1."""
    return fp.mul(b, x, fp.polynomial(b, fp.mul(b, x, x), *NEAR))


def far(b: Builder, x: fp.Pair, factor: float = 1.0) -> Value:
    """factor erfc(x) for x >= 1/2; `factor` is a power of two."""
    below = fp.sum_of(b, x.high, real(3.0))
    t = fp.div(b, fp.sub(b, x.high, real(3.0)), below.high)
    g = fp.quick_sum(b, real(FAR[0]), fp.mul(b, t, fp.polynomial(b, t, *FAR[1:])))
    twice = fp.Pair(fp.add(b, x.high, x.high), fp.add(b, x.low, x.low))
    one = fp.sum_of(b, real(1.0), twice.high)
    ratio = fp.pair_quotient(b, g, fp.Pair(one.high, fp.add(b, one.low, twice.low)))
    square = fp.product_of(b, x.high, x.high)
    low = fp.fma(b, twice.high, x.low, square.low)
    power, n = exp_of_pair(b, fp.Pair(b.negative(square.high), b.negative(low)))
    found = fp.pair_product(b, power, ratio)
    return scaled(b, fp.mul(b, fp.add(b, found.high, found.low), real(factor)), n)


def erf(b: Builder, x: Value) -> Value:
    a = fp.fabs(b, x)
    inner = fp.add(b, a, near(b, fp.clamp(b, a, 0.0, 1.0)))
    outer = fp.sub(b, real(1.0), far(b, fp.Pair(fp.clamp(b, a, 0.5, 6.0), real(0.0))))
    found = b.select(fp.less(b, a, real(1.0)), inner, outer)
    tiny = fp.fma(b, a, real(NEAR[0]), a)
    found = b.select(fp.less(b, a, real(2.0**-28)), tiny, found)
    return fp.copysign(b, b.select(b.op("fcmp uno", x, x), a, found), x)


def complement(b: Builder, x: fp.Pair, factor: float = 1.0) -> Value:
    """factor erfc(x), for a factor of 1 or 1/2."""
    size = fp.fabs(b, x.high)
    bounded = fp.clamp(b, size, 0.5, 27.5)
    low = b.select(b.op("fcmp oeq", bounded, size), copysign_low(b, x), real(0.0))
    outer = far(b, fp.Pair(bounded, low), factor)
    outer = b.select(fp.less(b, x.high, real(0.0)), fp.sub(b, real(2 * factor), outer), outer)
    inside = fp.clamp(b, x.high, -0.5, 0.5)
    part = fp.pair_sum(b, fp.sum_of(b, inside, near(b, inside)), fp.Pair(x.low, real(0.0)))
    start = fp.sum_of(b, real(1.0), b.negative(part.high))
    inner = fp.add(b, start.high, fp.sub(b, start.low, part.low))
    found = b.select(fp.less(b, size, real(0.5)), fp.mul(b, inner, real(factor)), outer)
    return b.select(b.op("fcmp uno", size, size), size, found)


def copysign_low(b: Builder, x: fp.Pair) -> Value:
    """What is left of |x|."""
    return b.select(fp.less(b, x.high, real(0.0)), b.negative(x.low), x.low)


def erfc(b: Builder, x: Value) -> Value:
    return complement(b, fp.Pair(x, real(0.0)))


def ndtr(b: Builder, x: Value) -> Value:
    """erfc(-x / sqrt(2)) / 2"""
    bounded = fp.clamp(b, x, -40.0, 40.0)
    return complement(
        b,
        fp.pair_product(b, fp.Pair(b.negative(bounded), real(0.0)), fp.constant_pair(*ROOT_HALF)),
        0.5,
    )
