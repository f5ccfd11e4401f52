"""Remainders of floats, and functions of sums of squares."""

from __future__ import annotations

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

from .pairs import (
    INF,
    NAN,
    add,
    bits_of,
    copysign,
    div,
    equal,
    fabs,
    float_of,
    fma,
    less,
    mul,
    neg,
    product_of,
    sub,
)


def fmod(b: Builder, x: Value, y: Value) -> Value:
    """x - y*trunc(x / y), exactly: 53 bits of the quotient at a time."""
    size, by = fabs(b, x), fabs(b, y)
    valid = b.op("and", less(b, size, INF), b.op("fcmp ogt", by, real(0.0)))
    rest = b.select(valid, size, real(0.0))
    by = b.select(valid, by, real(1.0))

    def test(rest: Value) -> Value:
        return b.any_lane(b.op("fcmp oge", rest, by))

    def body(rest: Value) -> list[Value]:
        whole = by
        for scale in (2.0**1023, 2.0**200):  # the quotient may be more than any float
            beyond = equal(b, div(b, rest, whole), INF)
            whole = b.select(beyond, mul(b, whole, real(scale)), whole)
        quotient = div(b, rest, whole)
        large = b.op("fcmp oge", quotient, real(2.0**53))
        quotient = b.select(large, quotient, b.call("trunc", quotient))
        left = fma(b, neg(b, quotient), whole, rest)
        below = float_of(b, b.op("sub", bits_of(b, quotient), integer(1)))
        below = b.select(large, below, sub(b, quotient, real(1.0)))
        left = b.select(less(b, left, real(0.0)), fma(b, neg(b, below), whole, rest), left)
        return [b.select(b.op("fcmp oge", rest, by), left, rest)]

    (rest,) = b.repeat([b.widen(rest)], test, body)
    found = b.select(valid, copysign(b, rest, x), NAN)
    return b.select(b.op("fcmp uno", y, y), y, found)


def hypot(b: Builder, x: Value, y: Value) -> Value:
    """After musl: squares as pairs, of numbers scaled so that these are floats."""
    first, second = fabs(b, x), fabs(b, y)
    large, small = b.call("maxnum", first, second), b.call("minnum", first, second)
    huge, tiny = b.op("fcmp ogt", large, real(2.0**510)), less(b, small, real(2.0**-450))
    scale = b.select(huge, real(2.0**-700), b.select(tiny, real(2.0**700), real(1.0)))
    back = b.select(huge, real(2.0**700), b.select(tiny, real(2.0**-700), real(1.0)))
    p = product_of(b, mul(b, large, scale), mul(b, large, scale))
    q = product_of(b, mul(b, small, scale), mul(b, small, scale))
    total = add(b, add(b, add(b, q.low, p.low), q.high), p.high)
    found = mul(b, b.call("sqrt", total), back)
    apart = b.op("fcmp oge", large, mul(b, small, real(2.0**60)))
    found = b.select(apart, add(b, large, small), found)
    unknown = b.op("fcmp uno", x, y)
    infinite = b.op("or", equal(b, first, INF), equal(b, second, INF))
    return b.select(infinite, INF, b.select(unknown, NAN, found))
