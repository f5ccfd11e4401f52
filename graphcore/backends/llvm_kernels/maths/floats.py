"""Pieces of elementary functions: polynomials, bits of floats, and sums of two floats.

A pair is a sum of two float64 that do not overlap, with about 106 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

INF, NAN = real(math.inf), real(math.nan)


class Pair(NamedTuple):
    """A number as the sum of a float64 and a much smaller one."""

    high: Value
    low: Value


def add(b: Builder, x: Value, y: Value) -> Value:
    return b.op("fadd", x, y)


def sub(b: Builder, x: Value, y: Value) -> Value:
    return b.op("fsub", x, y)


def mul(b: Builder, x: Value, y: Value) -> Value:
    return b.op("fmul", x, y)


def div(b: Builder, x: Value, y: Value) -> Value:
    return b.op("fdiv", x, y)


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once."""
    return b.call("fma", x, y, z)


def fabs(b: Builder, x: Value) -> Value:
    return b.call("fabs", x)


def copysign(b: Builder, x: Value, y: Value) -> Value:
    return b.call("copysign", x, y)


def less(b: Builder, x: Value, y: Value) -> Value:
    return b.op("fcmp olt", x, y)


def equal(b: Builder, x: Value, y: Value) -> Value:
    return b.op("fcmp oeq", x, y)


def polynomial(b: Builder, x: Value, *coefficients: float) -> Value:
    """A polynomial, lowest coefficient first: in pairs, pairs of these, ..., many at once."""
    cs = [b.widen(real(c, x.kind), x.wide) for c in coefficients]
    while len(cs) > 1:
        pairs = range(0, len(cs), 2)
        cs = [fma(b, cs[i + 1], x, cs[i]) if i + 1 < len(cs) else cs[i] for i in pairs]
        if len(cs) > 1:
            x = mul(b, x, x)
    return cs[0]


# ---- bits


def bits_of(b: Builder, x: Value) -> Value:
    return b.convert("bitcast", x, f"i{x.kind[1:]}")


def float_of(b: Builder, x: Value) -> Value:
    return b.convert("bitcast", x, f"f{x.kind[1:]}")


def power_of_two(b: Builder, n: Value) -> Value:
    """2^n of normal size, for the n that the last bits of an integer are."""
    bias, digits = (1023, 52) if n.kind == "i64" else (127, 23)
    raised = b.op("add", n, integer(bias, n.kind))
    return float_of(b, b.op("shl", raised, integer(digits, n.kind)))


def clamp(b: Builder, x: Value, low: float, high: float) -> Value:
    """`x` where it is between the limits or nan, else the nearer limit."""
    least, most = real(low, x.kind), real(high, x.kind)
    x = b.select(b.op("fcmp ogt", x, most), most, x)
    return b.select(less(b, x, least), least, x)


# ---- pairs


def sum_of(b: Builder, x: Value, y: Value) -> Pair:
    """x + y exactly."""
    total = add(b, x, y)
    part = sub(b, total, x)
    left = sub(b, x, sub(b, total, part))
    return Pair(total, add(b, left, sub(b, y, part)))


def quick_sum(b: Builder, x: Value, y: Value) -> Pair:
    """x + y exactly, where |x| >= |y| or x is 0."""
    total = add(b, x, y)
    return Pair(total, sub(b, y, sub(b, total, x)))


def product_of(b: Builder, x: Value, y: Value) -> Pair:
    """x * y exactly."""
    high = mul(b, x, y)
    return Pair(high, fma(b, x, y, b.negative(high)))


def pair_plus(b: Builder, x: Pair, y: Value) -> Pair:
    total = sum_of(b, x.high, y)
    return quick_sum(b, total.high, add(b, total.low, x.low))


def pair_sum(b: Builder, x: Pair, y: Pair) -> Pair:
    total = sum_of(b, x.high, y.high)
    return quick_sum(b, total.high, add(b, total.low, add(b, x.low, y.low)))


def pair_times(b: Builder, x: Pair, y: Value) -> Pair:
    high = product_of(b, x.high, y)
    return quick_sum(b, high.high, fma(b, x.low, y, high.low))


def pair_product(b: Builder, x: Pair, y: Pair) -> Pair:
    high = product_of(b, x.high, y.high)
    cross = fma(b, x.low, y.high, mul(b, x.high, y.low))
    return quick_sum(b, high.high, add(b, high.low, cross))


def pair_quotient(b: Builder, x: Pair, y: Pair) -> Pair:
    inverse = div(b, real(1.0), y.high)
    high = mul(b, x.high, inverse)
    left = fma(b, b.negative(high), y.high, x.high)
    left = add(b, left, fma(b, b.negative(high), y.low, x.low))
    return quick_sum(b, high, mul(b, left, inverse))


def constant_pair(high: float, low: float) -> Pair:
    return Pair(real(high), real(low))


def chosen(b: Builder, x: Value, cases: Sequence[tuple[Value, Value]]) -> Value:
    """`x`, but the value of the last case that holds."""
    for holds, value in cases:
        x = b.select(holds, value, x)
    return x
