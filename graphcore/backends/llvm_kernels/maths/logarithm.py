"""Logarithms."""

from __future__ import annotations

import math

from graphcore.backends.llvm_kernels.builder import Builder, Value, integer, real

from .pairs import (
    INF,
    NAN,
    add,
    bits_of,
    div,
    equal,
    float_of,
    fma,
    less,
    mul,
    neg,
    polynomial,
    sub,
)

LOG_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SERIES = (
    *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01),
    *(2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01),
    1.479819860511658591e-01,
)


def log(b: Builder, x: Value) -> Value:
    """After fdlibm."""
    tiny = less(b, x, real(2.0**-1022))
    y = b.select(tiny, mul(b, x, real(2.0**54)), x)
    bits = bits_of(b, y)
    k = b.op("ashr", b.op("sub", bits, integer(0x3FE6A09E667F3BCD)), integer(52))
    m = float_of(b, b.op("sub", bits, b.op("shl", k, integer(52))))
    e = add(b, b.convert("sitofp", k, "f64"), b.select(tiny, real(-54.0), real(0.0)))
    f = sub(b, m, real(1.0))
    s = div(b, f, add(b, f, real(2.0)))
    z = mul(b, s, s)
    r = mul(b, polynomial(b, z, *SERIES), z)
    h = mul(b, mul(b, f, f), real(0.5))
    t = fma(b, s, add(b, h, r), mul(b, e, real(LOG_2[1])))
    t = sub(b, sub(b, h, t), f)
    y = fma(b, e, real(LOG_2[0]), neg(b, t))
    y = b.select(b.op("fcmp ult", x, real(0.0)), NAN, y)
    y = b.select(equal(b, x, real(0.0)), real(-math.inf), y)
    return b.select(equal(b, x, INF), INF, y)


def log1p(b: Builder, x: Value) -> Value:
    u = add(b, x, real(1.0))
    lost = div(b, sub(b, x, sub(b, u, real(1.0))), u)
    y = log(b, u)
    ends = b.op("or", equal(b, u, real(0.0)), equal(b, u, INF))
    y = b.select(ends, y, add(b, y, lost))
    return b.select(equal(b, x, real(0.0)), x, y)
