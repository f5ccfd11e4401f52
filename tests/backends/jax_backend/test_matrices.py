"""Every op on matrices, computed by JAX alone, obeys the equations of its meaning."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.ir import Op, TensorType
from graphcore.ops import leaf, linalg
from tests.backends.jax_backend.single_ops import Found, compute
from tests.ops.test_meaning import ATTRS, EQUATIONS, FACTORS, operands

CHECKED = {
    *(linalg.cholesky, linalg.inv, linalg.solve, linalg.solve_triangular, linalg.lu_solve),
}


def results(op: Op, xs: list[np.ndarray], check: bool = True) -> Found:
    """What JAX makes of matrices, or of their factors."""
    if op in (*FACTORS, linalg.lu_solve):
        xs = [*results(linalg.lu_factor, xs[:1]), *xs[1:]]
    attrs = ATTRS.get(op, {}) | ({"check": check} if op in CHECKED else {})
    params = [leaf.param(f"x{i}", TensorType(x.dtype, x.shape)) for i, x in enumerate(xs)]
    (found,) = compute([(op(*params, **attrs), xs)])
    return found


def cases(op: Op) -> list[int]:
    """The numbers of rows for an op."""
    wide = "m" in str(linalg.SIGNATURES[op].operands)
    return [3, 5, 2] if wide and op is not linalg.polar else [5] if wide else [3]


QUICK = {linalg.solve_triangular, linalg.qr, linalg.svdvals, linalg.eigvals, linalg.cholesky}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    "op", [op if op in QUICK else pytest.param(op, marks=pytest.mark.slow) for op in EQUATIONS]
)
def test_equations_of_matrices_hold(op: Op, dtype: str) -> None:
    for m in cases(op):
        xs = operands(op, dtype, m)
        EQUATIONS[op](*xs, *results(op, xs))
