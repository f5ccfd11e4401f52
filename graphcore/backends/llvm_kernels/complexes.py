"""Complex numbers: operations on their parts, as NumPy computes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

from .builder import PARTS, Builder, Value
from .conversions import is_finite, is_infinite, literal

Rule: TypeAlias = Callable[..., Value]


def by_parts(rule: Rule) -> Rule:
    """The same operation on real and on imaginary parts."""

    def both(b: Builder, *zs: Value) -> Value:
        parts = zip(*[b.parts(z) for z in zs], strict=True)
        return b.complex(*[rule(b, *xs) for xs in parts])

    return both


def either(rule: Rule, text: str) -> Rule:
    """A test of both parts, whose answers an instruction combines."""
    return lambda b, z: b.op(text, *[rule(b, x) for x in b.parts(z)])


def product_sum(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z, rounded once."""
    return b.call("fma", x, y, z)


def multiply(b: Builder, x: Value, y: Value) -> Value:
    (xr, xi), (yr, yi) = b.parts(x), b.parts(y)
    re = product_sum(b, xr, yr, b.negative(b.op("fmul", xi, yi)))
    return b.complex(re, product_sum(b, xr, yi, b.op("fmul", xi, yr)))


def square(b: Builder, x: Value) -> Value:
    re, im = b.parts(x)
    cross = b.op("fmul", re, im)
    square_of_im = b.negative(b.op("fmul", im, im))
    return b.complex(product_sum(b, re, re, square_of_im), b.op("fadd", cross, cross))


def conjugate(b: Builder, x: Value) -> Value:
    re, im = b.parts(x)
    return b.complex(re, b.negative(im))


def divide(b: Builder, x: Value, y: Value) -> Value:
    """Smith's way: divided by the larger part first, so that no square overflows."""
    (xr, xi), (yr, yi) = b.parts(x), b.parts(y)
    first = b.op("fcmp oge", b.call("fabs", yr), b.call("fabs", yi))
    large, small = b.select(first, yr, yi), b.select(first, yi, yr)
    ratio = b.op("fdiv", small, large)
    scale = b.op("fadd", large, b.op("fmul", small, ratio))
    scale = b.op("fdiv", literal(1.0, scale.kind), scale)
    p, q = b.op("fmul", xr, ratio), b.op("fmul", xi, ratio)
    re = b.select(first, b.op("fadd", xr, q), b.op("fadd", p, xi))
    im = b.select(first, b.op("fsub", xi, p), b.op("fsub", q, xr))
    re, im = b.op("fmul", re, scale), b.op("fmul", im, scale)
    none = b.op("and", first, b.op("fcmp oeq", large, literal(0.0, large.kind)))
    nothing = b.call("fabs", large)
    return b.complex(
        b.select(none, b.op("fdiv", xr, nothing), re),
        b.select(none, b.op("fdiv", xi, nothing), im),
    )


def reciprocal(b: Builder, x: Value) -> Value:
    re, im = b.parts(x)
    first = b.op("fcmp ole", b.call("fabs", im), b.call("fabs", re))
    large, small = b.select(first, re, im), b.select(first, im, re)
    ratio = b.op("fdiv", small, large)
    scale = b.op("fadd", large, b.op("fmul", small, ratio))
    one = literal(1.0, re.kind)
    whole, part = b.op("fdiv", one, scale), b.op("fdiv", ratio, scale)
    return b.complex(b.select(first, whole, part), b.negative(b.select(first, part, whole)))


def absolute(b: Builder, x: Value) -> Value:
    return b.function("hypot", *b.parts(x))


def sign(b: Builder, x: Value) -> Value:
    """x / |x|; of an infinite part 1 or -1, if the other is finite."""
    re, im = b.parts(x)
    size, zero = absolute(b, x), literal(0.0, re.kind)
    infinite = b.op("fcmp oeq", size, literal(float("inf"), re.kind))
    unknown = literal(float("nan"), re.kind)
    found = []
    for part, other in ((re, im), (im, re)):
        one = b.call("copysign", literal(1.0, re.kind), part)
        is_inf = b.op("fcmp oeq", b.call("fabs", part), literal(float("inf"), re.kind))
        other_inf = b.op("fcmp oeq", b.call("fabs", other), literal(float("inf"), re.kind))
        edge = b.select(other_inf, zero, one)
        edge = b.select(b.op("and", is_inf, other_inf), unknown, edge)
        whole = b.select(infinite, edge, b.op("fdiv", part, size))
        found.append(b.select(b.op("fcmp oeq", size, zero), zero, whole))
    return b.complex(*found)


def equal(b: Builder, x: Value, y: Value) -> Value:
    pairs = zip(b.parts(x), b.parts(y), strict=True)
    return b.op("and", *[b.op("fcmp oeq", p, q) for p, q in pairs])


def not_equal(b: Builder, x: Value, y: Value) -> Value:
    return b.neither(equal(b, x, y))


def before(strict: str, last: str) -> Rule:
    """The order by real parts, then by imaginary ones."""

    def rule(b: Builder, x: Value, y: Value) -> Value:
        (xr, xi), (yr, yi) = b.parts(x), b.parts(y)
        known = b.op("fcmp ord", xi, yi)
        first = b.op("and", b.op(f"fcmp o{strict}", xr, yr), known)
        second = b.op("and", b.op("fcmp oeq", xr, yr), b.op(f"fcmp o{last}", xi, yi))
        return b.op("or", first, second)

    return rule


def extreme(relation: str, strict: str) -> Rule:
    """The larger, or the smaller, in that order; the first one that has a nan."""

    def rule(b: Builder, x: Value, y: Value) -> Value:
        unknown = b.op("fcmp uno", *b.parts(x))
        return b.select(b.op("or", unknown, before(strict, relation)(b, x, y)), x, y)

    return rule


# ---- elementary functions


def exp(b: Builder, z: Value) -> Value:
    """e^x (cos y + i sin y), in two factors: e^x may be no float where the product is one."""
    x, y = b.parts(z)
    zero = literal(0.0, x.kind)
    limit = literal(709.0 if x.kind == "f64" else 88.0, x.kind)
    beyond = b.op("fcmp ogt", x, limit)
    size = b.function("exp", b.select(beyond, limit, x))
    more = b.function("exp", b.select(beyond, b.op("fsub", x, limit), zero))
    cos, sin = b.function("cos", y), b.function("sin", y)
    re, im = [b.op("fmul", b.op("fmul", size, part), more) for part in (cos, sin)]
    no_angle = b.neither(is_finite(b, y))
    end = b.op("and", no_angle, is_infinite(b, x))
    above = b.op("fcmp ogt", x, zero)
    re = b.select(end, b.select(above, x, zero), re)
    im = b.select(b.op("and", end, b.neither(above)), zero, im)
    straight = b.op("fcmp oeq", y, zero)
    re = b.select(straight, b.op("fmul", size, more), re)
    return b.complex(re, b.select(straight, y, im))


def in_double(rule: Rule) -> Rule:
    """A rule whose parts cancel, computed in float64 and rounded where they are float32."""

    @wraps(rule)
    def rounded(b: Builder, z: Value) -> Value:
        kind = PARTS[z.kind]
        wide = b.complex(*[b.convert("fpext", x, "f64") for x in b.parts(z)])
        return b.complex(*[b.convert("fptrunc", x, kind) for x in b.parts(rule(b, wide))])

    return rounded


@in_double
def log(b: Builder, z: Value) -> Value:
    x, y = b.parts(z)
    return b.complex(b.function("log_hypot", x, y), b.function("arctan2", y, x))


def sqrt(b: Builder, z: Value) -> Value:
    """t + i y / 2t, where 2t^2 = |x| + |z|, of numbers scaled so that these are floats."""
    x, y = b.parts(z)
    zero, inf = literal(0.0, x.kind), literal(float("inf"), x.kind)
    top, bottom, up, down = SCALES[x.kind]
    large = b.call("maxnum", b.call("fabs", x), b.call("fabs", y))
    huge = b.op("fcmp oge", large, literal(top, x.kind))
    tiny = b.op("fcmp olt", large, literal(bottom, x.kind))
    one = literal(1.0, x.kind)
    scale = b.select(huge, literal(0.25, x.kind), b.select(tiny, literal(up, x.kind), one))
    back = b.select(huge, literal(2.0, x.kind), b.select(tiny, literal(down, x.kind), one))
    p, q = b.op("fmul", x, scale), b.op("fmul", y, scale)
    half = b.op("fadd", b.call("fabs", p), b.function("hypot", p, q))
    t = b.call("sqrt", b.op("fmul", half, literal(0.5, x.kind)))
    u = b.op("fdiv", b.call("fabs", q), b.op("fadd", t, t))
    right = b.op("fcmp oge", x, zero)
    re, im = b.select(right, t, u), b.select(right, u, t)
    re, im = b.op("fmul", re, back), b.call("copysign", b.op("fmul", im, back), y)
    none = b.op("fcmp oeq", large, zero)
    re, im = b.select(none, zero, re), b.select(none, y, im)
    unknown = b.op("fcmp uno", x, x)
    im = b.select(unknown, b.op("fadd", x, y), im)
    re = b.select(unknown, x, re)
    endless = is_infinite(b, x)
    right = b.op("fcmp ogt", x, zero)
    nan_of_y = b.op("fsub", y, y)
    flat = b.select(b.op("fcmp uno", y, y), y, b.call("copysign", zero, y))
    re = b.select(endless, b.select(right, x, nan_of_y), re)
    im = b.select(endless, b.select(right, flat, b.call("copysign", inf, y)), im)
    across = is_infinite(b, y)
    return b.complex(b.select(across, inf, re), b.select(across, y, im))


SCALES = {
    "f64": (2.0**1021, 2.0**-1000, 2.0**108, 2.0**-54),
    "f32": (2.0**125, 2.0**-100, 2.0**48, 2.0**-24),
}
"""Limits above which numbers are scaled down and below which they are scaled up, the factor for the
latter, and the one that undoes it in the root."""


# ---- hyperbolic and trigonometric functions


def hyperbolic(b: Builder, x: Value, limit: float) -> tuple[Value, Value, Value]:
    """sinh(x) and cosh(x) for |x| up to a limit, and by how much |x| is above it."""
    size, most = b.call("fabs", x), literal(limit, x.kind)
    beyond = b.op("fcmp ogt", size, most)
    near = b.call("copysign", b.select(beyond, most, size), x)
    rest = b.select(beyond, b.op("fsub", size, most), literal(0.0, x.kind))
    return b.function("sinh", near), b.function("cosh", near), rest


def sinh(b: Builder, z: Value) -> Value:
    """sinh x cos y + i cosh x sin y"""
    x, y = b.parts(z)
    zero = literal(0.0, x.kind)
    s, c, rest = hyperbolic(b, x, 709.0 if x.kind == "f64" else 88.0)
    more = b.function("exp", rest)
    re = b.op("fmul", b.op("fmul", s, b.function("cos", y)), more)
    im = b.op("fmul", b.op("fmul", c, b.function("sin", y)), more)
    im = b.select(b.op("fcmp oeq", y, zero), y, im)
    no_angle = b.neither(is_finite(b, y))
    re = b.select(b.op("and", no_angle, b.op("fcmp oeq", x, zero)), x, re)
    end = b.op("and", no_angle, is_infinite(b, x))
    return b.complex(b.select(end, literal(float("inf"), x.kind), re), im)


def cosh(b: Builder, z: Value) -> Value:
    """cosh x cos y + i sinh x sin y"""
    x, y = b.parts(z)
    zero = literal(0.0, x.kind)
    s, c, rest = hyperbolic(b, x, 709.0 if x.kind == "f64" else 88.0)
    more = b.function("exp", rest)
    re = b.op("fmul", b.op("fmul", c, b.function("cos", y)), more)
    im = b.op("fmul", b.op("fmul", s, b.function("sin", y)), more)
    flat = b.op("fmul", y, b.call("copysign", literal(1.0, x.kind), x))
    im = b.select(b.op("fcmp oeq", y, zero), flat, im)
    no_angle = b.neither(is_finite(b, y))
    im = b.select(b.op("and", no_angle, b.op("fcmp oeq", x, zero)), zero, im)
    end = b.op("and", no_angle, is_infinite(b, x))
    return b.complex(b.select(end, literal(float("inf"), x.kind), re), im)


def tanh(b: Builder, z: Value) -> Value:
    """(sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y)

    The real part is tanh x / (1 - (sin y / cosh x)^2), which is more exact where x is not small.
    """
    x, y = b.parts(z)
    zero, one = literal(0.0, x.kind), literal(1.0, x.kind)
    s, c, rest = hyperbolic(b, x, 350.0 if x.kind == "f64" else 40.0)
    sin, cos = b.function("sin", y), b.function("cos", y)
    below = product_sum(b, s, s, b.op("fmul", cos, cos))
    less = b.function("exp", b.op("fmul", rest, literal(-2.0, x.kind)))
    angle = b.op("fmul", sin, cos)
    re = b.op("fdiv", b.op("fmul", s, c), below)
    part = b.op("fdiv", sin, c)
    by = product_sum(b, b.negative(part), part, one)
    apart = b.op("fcmp ogt", b.call("fabs", x), literal(2.0, x.kind))
    re = b.select(apart, b.op("fdiv", b.function("tanh", x), by), re)
    im = b.op("fmul", b.op("fdiv", angle, below), less)
    straight = b.op("fcmp oeq", y, zero)
    im = b.select(straight, y, im)
    no_angle = b.neither(is_finite(b, y))
    re = b.select(b.op("and", no_angle, b.op("fcmp oeq", x, zero)), x, re)
    large = b.op("fcmp ogt", b.call("fabs", y), one)
    large = b.op("and", large, b.neither(no_angle))
    flat = b.call("copysign", zero, b.select(large, angle, y))
    end = is_infinite(b, x)
    return b.complex(b.select(end, b.call("copysign", one, x), re), b.select(end, flat, im))


def rotated(function: Rule) -> Rule:
    """-i f(iz): the sine of a hyperbolic sine."""

    def rule(b: Builder, z: Value) -> Value:
        x, y = b.parts(z)
        re, im = b.parts(function(b, b.complex(b.negative(y), x)))
        return b.complex(im, b.negative(re))

    return rule


def cos(b: Builder, z: Value) -> Value:
    x, y = b.parts(z)
    return cosh(b, b.complex(b.negative(y), x))


# ---- relatives of the exponential and the logarithm, by the formulas that NumPy has for them


def log_times(factor: float) -> Rule:
    """The logarithm to another base."""

    def rule(b: Builder, z: Value) -> Value:
        parts = b.parts(log(b, z))
        return b.complex(*[b.op("fmul", x, literal(factor, x.kind)) for x in parts])

    return rule


def exp2(b: Builder, z: Value) -> Value:
    return exp(b, b.complex(*[b.op("fmul", x, literal(LOG_2, x.kind)) for x in b.parts(z)]))


def log1p(b: Builder, z: Value) -> Value:
    x, y = b.parts(z)
    return log(b, b.complex(b.op("fadd", x, literal(1.0, x.kind)), y))


@in_double
def expm1(b: Builder, z: Value) -> Value:
    x, y = b.parts(z)
    half = b.function("sin", b.op("fmul", y, literal(0.5, x.kind)))
    less = b.op("fmul", half, b.op("fmul", half, literal(2.0, x.kind)))
    re = b.op("fmul", b.function("expm1", x), b.function("cos", y))
    return b.complex(
        b.op("fsub", re, less), b.op("fmul", b.function("exp", x), b.function("sin", y))
    )


LOG_2 = 0.6931471805599453
