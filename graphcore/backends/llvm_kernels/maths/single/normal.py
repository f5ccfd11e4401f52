"""The error function of float32: x + x p(x^2) near 0, 1 - 2^(x q(x)) from 1 on."""

from __future__ import annotations

from graphcore.backends.llvm_kernels.builder import Builder, Value
from graphcore.backends.llvm_kernels.maths import floats as fp

from . import pieces
from .exponential import exp2

NEAR = (
    *(0.12837916612625122, -0.3761262595653534, 0.11283578723669052),
    *(-0.026853347197175026, 0.005187162198126316, -0.0007997853099368513),
    7.806903158780187e-05,
)
"""p, to 1.5e-9 of erf(x), for |x| up to 1"""
FAR = (
    *(-1.628361701965332, -0.9160674810409546, -0.1536913961172104),
    *(0.034639060497283936, -0.005420816130936146, 0.0005057761445641518),
    -2.0141171262366697e-05,
)
"""q, to 3.9e-10 of erf(x), for x from 1 to 4.1"""


def erf(b: Builder, x: Value) -> Value:
    a = fp.fabs(b, x)
    near = fp.clamp(b, a, 0.0, 1.0)
    inner = fp.fma(b, near, pieces.horner(b, fp.mul(b, near, near), *NEAR), near)
    far = fp.clamp(b, a, 1.0, 4.1)
    outer = fp.sub(b, pieces.ONE, exp2(b, fp.mul(b, far, pieces.horner(b, far, *FAR))))
    return fp.copysign(b, b.select(fp.less(b, a, pieces.ONE), inner, outer), x)
