"""Powers and roots of float32."""

from __future__ import annotations

from graphcore.backends.llvm_kernels.builder import Builder, Value, real
from graphcore.backends.llvm_kernels.maths import floats as fp
from graphcore.backends.llvm_kernels.maths.exponential import SHIFT
from graphcore.backends.llvm_kernels.maths.powers import power_at_edges

from . import pieces
from .exponential import power_of_part
from .logarithm import split

LOG2 = (
    *(1.4426950409393584, -0.7213475252130827, 0.48089832072343297, -0.3606728005654049),
    *(0.28854064404807067, -0.24050417360320647, 0.20609624189201878, -0.17904695072193463),
    *(0.15900167476853622, -0.15698242421277211, 0.15485674408161085, -0.08634482310433095),
)
"""log2(1 + f) / f, to 1.1e-10 of the logarithm: as float64."""
CUBE_ROOT = (0.33332565426826477, 0.22367802262306213, 0.1749991774559021)
"""((1 - r)^(-1/3) - 1) / r to 3.7e-6, for |r| up to 0.11"""
THIRDS = 1419917056.0
"""Less a third of the bits of a float as an integer: the bits of about 1 / cbrt."""


def power(b: Builder, x: Value, y: Value) -> Value:
    """2^(y log2(x)); the product is made in float64. What is strange is rare."""
    strange = b.op("or", pieces.is_strange(b, x), pieces.is_strange(b, fp.fabs(b, y), 0))

    def of_size() -> list[Value]:
        tiny = fp.less(b, fp.fabs(b, x), pieces.number(2.0**-126))
        up = b.select(tiny, fp.mul(b, fp.fabs(b, x), pieces.number(2.0**24)), fp.fabs(b, x))
        return [up, b.select(tiny, pieces.number(-24.0), pieces.ZERO)]

    normal, shift = b.branch(strange, of_size, lambda: [x, b.widen(pieces.ZERO, x.wide)])
    k, f = split(b, normal)
    k = fp.add(b, b.convert("sitofp", k, "f32"), shift)
    k, f, times = [b.convert("fpext", v, "f64") for v in (k, f, y)]
    log = fp.fma(b, f, pieces.horner(b, f, *LOG2), k)
    found = power_of_2(b, fp.clamp(b, fp.mul(b, times, log), -151.0, 128.0))
    return pieces.where_strange(b, strange, found, lambda: power_at_edges(b, x, y, found))


def power_of_2(b: Builder, x: Value) -> Value:
    """2^x of a float64 from -151 to 128, as a float32."""
    shifted = fp.add(b, x, real(SHIFT))
    r = b.convert("fptrunc", fp.sub(b, x, fp.sub(b, shifted, real(SHIFT))), "f32")
    n = b.convert("trunc", fp.bits_of(b, shifted), "i32")
    y = pieces.in_binades(b, power_of_part(b, r), n, b.op("icmp slt", n, pieces.whole(-60)))
    return b.select(b.op("fcmp oge", x, real(128.0)), pieces.INF, y)


def cbrt(b: Builder, x: Value) -> Value:
    """x y^2, where y is 1 / cbrt(x): a third of the exponent, a series, and Newton's method."""
    size = fp.fabs(b, x)
    tiny = fp.less(b, size, pieces.number(2.0**-126))
    a = b.select(tiny, fp.mul(b, size, pieces.number(2.0**24)), size)
    third = fp.mul(b, b.convert("sitofp", fp.bits_of(b, a), "f32"), pieces.number(-1 / 3))
    y = fp.float_of(b, b.convert("fptosi", fp.add(b, third, pieces.number(THIRDS)), "i32"))
    r = fp.fma(b, b.negative(fp.mul(b, a, y)), fp.mul(b, y, y), pieces.ONE)
    y = fp.fma(b, fp.mul(b, y, r), pieces.horner(b, r, *CUBE_ROOT), y)
    t = fp.mul(b, fp.mul(b, a, y), y)
    square = fp.mul(b, t, t)
    lost = fp.fma(b, t, t, b.negative(square))
    left = fp.fma(b, b.negative(lost), t, fp.fma(b, b.negative(square), t, a))
    found = fp.fma(b, fp.mul(b, left, fp.mul(b, y, y)), pieces.number(1 / 3), t)
    found = b.select(tiny, fp.mul(b, found, pieces.number(2.0**-8)), found)
    edge = b.op("or", fp.equal(b, size, pieces.ZERO), b.op("fcmp uge", size, pieces.INF))
    return fp.copysign(b, b.select(edge, size, found), x)
