"""Logarithms of float32, and the inverse hyperbolic functions made of them.

x = 2^k (1 + f) with 1 + f from 0.71 to 1.42, and log(1 + f) = f + f^2 q(f): no division is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from graphcore.backends.llvm_kernels.builder import FALSE, Builder, Value
from graphcore.backends.llvm_kernels.maths import floats as fp

from . import pieces
from .exponential import LOG_2, exp

LOG = (
    *(-0.5, 0.3333333134651184, -0.2500081956386566),
    *(0.2000124305486679, -0.1662341058254242, 0.14201539754867554),
    *(-0.13159550726413727, 0.12762485444545746, -0.07636940479278564),
)
"""q, to 5.9e-9 of the logarithm"""
LOG2 = (
    *(1.920009573552761e-08, -0.7213473320007324, 0.4808982312679291),
    *(-0.3606986701488495, 0.28856953978538513, -0.23956596851348877),
    *(0.20452362298965454, -0.1914406269788742, 0.18686066567897797),
    -0.10984353721141815,
)
"""log2(1 + f) / f less `PER_LOG_2`, to 4.7e-9 of the logarithm"""
LOG10 = (
    *(-1.0120971616345287e-08, -0.21714718639850616, 0.14476479589939117),
    *(-0.10858090221881866, 0.08686769753694534, -0.07212182134389877),
    *(0.061579104512929916, -0.05759483948349953, 0.056159328669309616),
    -0.03303882107138634,
)
"""log10(1 + f) / f less `PER_LOG_10`, to 4.5e-9 of the logarithm"""
PER_LOG_2 = 1.44269502162933349609375
"""1 / log(2) rounded to float32; the polynomial `LOG2` adds the rounding error."""
PER_LOG_10 = 0.4342944920063018798828125
HYPERBOLIC_TANGENT = (
    *(0.33333298563957214, 0.20002608001232147, 0.14221008121967316),
    *(0.11838729679584503, 0.05077645927667618, 0.17752888798713684),
)
"""(arctanh(x) / x - 1) / x^2 by x^2, to 1.5e-9 of the value, for |x| up to 1/2"""
LOG10_2 = 0.3010300099849701, -1.4320988897559699e-08
"""log10(2) as a sum"""


def split(b: Builder, x: Value) -> tuple[Value, Value]:
    """k and f of a normal float above 0; k is an integer."""
    bits = fp.bits_of(b, x)
    k = b.op("ashr", b.op("sub", bits, pieces.whole(0x3F3504F3)), pieces.whole(23))
    m = fp.float_of(b, b.op("sub", bits, b.op("shl", k, pieces.whole(23))))
    return k, fp.sub(b, m, pieces.ONE)


def logarithm(b: Builder, x: Value, rule: Callable[[Value, Value], Value]) -> Value:
    """rule(k, f), and the edges. These values are rare, so a branch around them pays."""
    strange = pieces.is_strange(b, x)

    def scaled() -> list[Value]:
        tiny = fp.less(b, x, pieces.number(2.0**-126))
        up = b.select(tiny, fp.mul(b, x, pieces.number(2.0**24)), x)
        return [up, b.select(tiny, pieces.number(-24.0), pieces.ZERO)]

    normal, shift = b.branch(strange, scaled, lambda: [x, b.widen(pieces.ZERO, x.wide)])
    k, f = split(b, normal)
    y = rule(fp.add(b, b.convert("sitofp", k, "f32"), shift), f)
    return pieces.where_strange(b, strange, y, lambda: at_edges(b, x, y))


def at_edges(b: Builder, x: Value, y: Value) -> Value:
    """A logarithm `y` of `x`, but where `x` is 0, below, infinite or nan."""
    y = b.select(fp.less(b, x, pieces.INF), y, x)
    y = b.select(b.op("fcmp ult", x, pieces.ZERO), pieces.NAN, y)
    return b.select(fp.equal(b, x, pieces.ZERO), pieces.number(-math.inf), y)


def log_of(b: Builder, k: Value, f: Value, low: Value = pieces.ZERO) -> Value:
    """k log(2) + log(1 + f) + low"""
    low = (
        fp.fma(b, k, pieces.number(LOG_2[1]), low)
        if low is not pieces.ZERO
        else fp.mul(b, k, pieces.number(LOG_2[1]))
    )
    low = fp.fma(b, fp.mul(b, f, f), pieces.horner(b, f, *LOG), low)
    return fp.fma(b, k, pieces.number(LOG_2[0]), fp.add(b, f, low))


def log(b: Builder, x: Value) -> Value:
    return logarithm(b, x, lambda k, f: log_of(b, k, f))


def log2(b: Builder, x: Value) -> Value:
    def rule(k: Value, f: Value) -> Value:
        return fp.add(
            b, k, fp.fma(b, f, pieces.number(PER_LOG_2), fp.mul(b, f, pieces.horner(b, f, *LOG2)))
        )

    return logarithm(b, x, rule)


def log10(b: Builder, x: Value) -> Value:
    def rule(k: Value, f: Value) -> Value:
        low = fp.fma(b, k, pieces.number(LOG10_2[1]), fp.mul(b, f, pieces.horner(b, f, *LOG10)))
        return fp.fma(b, k, pieces.number(LOG10_2[0]), fp.fma(b, f, pieces.number(PER_LOG_10), low))

    return logarithm(b, x, rule)


def log_of_one_and(b: Builder, x: Value, low: Value = pieces.ZERO, doubled: Value = FALSE) -> Value:
    """log(1 + x + low) for x > -1, plus log(2) where `doubled`; what a sum loses is part of f."""
    u = fp.sum_of(b, pieces.ONE, x)
    n, top = split(b, u.high)
    back = fp.power_of_two(b, b.op("sub", pieces.whole(0), b.call("smin", n, pieces.whole(126))))
    k = b.convert("sitofp", n, "f32")
    if low is pieces.ZERO:
        return log_of(b, k, fp.fma(b, u.low, back, top))
    k = b.select(doubled, fp.add(b, k, pieces.ONE), k)
    lost = fp.add(b, u.low, low)
    f = fp.fma(b, lost, back, top)
    return log_of(b, k, f, fp.fma(b, lost, back, fp.sub(b, top, f)))


def log1p(b: Builder, x: Value) -> Value:
    """The value has the sign of x."""
    y = fp.copysign(b, log_of_one_and(b, x), x)
    u = fp.add(b, x, pieces.ONE)
    return pieces.where_strange(b, pieces.is_strange(b, u, 1), y, lambda: at_edges(b, u, y))


def log1p_of_part(b: Builder, x: Value) -> Value:
    """log(1 + x) of an x from 0 to 1: of half of 1 + x where that is nearer to 1."""
    large = b.op("fcmp ogt", x, pieces.number(math.sqrt(2) - 1))
    f = b.select(large, fp.fma(b, x, pieces.HALF, b.negative(pieces.HALF)), x)
    return log_of(b, b.select(large, pieces.ONE, pieces.ZERO), f)


def softplus(b: Builder, x: Value) -> Value:
    """max(x, 0) + log(1 + e^-|x|)"""
    above = b.select(b.op("fcmp ogt", x, pieces.ZERO), x, pieces.ZERO)
    return fp.add(b, above, log1p_of_part(b, exp(b, b.negative(fp.fabs(b, x)))))


# ---- inverse hyperbolic functions


def arcsinh(b: Builder, x: Value) -> Value:
    """log(1 + a + a^2 / (1 + sqrt(1 + a^2))), where a = |x|; log(2a) where that is the same."""
    a = fp.fabs(b, x)
    large = b.op("fcmp oge", a, pieces.number(2.0**30))
    safe = b.select(large, pieces.ONE, a)
    square = fp.mul(b, safe, safe)
    root = b.call("sqrt", fp.add(b, square, pieces.ONE))
    more = fp.quick_sum(b, safe, fp.div(b, square, fp.add(b, root, pieces.ONE)))
    y = log_of_one_and(b, b.select(large, a, more.high), more.low, large)
    y = b.select(fp.less(b, a, pieces.INF), y, a)
    return pieces.itself_near_0(b, x, fp.copysign(b, y, x))


def arccosh(b: Builder, x: Value) -> Value:
    """log(1 + t + sqrt(t (t + 2))), where t = x - 1."""
    large = b.op("fcmp oge", x, pieces.number(2.0**30))
    t = b.select(large, pieces.ONE, fp.sub(b, x, pieces.ONE))
    more = fp.quick_sum(b, b.call("sqrt", fp.fma(b, t, t, fp.add(b, t, t))), t)
    y = log_of_one_and(b, b.select(large, x, more.high), more.low, large)
    y = b.select(fp.less(b, x, pieces.INF), y, x)
    return b.select(fp.less(b, x, pieces.ONE), pieces.NAN, y)


def arctanh(b: Builder, x: Value) -> Value:
    """x + x^3 p(x^2) near 0, else log(1 + 2a / (1 - a)) / 2, where a = |x|."""
    a = fp.fabs(b, x)
    z = fp.mul(b, a, a)
    near = pieces.odd(b, a, z, *HYPERBOLIC_TANGENT)
    far = log_of_one_and(b, fp.div(b, fp.add(b, a, a), fp.sub(b, pieces.ONE, a)))
    y = b.select(b.op("fcmp ogt", a, pieces.HALF), fp.mul(b, far, pieces.HALF), near)
    y = b.select(fp.equal(b, a, pieces.ONE), pieces.INF, y)
    return fp.copysign(b, b.select(b.op("fcmp ule", a, pieces.ONE), y, pieces.NAN), x)
