"""Trigonometric functions of float32 and their inverses.

x = n pi / 2 + r by Cody and Waite, with pi / 2 as a sum of three float32: with fused multiply-add
the first product is exact. Large angles are computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from graphcore.backends.llvm_kernels.builder import Builder, Value
from graphcore.backends.llvm_kernels.maths import floats as fp
from graphcore.backends.llvm_kernels.maths import short
from graphcore.backends.llvm_kernels.maths.exponential import nearest

from . import pieces

QUARTER = 1.5707963705062866, -4.371138828673793e-08, -1.7151244994428829e-15
"""pi / 2 as a sum"""
LARGE = 2.0**17
"""From where on the sum is not exact enough."""
SINE = (*(-0.16666655242443085, 0.008332190103828907, -0.0001951840822584927),)
"""(sin(x) / x - 1) / x^2 by x^2, to 4.2e-9 of the sine, for |x| up to pi / 4"""
COSINE = (*(0.04166664555668831, -0.00138873013202101, 2.4430661142105237e-05),)
"""(cos(x) - 1 + x^2/2) / x^4 by x^2, to 1.1e-10"""
TANGENT = (
    *(0.33333349227905273, 0.1333267241716385, 0.054059430956840515),
    *(0.02128293365240097, 0.010837065055966377, 8.491668268106878e-05),
    0.004379736725240946,
)
"""(tan(x) / x - 1) / x^2 by x^2, to 1.4e-9 of the tangent"""
ARCSINE = (
    *(0.16666752099990845, 0.07495307177305222, 0.04546964168548584),
    *(0.02418149821460247, 0.0421651192009449),
)
"""(arcsin(x) / x - 1) / x^2 by x^2, to 4.9e-9 of the angle, for |x| up to 1/2"""
ARCTANGENT = (
    *(-0.33333298563957214, 0.1999853402376175, -0.14264102280139923),
    *(0.10951506346464157, -0.08401581645011902, 0.05792722851037979),
    *(-0.031148936599493027, 0.010899696499109268, -0.0017904058331623673),
)
"""(arctan(x) / x - 1) / x^2 by x^2, to 2.7e-9 of the angle, for |x| up to 1"""

Rule = Callable[[Builder, Value], Value]


def reduced(b: Builder, x: Value) -> tuple[Value, Value]:
    """n in the last bits, and r."""
    times, n = nearest(b, x, 2 / math.pi)
    for part in QUARTER:
        x = fp.fma(b, times, pieces.number(-part), x)
    return n, x


def reduced_pair(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """n in the last bits, and r as a sum."""
    times, n = nearest(b, x, 2 / math.pi)
    first, second, third = [pieces.number(-part) for part in QUARTER]
    product = fp.mul(b, times, second)
    lost = fp.fma(b, times, second, b.negative(product))
    r = fp.sum_of(b, fp.fma(b, times, first, x), product)
    return n, r.high, fp.fma(b, times, third, fp.add(b, r.low, lost))


def with_large(b: Builder, x: Value, y: Value, far: Rule) -> Value:
    """`y`, but what `far` makes of `x` in float64 where that is large or no number."""
    large = b.op("fcmp uge", fp.fabs(b, x), pieces.number(LARGE))

    def exact() -> list[Value]:
        found = b.convert("fptrunc", far(b, b.convert("fpext", x, "f64")), "f32")
        return [b.select(large, found, y)]

    return b.branch(b.any_lane(large), exact, lambda: [y])[0]


def sine(b: Builder, r: Value, z: Value) -> Value:
    return pieces.odd(b, r, z, *SINE)


def cosine(b: Builder, z: Value) -> Value:
    half = fp.fma(b, z, pieces.number(-0.5), pieces.ONE)
    return fp.fma(b, fp.mul(b, z, z), pieces.horner(b, z, *COSINE), half)


def is_odd(b: Builder, n: Value) -> Value:
    return b.op("icmp ne", b.op("and", n, pieces.whole(1)), pieces.whole(0))


def signed(b: Builder, y: Value, n: Value) -> Value:
    """`y`, negative in the second half of the turn that n quarters begin."""
    bit = b.op("shl", b.op("and", n, pieces.whole(2)), pieces.whole(30))
    return fp.float_of(b, b.op("xor", fp.bits_of(b, y), bit))


def sin(b: Builder, x: Value) -> Value:
    n, r = reduced(b, x)
    z = fp.mul(b, r, r)
    y = signed(b, b.select(is_odd(b, n), cosine(b, z), sine(b, r, z)), n)
    return with_large(b, x, b.select(fp.equal(b, x, pieces.ZERO), x, y), short.sin)


def cos(b: Builder, x: Value) -> Value:
    n, r = reduced(b, x)
    z = fp.mul(b, r, r)
    y = b.select(is_odd(b, n), sine(b, r, z), cosine(b, z))
    return with_large(b, x, signed(b, y, b.op("add", n, pieces.whole(1))), short.cos)


def tan(b: Builder, x: Value) -> Value:
    """r + r^3 p(r^2) as a sum, or -1 over it: what the quotient lacks is added."""
    n, r, low = reduced_pair(b, x)
    z = fp.mul(b, r, r)
    y = fp.quick_sum(b, r, fp.fma(b, fp.mul(b, r, z), pieces.horner(b, z, *TANGENT), low))
    turned = fp.div(b, pieces.number(-1.0), y.high)
    left = fp.fma(b, turned, y.low, fp.fma(b, turned, y.high, pieces.ONE))
    found = b.select(is_odd(b, n), fp.fma(b, turned, left, turned), y.high)
    return with_large(b, x, b.select(fp.equal(b, x, pieces.ZERO), x, found), short.tan)


# ---- inverses


def angle(b: Builder, t: Value) -> Value:
    """The angle whose tangent is t, from 0 to 1."""
    z = fp.mul(b, t, t)
    return pieces.odd(b, t, z, *ARCTANGENT)


def less_than_quarter(b: Builder, y: Value, quarters: float = 1.0) -> Value:
    """So many quarter turns less `y`."""
    rest = fp.sub(b, pieces.number(quarters * QUARTER[1]), y)
    return fp.add(b, pieces.number(quarters * QUARTER[0]), rest)


def arctan(b: Builder, x: Value) -> Value:
    a = fp.fabs(b, x)
    above = b.op("fcmp ogt", a, pieces.ONE)
    y = angle(b, fp.div(b, b.select(above, pieces.ONE, a), b.select(above, a, pieces.ONE)))
    y = fp.copysign(b, b.select(above, less_than_quarter(b, y), y), x)
    return pieces.itself_near_0(b, x, y)


def arctan2(b: Builder, y: Value, x: Value) -> Value:
    a, c = fp.fabs(b, y), fp.fabs(b, x)
    steep = b.op("fcmp ogt", a, c)
    large, small = b.select(steep, a, c), b.select(steep, c, a)
    alike = fp.equal(b, small, pieces.INF)
    nothing = fp.equal(b, large, pieces.ZERO)
    below = b.select(b.op("or", alike, nothing), pieces.ONE, large)
    found = angle(b, fp.div(b, b.select(alike, pieces.ONE, small), below))
    found = b.select(steep, less_than_quarter(b, found), found)
    left = b.op("icmp slt", fp.bits_of(b, x), pieces.whole(0))
    found = b.select(left, less_than_quarter(b, found, 2.0), found)
    return fp.copysign(b, b.select(b.op("fcmp uno", x, y), pieces.NAN, found), y)


def arcsin_parts(b: Builder, a: Value) -> tuple[Value, Value, Value]:
    """Whether a > 1/2, and then arcsin(sqrt((1 - a) / 2)), else arcsin(a), as a sum."""
    large = b.op("fcmp ogt", a, pieces.HALF)
    half = fp.fma(b, a, pieces.number(-0.5), pieces.HALF)
    z = b.select(large, half, fp.mul(b, a, a))
    s = b.select(large, b.call("sqrt", half), a)
    return large, s, fp.mul(b, fp.mul(b, s, z), pieces.horner(b, z, *ARCSINE))


def arcsin(b: Builder, x: Value) -> Value:
    """A quarter turn less twice the part: the first difference is nearly exact."""
    large, s, tail = arcsin_parts(b, fp.fabs(b, x))
    rest = fp.fma(b, tail, pieces.number(-2.0), pieces.number(QUARTER[1]))
    near = fp.add(b, fp.fma(b, s, pieces.number(-2.0), pieces.number(QUARTER[0])), rest)
    return fp.copysign(b, b.select(large, near, fp.add(b, s, tail)), x)


def arccos(b: Builder, x: Value) -> Value:
    large, s, tail = arcsin_parts(b, fp.fabs(b, x))
    part = fp.add(b, s, tail)
    twice = fp.add(b, part, part)
    far = b.select(fp.less(b, x, pieces.ZERO), less_than_quarter(b, twice, 2.0), twice)
    return b.select(large, far, less_than_quarter(b, fp.copysign(b, part, x)))
