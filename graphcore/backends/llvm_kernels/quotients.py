"""Quotients by a number that stays the same in a loop: its reciprocal is computed before the loop.

A vector of divisions takes longer than twenty additions. The quotient by the reciprocal r of y is
q = x r, whose error is known exactly: e = q y - x, in one fused operation; q - e r is the quotient
as a division rounds it (Markstein 1990). `scale` takes y into the range in which r is a normal
float, and makes it positive, so that zeros get the signs they have in a division.
"""

from __future__ import annotations

import math
import struct

from .builder import Builder, Value, real

TINY = {"f64": 2.0**-1000, "f32": 2.0**-120}
"""Below this a divisor is scaled up: the reciprocal of the smallest ones would be no float."""
LARGE = {"f64": 2.0**1000, "f32": 2.0**100}
"""Above this a divisor is scaled down: the reciprocal of the largest ones would lose bits."""
UP = {"f64": 2.0**64, "f32": 2.0**32}
"""The factor by which a small divisor is scaled up, and a large one down."""


def quotient(b: Builder, x: Value, y: Value) -> Value:
    """x / y, as a division rounds it; if x is nearly below all floats the last bit may differ.

    Lanes are divided by their reciprocal where the divisor is known outside of a loop.
    """
    if not (x.wide and y.level < x.level and x.kind in UP):
        return b.op("fdiv", x, y)
    if y.is_constant and not y.wide and (given := float_in(y)) is not None:
        return by_constant(b, x, given)
    scales = [real(factor, x.kind) for factor in (UP[x.kind], 1.0, 1 / UP[x.kind])]
    scale = b.select(below(b, y, LARGE[x.kind]), scales[1], scales[2])
    scale = b.select(below(b, y, TINY[x.kind]), scales[0], scale)
    scale = b.call("copysign", scale, y)
    divisor = b.op("fmul", y, scale)
    reciprocal = b.widen(b.op("fdiv", real(1.0, x.kind), divisor), x.wide)
    return rounded(b, b.op("fmul", x, scale), divisor, reciprocal, b.negative(reciprocal))


def rounded(b: Builder, x: Value, y: Value, reciprocal: Value, negative: Value) -> Value:
    """x / y for a positive y; where the correction is nan the quotient is 0, infinite or nan."""
    q = b.op("fmul", x, reciprocal)
    error = b.call("fma", q, y, b.negative(x))
    better = b.call("fma", error, negative, q)
    return b.select(b.op("fcmp ord", better, better), better, q)


def by_constant(b: Builder, x: Value, y: float) -> Value:
    """x / y for a number: the product with its reciprocal, if that is exact."""
    size = abs(y)
    if not 1 / UP[x.kind] <= size <= UP[x.kind]:
        return b.op("fdiv", x, real(y, x.kind))
    if math.frexp(size)[0] == 0.5:
        return b.op("fmul", x, real(1 / y, x.kind))
    x = x if y > 0 else b.negative(x)
    inverse = single(1 / size) if x.kind == "f32" else 1 / size
    parts = [real(v, x.kind) for v in (size, inverse, -inverse)]
    return rounded(b, x, *parts)


def below(b: Builder, x: Value, limit: float) -> Value:
    return b.op("fcmp olt", b.call("fabs", x), real(limit, x.kind))


def float_in(y: Value) -> float | None:
    """The float that a text spells, else None."""
    if not y.text.startswith("0x"):
        return None
    found: float = struct.unpack(">d", bytes.fromhex(y.text[2:]))[0]
    return found


def single(x: float) -> float:
    """The float32 nearest to a number.

    It is the nearest to the reciprocal of a float32 too, though that has been rounded to a float64.
    """
    found: float = struct.unpack("<f", struct.pack("<f", x))[0]
    return found
