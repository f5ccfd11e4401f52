"""Powers and roots."""

from __future__ import annotations

import math

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

from . import floats as fp
from .exponential import exp_of_pair, scaled
from .logarithm import log_of_pair, single

CUBE_ROOT = (
    *(1.87595182427177009643, -1.88497979543377169875, 1.621429720105354466140),
    *(-0.758397934778766047437, 0.145996192886612446982),
)
"""t / cbrt(x) by t^3 / x"""


def power(b: Builder, x: Value, y: Value) -> Value:
    """e^(y log|x|), with the sign that an odd y gives."""
    log = log_of_pair(b, single(fp.fabs(b, x)))
    return power_by_log(b, x, y, log.high, log.low)


def log_high(b: Builder, x: Value) -> Value:
    """log|x|, rounded."""
    return log_of_pair(b, single(fp.fabs(b, x))).high


def log_low(b: Builder, x: Value) -> Value:
    """What rounding took from log|x|."""
    return log_of_pair(b, single(fp.fabs(b, x))).low


def power_by_log(b: Builder, x: Value, y: Value, log: Value, rest: Value) -> Value:
    """x^y where log|x| is known, rounded and with the rest."""
    high = fp.mul(b, y, log)
    low = fp.fma(b, y, rest, fp.fma(b, y, log, b.negative(high)))
    bounded = fp.clamp(b, high, -800.0, 800.0)
    low = b.select(fp.equal(b, bounded, high), low, real(0.0))
    one, n = exp_of_pair(b, fp.Pair(bounded, low))
    return power_at_edges(b, x, y, scaled(b, fp.add(b, one.high, one.low), n))


def power_at_edges(b: Builder, x: Value, y: Value, found: Value) -> Value:
    """x^y where |x|^y is `found`, but at the edges."""
    size = fp.fabs(b, x)
    zero, half, one, endless = [real(v, x.kind) for v in (0.0, 0.5, 1.0, math.inf)]
    whole = fp.equal(b, b.call("trunc", y), y)
    halved = fp.mul(b, y, half)
    odd = b.op("and", whole, b.neither(fp.equal(b, b.call("trunc", halved), halved)))
    above = b.op("fcmp ogt", y, zero)
    up, down = b.select(above, endless, zero), b.select(above, zero, endless)
    found = b.select(fp.equal(b, size, endless), up, found)
    found = b.select(fp.equal(b, size, zero), down, found)
    found = b.select(odd, fp.copysign(b, found, x), found)
    finite = fp.less(b, size, endless)
    minus = b.op("and", fp.less(b, x, zero), b.op("and", finite, b.neither(whole)))
    found = b.select(minus, real(math.nan, x.kind), found)
    found = b.select(b.op("fcmp uno", x, y), real(math.nan, x.kind), found)
    same = b.op("and", fp.equal(b, fp.fabs(b, y), endless), fp.equal(b, size, one))
    ones = b.op("or", fp.equal(b, x, one), fp.equal(b, y, zero))
    return b.select(b.op("or", ones, same), one, found)


def cbrt(b: Builder, x: Value) -> Value:
    """As fdlibm has it: 5 bits from the exponent, 23 from a polynomial, all by Newton's method."""
    size = fp.fabs(b, x)
    tiny = fp.less(b, size, real(2.0**-1022))
    bits = fp.bits_of(b, b.select(tiny, fp.mul(b, size, real(2.0**54)), size))
    thirds = b.op("mul", b.op("lshr", bits, integer(32)), integer(0xAAAAAAAB))
    top = b.op("lshr", thirds, integer(33))
    top = b.op("add", top, b.select(tiny, integer(696219795), integer(715094163)))
    t = fp.float_of(b, b.op("shl", top, integer(32)))
    r = fp.mul(b, fp.mul(b, t, t), fp.div(b, t, size))
    t = fp.mul(b, t, fp.polynomial(b, r, *CUBE_ROOT))
    up = b.op("add", fp.bits_of(b, t), integer(1 << 31))
    rounded = b.op("and", up, integer(-(1 << 30)))
    t = fp.float_of(b, rounded)
    r = fp.div(b, size, fp.mul(b, t, t))
    r = fp.div(b, fp.sub(b, r, t), fp.add(b, fp.add(b, t, t), r))
    found = fp.fma(b, t, r, t)
    edge = b.op("or", fp.equal(b, size, real(0.0)), b.op("fcmp uge", size, fp.INF))
    return fp.copysign(b, b.select(edge, size, found), x)
