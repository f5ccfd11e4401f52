"""FUNCTIONS: elementary functions of float32 computed in float32, to two units in the last place.

Tests try all bit patterns. Their polynomials are fitted by tests/backends/llvm_kernels/minimax.py.
"""

from __future__ import annotations

from collections.abc import Callable

from graphcore.backends.llvm_kernels.builder import Value

from . import angles, exponential, logarithm, normal, powers

FUNCTIONS: dict[str, Callable[..., Value]] = {
    f.__name__: f
    for f in (
        *(exponential.exp, exponential.exp2, exponential.expm1, exponential.sigmoid),
        *(exponential.sinh, exponential.cosh, exponential.tanh),
        *(logarithm.log, logarithm.log2, logarithm.log10, logarithm.log1p),
        *(logarithm.log1p_of_part, logarithm.softplus),
        *(logarithm.arcsinh, logarithm.arccosh, logarithm.arctanh),
        *(angles.sin, angles.cos, angles.tan, angles.arcsin, angles.arccos),
        *(angles.arctan, angles.arctan2, powers.power, powers.cbrt, normal.erf),
    )
}
