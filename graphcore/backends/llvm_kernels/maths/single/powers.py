"""Powers and roots of float32."""

from __future__ import annotations

from graphcore.backends.llvm_kernels.builder import Builder, Value, real
from graphcore.backends.llvm_kernels.maths.exponential import SHIFT
from graphcore.backends.llvm_kernels.maths.pairs import (
    add,
    bits_of,
    clamp,
    copysign,
    equal,
    fabs,
    float_of,
    fma,
    less,
    mul,
    neg,
    sub,
)
from graphcore.backends.llvm_kernels.maths.powers import power_at_edges

from .exponential import power_of_part
from .logarithm import split
from .pieces import (
    INF,
    ONE,
    ZERO,
    horner,
    in_binades,
    is_strange,
    number,
    where_strange,
    whole,
)

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
    strange = b.op("or", is_strange(b, x), is_strange(b, fabs(b, y), 0))

    def of_size() -> list[Value]:
        tiny = less(b, fabs(b, x), number(2.0**-126))
        up = b.select(tiny, mul(b, fabs(b, x), number(2.0**24)), fabs(b, x))
        return [up, b.select(tiny, number(-24.0), ZERO)]

    normal, shift = b.branch(strange, of_size, lambda: [x, b.widen(ZERO, x.wide)])
    k, f = split(b, normal)
    k = add(b, b.convert("sitofp", k, "f32"), shift)
    k, f, times = [b.convert("fpext", v, "f64") for v in (k, f, y)]
    log = fma(b, f, horner(b, f, *LOG2), k)
    found = power_of_2(b, clamp(b, mul(b, times, log), -151.0, 128.0))
    return where_strange(b, strange, found, lambda: power_at_edges(b, x, y, found))


def power_of_2(b: Builder, x: Value) -> Value:
    """2^x of a float64 from -151 to 128, as a float32."""
    shifted = add(b, x, real(SHIFT))
    r = b.convert("fptrunc", sub(b, x, sub(b, shifted, real(SHIFT))), "f32")
    n = b.convert("trunc", bits_of(b, shifted), "i32")
    y = in_binades(b, power_of_part(b, r), n, b.op("icmp slt", n, whole(-60)))
    return b.select(b.op("fcmp oge", x, real(128.0)), INF, y)


def cbrt(b: Builder, x: Value) -> Value:
    """x y^2, where y is 1 / cbrt(x): a third of the exponent, a series, and Newton's method."""
    size = fabs(b, x)
    tiny = less(b, size, number(2.0**-126))
    a = b.select(tiny, mul(b, size, number(2.0**24)), size)
    third = mul(b, b.convert("sitofp", bits_of(b, a), "f32"), number(-1 / 3))
    y = float_of(b, b.convert("fptosi", add(b, third, number(THIRDS)), "i32"))
    r = fma(b, neg(b, mul(b, a, y)), mul(b, y, y), ONE)
    y = fma(b, mul(b, y, r), horner(b, r, *CUBE_ROOT), y)
    t = mul(b, mul(b, a, y), y)
    square = mul(b, t, t)
    lost = fma(b, t, t, neg(b, square))
    left = fma(b, neg(b, lost), t, fma(b, neg(b, square), t, a))
    found = fma(b, mul(b, left, mul(b, y, y)), number(1 / 3), t)
    found = b.select(tiny, mul(b, found, number(2.0**-8)), found)
    edge = b.op("or", equal(b, size, ZERO), b.op("fcmp uge", size, INF))
    return copysign(b, b.select(edge, size, found), x)
