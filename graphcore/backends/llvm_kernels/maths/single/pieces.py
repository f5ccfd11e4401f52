"""Pieces of functions of float32."""

from __future__ import annotations

import math
from collections.abc import Callable

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real
from graphcore.backends.llvm_kernels.maths import floats as fp


def number(x: float) -> Value:
    """A constant of float32."""
    return real(x, "f32")


def whole(x: int) -> Value:
    """A constant of the integers with as many bits."""
    return integer(x, "i32")


INF, NAN = number(math.inf), number(math.nan)
ZERO, HALF, ONE = number(0.0), number(0.5), number(1.0)


def horner(b: Builder, x: Value, *coefficients: float) -> Value:
    """A polynomial, lowest coefficient first, with the fewest operations: many are under way."""
    *rest, found = [real(c, x.kind) for c in coefficients]
    for c in reversed(rest):
        found = fp.fma(b, found, x, c)
    return found


def odd(b: Builder, x: Value, square: Value, *coefficients: float) -> Value:
    """x + x^3 p(x^2)"""
    return fp.fma(b, b.op("fmul", x, square), horner(b, square, *coefficients), x)


def itself_near_0(b: Builder, x: Value, y: Value) -> Value:
    """`y`, but `x` where that is so small that it is the value to half a unit; zeros keep signs."""
    return b.select(fp.less(b, fp.fabs(b, x), number(2.0**-30)), x, y)


def raised(b: Builder, x: Value, n: Value) -> Value:
    """x * 2^n where both are normal floats; n is in the last bits."""
    return fp.float_of(b, b.op("add", fp.bits_of(b, x), b.op("shl", n, whole(23))))


def in_binades(b: Builder, x: Value, n: Value, low: Value) -> Value:
    """x * 2^n for an x from 1/2 to 2; where it is `low`, it may be less than normal floats."""
    y = raised(b, x, b.select(low, b.op("add", n, whole(64)), n))
    return b.select(low, b.op("fmul", y, number(2.0**-64)), y)


def is_strange(b: Builder, x: Value, least: int = 0x00800000) -> Value:
    """Whether some lane is below 0, not normal, infinite or nan; or has bits below `least`."""
    above = b.op("sub", fp.bits_of(b, x), whole(least))
    return b.any_lane(b.op("icmp uge", above, whole(0x7F800000 - least)))


def where_strange(b: Builder, strange: Value, y: Value, mend: Callable[[], Value]) -> Value:
    """`y`, mended where some lane is strange."""
    return b.branch(strange, lambda: [mend()], lambda: [y])[0]
