"""The error function and the normal distribution.

Near 0 erf(x) = x + x p(x^2); from 1/2 on erfc(x) = e^(-x^2) g(t) / (1 + 2x) with the g of FAR.
"""

from __future__ import annotations

from graphcore.backends.error_function import FAR
from graphcore.backends.llvm_kernels.builder import Builder, Value, real

from .exponential import exp_of_pair, scaled
from .pairs import (
    Pair,
    add,
    clamp,
    constant_pair,
    copysign,
    div,
    fabs,
    fma,
    less,
    mul,
    neg,
    pair_product,
    pair_quotient,
    pair_sum,
    polynomial,
    product_of,
    quick_sum,
    sub,
    sum_of,
)

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
    return mul(b, x, polynomial(b, mul(b, x, x), *NEAR))


def far(b: Builder, x: Pair, factor: float = 1.0) -> Value:
    """factor erfc(x) for x >= 1/2; `factor` is a power of two."""
    below = sum_of(b, x.high, real(3.0))
    t = div(b, sub(b, x.high, real(3.0)), below.high)
    g = quick_sum(b, real(FAR[0]), mul(b, t, polynomial(b, t, *FAR[1:])))
    twice = Pair(add(b, x.high, x.high), add(b, x.low, x.low))
    one = sum_of(b, real(1.0), twice.high)
    ratio = pair_quotient(b, g, Pair(one.high, add(b, one.low, twice.low)))
    square = product_of(b, x.high, x.high)
    low = fma(b, twice.high, x.low, square.low)
    power, n = exp_of_pair(b, Pair(neg(b, square.high), neg(b, low)))
    found = pair_product(b, power, ratio)
    return scaled(b, mul(b, add(b, found.high, found.low), real(factor)), n)


def erf(b: Builder, x: Value) -> Value:
    a = fabs(b, x)
    inner = add(b, a, near(b, clamp(b, a, 0.0, 1.0)))
    outer = sub(b, real(1.0), far(b, Pair(clamp(b, a, 0.5, 6.0), real(0.0))))
    found = b.select(less(b, a, real(1.0)), inner, outer)
    tiny = fma(b, a, real(NEAR[0]), a)
    found = b.select(less(b, a, real(2.0**-28)), tiny, found)
    return copysign(b, b.select(b.op("fcmp uno", x, x), a, found), x)


def complement(b: Builder, x: Pair, factor: float = 1.0) -> Value:
    """factor erfc(x), for a factor of 1 or 1/2."""
    size = fabs(b, x.high)
    bounded = clamp(b, size, 0.5, 27.5)
    low = b.select(b.op("fcmp oeq", bounded, size), copysign_low(b, x), real(0.0))
    outer = far(b, Pair(bounded, low), factor)
    outer = b.select(less(b, x.high, real(0.0)), sub(b, real(2 * factor), outer), outer)
    inside = clamp(b, x.high, -0.5, 0.5)
    part = pair_sum(b, sum_of(b, inside, near(b, inside)), Pair(x.low, real(0.0)))
    start = sum_of(b, real(1.0), neg(b, part.high))
    inner = add(b, start.high, sub(b, start.low, part.low))
    found = b.select(less(b, size, real(0.5)), mul(b, inner, real(factor)), outer)
    return b.select(b.op("fcmp uno", size, size), size, found)


def copysign_low(b: Builder, x: Pair) -> Value:
    """What is left of |x|."""
    return b.select(less(b, x.high, real(0.0)), neg(b, x.low), x.low)


def erfc(b: Builder, x: Value) -> Value:
    return complement(b, Pair(x, real(0.0)))


def ndtr(b: Builder, x: Value) -> Value:
    """erfc(-x / sqrt(2)) / 2"""
    bounded = clamp(b, x, -40.0, 40.0)
    return complement(
        b, pair_product(b, Pair(neg(b, bounded), real(0.0)), constant_pair(*ROOT_HALF)), 0.5
    )
