"""Remainders of floats, and functions of sums of squares."""

from __future__ import annotations

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

from . import floats as fp


def fmod(b: Builder, x: Value, y: Value) -> Value:
    """x - y*trunc(x / y), exactly: 53 bits of the quotient at a time."""
    size, by = fp.fabs(b, x), fp.fabs(b, y)
    valid = b.op("and", fp.less(b, size, fp.INF), b.op("fcmp ogt", by, real(0.0)))
    rest = b.select(valid, size, real(0.0))
    by = b.select(valid, by, real(1.0))

    def test(rest: Value) -> Value:
        return b.any_lane(b.op("fcmp oge", rest, by))

    def body(rest: Value) -> list[Value]:
        whole = by
        for scale in (2.0**1023, 2.0**200):  # the quotient may be more than any float
            beyond = fp.equal(b, fp.div(b, rest, whole), fp.INF)
            whole = b.select(beyond, fp.mul(b, whole, real(scale)), whole)
        quotient = fp.div(b, rest, whole)
        large = b.op("fcmp oge", quotient, real(2.0**53))
        quotient = b.select(large, quotient, b.call("trunc", quotient))
        left = fp.fma(b, b.negative(quotient), whole, rest)
        below = fp.float_of(b, b.op("sub", fp.bits_of(b, quotient), integer(1)))
        below = b.select(large, below, fp.sub(b, quotient, real(1.0)))
        left = b.select(
            fp.less(b, left, real(0.0)), fp.fma(b, b.negative(below), whole, rest), left
        )
        return [b.select(b.op("fcmp oge", rest, by), left, rest)]

    (rest,) = b.repeat([b.widen(rest)], test, body)
    found = b.select(valid, fp.copysign(b, rest, x), fp.NAN)
    return b.select(b.op("fcmp uno", y, y), y, found)


def hypot(b: Builder, x: Value, y: Value) -> Value:
    """After musl: squares as pairs, of numbers scaled so that these are floats."""
    first, second = fp.fabs(b, x), fp.fabs(b, y)
    large, small = b.call("maxnum", first, second), b.call("minnum", first, second)
    huge, tiny = b.op("fcmp ogt", large, real(2.0**510)), fp.less(b, small, real(2.0**-450))
    scale = b.select(huge, real(2.0**-700), b.select(tiny, real(2.0**700), real(1.0)))
    back = b.select(huge, real(2.0**700), b.select(tiny, real(2.0**-700), real(1.0)))
    p = fp.product_of(b, fp.mul(b, large, scale), fp.mul(b, large, scale))
    q = fp.product_of(b, fp.mul(b, small, scale), fp.mul(b, small, scale))
    total = fp.add(b, fp.add(b, fp.add(b, q.low, p.low), q.high), p.high)
    found = fp.mul(b, b.call("sqrt", total), back)
    apart = b.op("fcmp oge", large, fp.mul(b, small, real(2.0**60)))
    found = b.select(apart, fp.add(b, large, small), found)
    unknown = b.op("fcmp uno", x, y)
    infinite = b.op("or", fp.equal(b, first, fp.INF), fp.equal(b, second, fp.INF))
    return b.select(infinite, fp.INF, b.select(unknown, fp.NAN, found))
