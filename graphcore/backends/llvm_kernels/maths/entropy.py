"""Products with logarithms, and differences from 1, without loss of digits."""

from __future__ import annotations

import math

from graphcore.backends.llvm_kernels.builder import Builder, Value, real

from . import floats as fp
from .angles import cosine, is_odd, reduced, sine
from .exponential import exp, expm1, half_expm1
from .logarithm import log, log1p, log_of_pair, single


def unknown(b: Builder, x: Value, y: Value) -> Value:
    return b.op("fcmp uno", x, y)


def xlogy(b: Builder, x: Value, y: Value) -> Value:
    none = b.op("and", fp.equal(b, x, real(0.0)), b.op("fcmp ord", y, y))
    return b.select(none, real(0.0), fp.mul(b, x, log(b, y)))


def xlog1py(b: Builder, x: Value, y: Value) -> Value:
    none = b.op("and", fp.equal(b, x, real(0.0)), b.op("fcmp ord", y, y))
    return b.select(none, real(0.0), fp.mul(b, x, log1p(b, y)))


def entr(b: Builder, x: Value) -> Value:
    found = fp.mul(b, b.negative(x), log(b, x))
    edges = [(fp.equal(b, x, real(0.0)), real(0.0)), (fp.less(b, x, real(0.0)), real(-math.inf))]
    return fp.chosen(b, found, edges)


def log_ratio(b: Builder, x: Value, y: Value) -> fp.Pair:
    """log(x / y) of numbers above 0, whose quotient may be no float."""
    finite = b.op("and", fp.less(b, x, fp.INF), fp.less(b, y, fp.INF))
    scale = b.select(fp.less(b, y, real(2.0**-900)), real(2.0**200), real(1.0))
    top = b.select(finite, fp.mul(b, x, scale), real(1.0))
    below = b.select(finite, fp.mul(b, y, scale), real(1.0))
    ratio = fp.div(b, top, below)
    fits = b.op("and", b.op("fcmp oge", ratio, real(2.0**-900)), fp.less(b, ratio, real(2.0**900)))
    fits = b.op("and", fits, b.op("fcmp ogt", below, real(2.0**-900)))
    left = fp.div(b, fp.fma(b, b.negative(ratio), below, top), below)
    found = log_of_pair(
        b, fp.Pair(b.select(fits, ratio, real(1.0)), b.select(fits, left, real(0.0)))
    )
    fits, apart = b.op("and", fits, finite), single(fp.sub(b, log(b, x), log(b, y)))
    return fp.Pair(*[b.select(fits, p, q) for p, q in zip(found, apart, strict=True)])


def rel_entr(b: Builder, x: Value, y: Value) -> Value:
    return relative(b, x, y, fp.mul(b, x, log_ratio(b, x, y).high), real(0.0))


def kl_div(b: Builder, x: Value, y: Value) -> Value:
    log = log_ratio(b, x, y)
    whole = fp.mul(b, x, log.high)
    found = fp.pair_times(b, log, x)
    found = fp.pair_plus(b, fp.pair_plus(b, found, b.negative(x)), y)
    plain = fp.add(b, fp.sub(b, whole, x), y)
    exact = fp.less(b, fp.fabs(b, found.high), fp.INF)
    return relative(b, x, y, b.select(exact, found.high, plain), y)


def relative(b: Builder, x: Value, y: Value, found: Value, at_0: Value) -> Value:
    """What is found above 0; infinite below."""
    above = b.op("and", fp.less(b, real(0.0), x), fp.less(b, real(0.0), y))
    none = b.op("and", fp.equal(b, x, real(0.0)), b.op("fcmp oge", y, real(0.0)))
    found = b.select(above, found, b.select(none, at_0, fp.INF))
    return b.select(unknown(b, x, y), fp.NAN, found)


def logit(b: Builder, x: Value) -> Value:
    """log(x / (1 - x))"""
    inside = b.op("and", fp.less(b, real(0.0), x), fp.less(b, x, real(1.0)))
    safe = b.select(inside, x, real(0.5))
    scaled_up = b.select(fp.less(b, safe, real(2.0**-900)), real(0.5), safe)
    rest = fp.sum_of(b, real(1.0), b.negative(scaled_up))
    found = log_of_pair(b, fp.pair_quotient(b, single(scaled_up), rest)).high
    tiny = log(b, safe)
    found = b.select(fp.less(b, safe, real(2.0**-900)), tiny, found)
    edges = [
        (b.neither(inside), fp.NAN),
        (fp.equal(b, x, real(0.0)), real(-math.inf)),
        (fp.equal(b, x, real(1.0)), fp.INF),
    ]
    return fp.chosen(b, found, edges)


def log1mexp(b: Builder, x: Value) -> Value:
    """log(-(e^x - 1)) near 0, log(1 - e^x) below."""
    near = b.op("fcmp ogt", x, real(-math.log(2)))
    half = half_expm1(b, fp.clamp(b, x, -40.0, 0.0))
    difference = fp.Pair(fp.mul(b, half.high, real(-2.0)), fp.mul(b, half.low, real(-2.0)))
    shown = fp.less(b, x, real(-(2.0**-900)))
    one = single(real(1.0))
    start = [b.select(b.op("and", near, shown), p, q) for p, q in zip(difference, one, strict=True)]
    found = log_of_pair(b, fp.Pair(*start)).high
    found = b.select(
        near, b.select(shown, found, log(b, b.negative(x))), log1p(b, b.negative(exp(b, x)))
    )
    edges = [
        (fp.equal(b, x, real(0.0)), real(-math.inf)),
        (b.op("fcmp ugt", x, real(0.0)), fp.NAN),
    ]
    return fp.chosen(b, found, edges)


def exprel(b: Builder, x: Value) -> Value:
    found = fp.div(b, expm1(b, x), x)
    near = fp.fma(b, x, real(0.5), real(1.0))
    edges = [(fp.less(b, fp.fabs(b, x), real(2.0**-40)), near), (fp.equal(b, x, fp.INF), fp.INF)]
    return fp.chosen(b, found, edges)


def cosm1(b: Builder, x: Value) -> Value:
    """0 - 2 sin(x / 2)^2, which is 0 at 0 and not -0."""
    n, rest = reduced(b, fp.mul(b, x, real(0.5)))
    odd, s, c = is_odd(b, n), sine(b, rest), cosine(b, rest)
    root = fp.Pair(*[b.select(odd, p, q) for p, q in zip(c, s, strict=True)])
    found = b.op("fsub", real(0.0), fp.mul(b, fp.pair_product(b, root, root).high, real(2.0)))
    return b.select(fp.less(b, fp.fabs(b, x), fp.INF), found, fp.NAN)
