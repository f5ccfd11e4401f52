"""Extremes of values and their positions: what a fold keeps of the values so far.

The larger of two floats takes some 20 cycles with its nans and signs of zero, and each waits for
the one before. A comparison, which leaves nan out, takes a few; nan and the sign are kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphcore.ir import DType
from graphcore.ops import elementwise as e

from .arithmetic import bits_of, cast, kind_of_dtype, literal, rule_of
from .builder import PARTS, Builder, Value


def farthest(dtype: DType, largest: bool) -> Value:
    """A value that changes no extreme."""
    far, kind = -np.inf if largest else np.inf, kind_of_dtype(dtype)
    if dtype.kind == "c":
        return literal(complex(far, far), kind)
    if dtype.kind == "f":
        return literal(far, kind)
    if dtype.kind == "b":
        return literal(not largest, kind)
    limits = np.iinfo(dtype)
    return literal(int(limits.min if largest else limits.max), kind)


# ---- extremes of floats


def float_alone(b: Builder, x: Value) -> list[Value]:
    """The totals of one float: itself, and its bits, which tell the sign of a zero."""
    x = in_lanes(b, x)
    return [x, bits_of(b, x)]


def of_floats(b: Builder, largest: bool, a: Sequence[Value], c: Sequence[Value]) -> list[Value]:
    """The extreme of two, or the last nan; the largest of values is negative if they all are."""
    (before, signs), (x, bits) = a, c
    better = b.op("fcmp ogt" if largest else "fcmp olt", x, before)
    found = b.select(b.op("fcmp uno", x, x), x, b.select(better, x, before))
    return [found, b.op("and" if largest else "or", signs, bits)]


def float_of(b: Builder, totals: Sequence[Value], kind: str) -> Value:
    """The extreme with its sign, which is that of all values if it is zero; or one same nan."""
    x, signs = totals
    signed = b.call("copysign", x, b.convert("bitcast", signs, x.kind))
    nan = literal(float("nan"), x.kind)
    return cast(b, b.select(b.op("fcmp uno", x, x), nan, signed), kind)


# ---- positions


def in_lanes(b: Builder, x: Value) -> Value:
    """A value in the kind in which such values are compared."""
    return cast(b, x, {"f16": "f32", "i1": "u8"}.get(x.kind, x.kind))


def later(b: Builder, largest: bool, a: Sequence[Value], c: Sequence[Value]) -> list[Value]:
    """The extreme and its position of totals and of one value that comes later."""
    return chosen(b, is_better(b, largest, c[0], a[0]), a, c)


def of_positions(b: Builder, largest: bool, a: Sequence[Value], c: Sequence[Value]) -> list[Value]:
    """The extreme of two and its position: the first one of equal values, and of nans."""
    first = b.op("icmp slt", c[1], a[1])
    as_good = b.neither(is_better(b, largest, a[0], c[0]))
    better = b.op("or", is_better(b, largest, c[0], a[0]), b.op("and", first, as_good))
    return chosen(b, better, a, c)


def chosen(b: Builder, better: Value, a: Sequence[Value], c: Sequence[Value]) -> list[Value]:
    """The totals c where they are better, else a."""
    return [b.select(better, y, x) for x, y in zip(a, c, strict=True)]


def is_better(b: Builder, largest: bool, x: Value, best: Value) -> Value:
    """Whether x is farther than the best value, or the first nan."""
    if x.kind[0] == "f":
        farther = b.op("fcmp ugt" if largest else "fcmp ult", x, best)
        return b.op("and", farther, b.op("fcmp ord", best, best))
    farther = rule_of(e.greater if largest else e.less, x.kind)(b, x, best)
    if x.kind not in PARTS:
        return farther
    isnan = rule_of(e.isnan, x.kind)
    return b.op("and", b.op("or", farther, isnan(b, x)), b.neither(isnan(b, best)))
