"""Trigonometric functions and their inverses."""

from __future__ import annotations

import math
from typing import NamedTuple

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real, type_of

from . import floats as fp
from .exponential import SHIFT

QUARTER = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33
"""pi / 2 as a sum"""
EIGHTH = 0.7853981633974483, 3.061616997868383e-17

SINE = (
    *(-0.16666666666666632, 0.008333333333322326, -0.00019841269829732542),
    *(2.7557313664127416e-06, -2.5050753523612416e-08, 1.5896516790264603e-10),
)
"""(sin(x) / x - 1) / x^2 by x^2, to 4e-18 of the sine"""
COSINE = (
    *(0.0416666666666666, -0.0013888888888874, 2.480158728939977e-05),
    *(-2.7557314327376093e-07, 2.087571973472875e-09, -1.1359457456335889e-11),
)
"""(cos(x) - 1 + x^2/2) / x^4 by x^2, to 5e-20"""
ARCTANGENT = (
    *(-0.33333333333333326, 0.19999999999997647, -0.14285714285385245, 0.11111111088003547),
    *(-0.09090908138184223, 0.07692282614137262, -0.06666224609427775, 0.05877000642146453),
    *(-0.05218267461955757, 0.0450298974258249, -0.03346136054686406, 0.015181785774778479),
)
"""(arctan(x) / x - 1) / x^2 by x^2, to 5e-20, for |x| up to tan(pi / 8)"""
ARCSINE = (
    *(0.16666666666666763, 0.07499999999970094, 0.04464285717528906, 0.03038194267515604),
    *(0.02237221590887821, 0.017351595454851886, 0.013981018990825114, 0.011397289939029557),
    *(0.01078933568854314, 0.003672139128755869, 0.021790741302235177, -0.021116832438388848),
    0.03270222271290055,
)
"""(arcsin(x) / x - 1) / x^2 by x^2, to 1e-18, for |x| up to 1/2"""

TWO_OVER_PI = (
    *(0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0),
    *(0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0),
    *(0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484),
    *(0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B),
    *(0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7),
    *(0x4F463F669E5FEA2D, 0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA),
    *(0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D),
)
"""The bits of 2 / pi after 64 zeros."""


class Angle(NamedTuple):
    """x = n pi / 2 + rest, where |rest| <= pi / 4."""

    n: Value
    rest: fp.Pair


def reduced(b: Builder, x: Value) -> Angle:
    large = b.op("fcmp uge", fp.fabs(b, x), real(2.0**30))
    near = reduced_near(b, b.select(large, real(0.0), x))

    def far() -> list[Value]:
        other = reduced_far(b, x)
        return [b.select(large, p, q) for p, q in zip(flat(other), flat(near), strict=True)]

    n, high, low = b.branch(b.any_lane(large), far, lambda: flat(near))
    return Angle(n, fp.Pair(high, low))


def flat(x: Angle) -> list[Value]:
    return [x.n, *x.rest]


def reduced_near(b: Builder, x: Value) -> Angle:
    """The angle of |x| < 2^30, with pi / 2 in three parts: `first` and `left` are exact."""
    shifted = fp.fma(b, x, real(2 / math.pi), real(SHIFT))
    whole = b.negative(fp.sub(b, shifted, real(SHIFT)))
    first = fp.fma(b, whole, real(QUARTER[0]), x)
    second = fp.mul(b, whole, real(QUARTER[1]))
    left = fp.fma(b, whole, real(QUARTER[1]), b.negative(second))
    rest = fp.sum_of(b, first, second)
    low = fp.add(b, rest.low, fp.fma(b, whole, real(QUARTER[2]), left))
    return Angle(fp.bits_of(b, shifted), fp.quick_sum(b, rest.high, low))


def reduced_far(b: Builder, x: Value) -> Angle:
    """Of any float m 2^e, after Payne and Hanek: by those bits of 2 / pi that matter."""
    bits = fp.bits_of(b, x)
    exponent = b.op("and", b.op("lshr", bits, integer(52)), integer(2047))
    hidden = b.op("or", b.op("and", bits, integer(2**52 - 1)), integer(2**52))
    start = b.call("smax", b.op("sub", exponent, integer(1075 - 62)), integer(0))
    word, shift = b.op("lshr", start, integer(6)), b.op("and", start, integer(63))
    words = [looked_up(b, b.op("add", word, integer(i))) for i in range(4)]
    w = [b.call("fshl", words[i], words[i + 1], shift) for i in range(3)]

    low_carry = high_product(b, hidden, w[2])
    middle = b.op("mul", hidden, w[1])
    second = b.op("add", middle, low_carry)
    carry = b.convert("zext", b.op("icmp ult", second, middle), "i64")
    first = b.op("add", b.op("mul", hidden, w[0]), high_product(b, hidden, w[1]))
    first = b.op("add", first, carry)  # quarters: two bits before the point, 62 behind it

    n = b.op("lshr", b.op("add", first, integer(1 << 61)), integer(62))
    part = b.op("sub", first, b.op("shl", n, integer(62)))
    high = b.convert("sitofp", part, "f64")
    left = b.op("sub", part, b.convert("fptosi", high, "i64"))
    low = fp.mul(b, b.convert("sitofp", left, "f64"), real(2.0**-62))
    low = fp.fma(b, b.convert("uitofp", second, "f64"), real(2.0**-126), low)
    fraction = fp.sum_of(b, fp.mul(b, high, real(2.0**-62)), low)
    rest = fp.pair_product(b, fraction, fp.constant_pair(*QUARTER[:2]))
    minus = b.op("icmp slt", bits, integer(0))
    return Angle(
        b.select(minus, b.op("sub", integer(0), n), n),
        fp.Pair(*[b.select(minus, b.negative(y), y) for y in rest]),
    )


def looked_up(b: Builder, i: Value) -> Value:
    """A word of 2 / pi in each lane."""
    name, count = "@two_over_pi", len(TWO_OVER_PI)
    words = ", ".join([integer(w).typed for w in TWO_OVER_PI])
    b.declared[name] = f"{name} = internal constant [{count} x i64] [{words}]"
    gather = f"@llvm.masked.gather.v{i.wide}i64.v{i.wide}p0"
    pointers, flags, vector = (type_of(kind, i.wide) for kind in ("ptr", "i1", "i64"))
    b.declared[gather] = f"declare {vector} {gather}({pointers}, i32, {flags}, {vector})"
    at = b.emit("ptr", i.wide, f"getelementptr i64, ptr {name}, {i.typed}", i)
    given = f"{at.typed}, i32 8, {flags} splat (i1 true), {vector} zeroinitializer"
    return b.emit("i64", i.wide, f"call {vector} {gather}({given})", at)


def high_product(b: Builder, x: Value, y: Value) -> Value:
    """The upper 64 bits of a product of integers without sign."""
    half, mask = integer(32), integer(2**32 - 1)
    (x_low, x_high), (y_low, y_high) = [
        (b.op("and", v, mask), b.op("lshr", v, half)) for v in (x, y)
    ]
    low = b.op("lshr", b.op("mul", x_low, y_low), half)
    first = b.op("add", b.op("mul", x_high, y_low), low)
    second = b.op("add", b.op("mul", x_low, y_high), b.op("and", first, mask))
    top = b.op("add", b.op("mul", x_high, y_high), b.op("lshr", first, half))
    return b.op("add", top, b.op("lshr", second, half))


def sine(b: Builder, x: fp.Pair) -> fp.Pair:
    """The sine of |x| <= pi / 4."""
    z = fp.mul(b, x.high, x.high)
    correction = fp.fma(b, fp.mul(b, z, real(-0.5)), x.low, x.low)
    return fp.quick_sum(
        b, x.high, fp.fma(b, fp.mul(b, x.high, z), fp.polynomial(b, z, *SINE), correction)
    )


def cosine(b: Builder, x: fp.Pair) -> fp.Pair:
    """The cosine of |x| <= pi / 4."""
    z = fp.mul(b, x.high, x.high)
    lost = fp.fma(b, x.high, x.high, b.negative(z))
    half = fp.mul(b, z, real(-0.5))
    top = fp.quick_sum(b, real(1.0), half)
    low = fp.fma(b, fp.mul(b, z, z), fp.polynomial(b, z, *COSINE), fp.mul(b, lost, real(-0.5)))
    low = fp.fma(b, b.negative(x.high), x.low, low)
    return fp.quick_sum(b, top.high, fp.add(b, top.low, low))


def is_odd(b: Builder, n: Value) -> Value:
    return b.op("icmp ne", b.op("and", n, integer(1)), integer(0))


def signed(b: Builder, y: Value, n: Value, shift: int) -> Value:
    """`y`, negative in the second half of the turn that n + shift quarters begin."""
    if shift:
        n = b.op("add", n, integer(shift))
    bit = b.op("shl", b.op("and", n, integer(2)), integer(62))
    return b.convert("bitcast", b.op("xor", fp.bits_of(b, y), bit), "f64")


def sin(b: Builder, x: Value) -> Value:
    n, rest = reduced(b, x)
    y = signed(b, b.select(is_odd(b, n), cosine(b, rest).high, sine(b, rest).high), n, 0)
    y = b.select(fp.less(b, fp.fabs(b, x), real(2.0**-26)), x, y)
    return b.select(fp.less(b, fp.fabs(b, x), fp.INF), y, fp.NAN)


def cos(b: Builder, x: Value) -> Value:
    n, rest = reduced(b, x)
    y = signed(b, b.select(is_odd(b, n), sine(b, rest).high, cosine(b, rest).high), n, 1)
    return b.select(fp.less(b, fp.fabs(b, x), fp.INF), y, fp.NAN)


def tan(b: Builder, x: Value) -> Value:
    n, rest = reduced(b, x)
    odd, top, below = is_odd(b, n), sine(b, rest), cosine(b, rest)
    high, low = b.select(odd, below.high, top.high), b.select(odd, below.low, top.low)
    by, by_low = b.select(odd, top.high, below.high), b.select(odd, top.low, below.low)
    inverse = fp.div(b, real(1.0), by)
    y = fp.mul(b, high, inverse)
    left = fp.add(b, fp.fma(b, b.negative(y), by, high), fp.fma(b, b.negative(y), by_low, low))
    y = fp.fma(b, left, inverse, y)
    y = b.select(odd, b.negative(y), y)
    y = b.select(fp.less(b, fp.fabs(b, x), real(2.0**-27)), x, y)
    return b.select(fp.less(b, fp.fabs(b, x), fp.INF), y, fp.NAN)


# ---- inverses


def arctan_of(b: Builder, num: Value, den: Value) -> fp.Pair:
    """The angle whose tangent is num / den, for 0 <= num <= den and den > 0."""
    steep = b.op("fcmp ogt", num, fp.mul(b, den, real(0.41421356237309503)))
    difference, total = fp.sum_of(b, num, b.negative(den)), fp.sum_of(b, den, num)
    top = b.select(steep, difference.high, num)
    top_low = b.select(steep, difference.low, real(0.0))
    by = b.select(steep, total.high, den)
    by_low = b.select(steep, total.low, real(0.0))
    t = fp.div(b, top, by)
    left = fp.add(b, fp.fma(b, b.negative(t), by, top), fp.fma(b, b.negative(t), by_low, top_low))
    t_low = fp.div(b, left, by)
    z = fp.mul(b, t, t)
    tail = fp.fma(b, fp.mul(b, t, z), fp.polynomial(b, z, *ARCTANGENT), t_low)
    base = b.select(steep, real(EIGHTH[0]), real(0.0))
    found = fp.quick_sum(b, base, t)
    tail = fp.add(b, tail, fp.add(b, found.low, b.select(steep, real(EIGHTH[1]), real(0.0))))
    return fp.quick_sum(b, found.high, tail)


def less_than_quarter(b: Builder, x: fp.Pair, c: float = 1.0) -> fp.Pair:
    """c pi / 2 - x"""
    total = fp.quick_sum(b, real(c * QUARTER[0]), b.negative(x.high))
    return fp.quick_sum(b, total.high, fp.add(b, total.low, fp.sub(b, real(c * QUARTER[1]), x.low)))


def arctan(b: Builder, x: Value) -> Value:
    a = fp.fabs(b, x)
    above = b.op("fcmp ogt", a, real(1.0))
    size = b.select(fp.less(b, a, real(2.0**100)), a, real(2.0**100))
    y = arctan_of(b, b.select(above, real(1.0), size), b.select(above, size, real(1.0)))
    found = b.select(above, less_than_quarter(b, y).high, y.high)
    found = b.select(fp.less(b, a, real(2.0**-27)), a, found)
    found = b.select(b.op("fcmp uno", x, x), a, found)
    return fp.copysign(b, found, x)


def arctan2(b: Builder, y: Value, x: Value) -> Value:
    a, c = fp.fabs(b, y), fp.fabs(b, x)
    steep = b.op("fcmp ogt", a, c)
    large, small = b.select(steep, a, c), b.select(steep, c, a)
    endless = fp.equal(b, large, fp.INF)
    both = b.op("and", endless, fp.equal(b, small, fp.INF))
    tiny = fp.less(b, large, real(2.0**-500))
    scale = b.select(tiny, real(2.0**500), real(2.0**-100))
    num = b.select(both, real(1.0), fp.mul(b, small, scale))
    den = b.select(both, real(1.0), fp.mul(b, large, scale))
    num = b.select(b.op("and", endless, b.neither(both)), real(0.0), num)
    den = b.select(b.op("or", endless, fp.equal(b, large, real(0.0))), real(1.0), den)
    # What is lost below 2^-900 of the larger one is less than the result shows, but where it is
    # the result: there the quotient itself is it.
    angle = arctan_of(b, num, den)
    plain = fp.div(b, small, b.select(fp.equal(b, large, real(0.0)), real(1.0), large))
    angle_is_ratio = fp.less(b, plain, real(2.0**-30))
    high = b.select(angle_is_ratio, plain, angle.high)
    high = b.select(endless, angle.high, high)
    low = b.select(angle_is_ratio, real(0.0), angle.low)
    turned = less_than_quarter(b, fp.Pair(high, low))
    first = fp.Pair(b.select(steep, turned.high, high), b.select(steep, turned.low, low))
    left = b.op("icmp slt", fp.bits_of(b, x), integer(0))
    back = less_than_quarter(b, first, 2.0)
    found = b.select(left, back.high, first.high)
    found = b.select(b.op("fcmp uno", x, y), fp.NAN, found)
    return fp.copysign(b, found, y)


def arcsin_parts(b: Builder, a: Value) -> tuple[Value, fp.Pair]:
    """Whether a > 1/2, and then arcsin(sqrt((1 - a) / 2)), else arcsin(a)."""
    large = b.op("fcmp ogt", a, real(0.5))
    half = fp.mul(b, fp.sub(b, real(1.0), a), real(0.5))
    root = b.call("sqrt", half)
    left = fp.fma(b, b.negative(root), root, half)
    safe = b.select(b.op("fcmp ogt", root, real(0.0)), root, real(1.0))
    root_low = fp.div(b, fp.mul(b, left, real(0.5)), safe)
    z = b.select(large, half, fp.mul(b, a, a))
    s = b.select(large, root, a)
    low = b.select(large, root_low, real(0.0))
    return large, fp.quick_sum(b, s, fp.fma(b, fp.mul(b, s, z), fp.polynomial(b, z, *ARCSINE), low))


def arcsin(b: Builder, x: Value) -> Value:
    a = fp.fabs(b, x)
    large, part = arcsin_parts(b, a)
    twice = fp.Pair(fp.add(b, part.high, part.high), fp.add(b, part.low, part.low))
    found = b.select(large, less_than_quarter(b, twice).high, part.high)
    found = b.select(fp.less(b, a, real(2.0**-27)), a, found)
    return fp.copysign(b, b.select(b.op("fcmp ole", a, real(1.0)), found, fp.NAN), x)


def arccos(b: Builder, x: Value) -> Value:
    a = fp.fabs(b, x)
    large, part = arcsin_parts(b, a)
    minus = fp.less(b, x, real(0.0))
    twice = fp.Pair(fp.add(b, part.high, part.high), fp.add(b, part.low, part.low))
    far = less_than_quarter(b, twice, 2.0).high
    signed_part = fp.Pair(
        fp.copysign(b, part.high, x), fp.mul(b, part.low, fp.copysign(b, real(1.0), x))
    )
    near = less_than_quarter(b, signed_part).high
    found = fp.chosen(b, near, [(large, b.select(minus, far, twice.high))])
    return b.select(b.op("fcmp ole", a, real(1.0)), found, fp.NAN)
