"""Every op on matrices, computed by JAX alone: its equations, empty ones, and those that fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphcore.backends.numpy_backend import linalg as routines
from graphcore.ir import Op, TensorType, Trait
from graphcore.ops import leaf, linalg
from graphcore.ops.meaning import MEANING
from tests.backends.jax_backend.single_ops import Found, compute
from tests.ops.test_meaning import ATTRS, EQUATIONS, FACTORS, operands
from tests.shares import shared

slow = pytest.mark.slow
FACTORED = (*FACTORS, linalg.lu_solve)
CHECKED = {
    *(linalg.cholesky, linalg.inv, linalg.solve, linalg.solve_triangular, linalg.lu_solve),
}
QUICK = {linalg.solve_triangular, linalg.svdvals}
EVERY = [op if op in QUICK else pytest.param(op, marks=slow) for op in EQUATIONS]


def attrs_of(op: Op, check: bool) -> dict[str, Any]:
    return ATTRS.get(op, {}) | ({"check": check} if op in CHECKED else {})


def several(op: Op, *given: list[np.ndarray], check: bool = True) -> list[Found]:
    """What JAX makes of matrices, or of their factors, for several of their shapes at once."""
    given = tuple(
        [[*MEANING[linalg.lu_factor](xs[0]), *xs[1:]] if op in FACTORED else xs for xs in given]
    )
    cases = []
    for xs in given:
        params = [leaf.param(f"x{i}", TensorType(x.dtype, x.shape)) for i, x in enumerate(xs)]
        cases.append((op(*params, **attrs_of(op, check)), xs))
    return compute(cases)


def rows(op: Op) -> list[int]:
    """The numbers of rows for an op."""
    wide = "m" in str(linalg.SIGNATURES[op].operands)
    return [3, 5, 2] if wide and op is not linalg.polar else [5] if wide else [3]


@pytest.mark.parametrize("op", EVERY, ids=str)
def test_equations_of_matrices_hold(op: Op) -> None:
    given = [operands(op, dtype, m) for dtype in ("float64", "complex128") for m in rows(op)]
    for xs, found in zip(given, several(op, *given), strict=True):
        EQUATIONS[op](*xs, *found)


UNIQUE = EQUATIONS.keys() - {linalg.eigh, linalg.eig, linalg.svd, linalg.svd_full, linalg.eigvals}
"""Ops whose results are not turned by rounding."""


@slow
@pytest.mark.parametrize("op", sorted(UNIQUE, key=str), ids=str)
def test_results_are_those_that_are_meant(op: Op) -> None:
    """Single matrices, and batches of two axes, in single precision."""
    given = []
    for dtype in ("float32", "complex64"):
        xs = [x.astype(dtype) for x in operands(op, dtype, rows(op)[-1])]
        given += [[x[0] for x in xs], [x.reshape(2, 2, *x.shape[1:]) for x in xs]]
    limit = 3e-3
    for xs, found in zip(given, several(op, *given), strict=True):
        if op in FACTORED:
            xs = [*MEANING[linalg.lu_factor](xs[0]), *xs[1:]]
        wanted = MEANING[op](*xs, **ATTRS.get(op, {}))
        for y, of in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert y.dtype == of.dtype
            np.testing.assert_allclose(y, of, limit, limit * np.abs(of).max(initial=1))


@slow
@pytest.mark.parametrize("op", EQUATIONS, ids=str)
def test_matrices_may_be_empty(op: Op) -> None:
    xs = operands(op, "float64", 5)
    empty = [{4: 0}, {3: 0}, {5: 0}, {2: 0}, {4: 0, 3: 0}]
    given = [[np.zeros([sizes.get(n, n) for n in x.shape]) for x in xs] for sizes in empty]
    given = [some for some in given if not all(x.size for x in some)]
    for some, found in zip(given, several(op, *given), strict=True):
        if op in FACTORED:
            some = [*MEANING[linalg.lu_factor](some[0]), *some[1:]]
        wanted = MEANING[op](*some, **ATTRS.get(op, {}))
        for y, of in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_array_equal(y, of)


BAD = [  # the first is a usual test
    *((op, dtype, 0) for op in sorted(CHECKED, key=str) for dtype in ("float64", "complex128")),
    (linalg.solve_tridiagonal, "float64", 0),
    *((op, "float64", np.nan) for op in EQUATIONS),
    *((op, "float64", -1) for op in (linalg.cholesky, linalg.logm, linalg.sqrtm)),
    (linalg.logm, "float64", 0),
]


@pytest.mark.parametrize(
    ("op", "dtype", "bad"),
    [BAD[0], *shared(BAD[1:], 3)],
    ids=str,
)
def test_a_matrix_without_a_result_has_nan_alone_or_fails(op: Op, dtype: str, bad: float) -> None:
    """Beside one with nan there is one with an infinite element."""
    xs = operands(op, dtype, 5)
    for x in xs[: 3 if op is linalg.solve_tridiagonal else 1]:
        x[1] *= bad
        x[2, -1] = x[2, -1] if np.isfinite(bad) else np.inf
    lost = [1] if np.isfinite(bad) else [1, 2]
    alone = [np.delete(x, lost, 0) for x in xs]
    found, others = several(op, xs, alone, check=op not in CHECKED)
    for y, of in zip(found, others, strict=True):
        np.testing.assert_allclose(np.delete(y, lost, 0), of, 1e-12, 1e-12)
    for at in lost:
        assert not all(np.isfinite(y[at]).all() for y in found)
    if op in CHECKED:
        assert not found.failures
        (found,) = several(op, xs)
    flags = [(reason, *np.argwhere(some)[:, 0]) for reason, some in found.failures.items()]
    assert [flag for flag in flags if len(flag) > 1] == failures_of_numpy(op, xs)


def failures_of_numpy(op: Op, xs: list[np.ndarray]) -> list[Any]:
    """The reason and the place of the matrix that NumPy's routine refuses, if it refuses one."""
    if Trait.MAY_RAISE not in op.traits:
        return []
    if op in FACTORED:
        xs = [*MEANING[linalg.lu_factor](xs[0]), *xs[1:]]
    try:
        with np.errstate(all="ignore"):
            getattr(routines, op.name)(*xs, **attrs_of(op, True))
    except routines.MatrixError as error:
        return [(error.reason, *error.element)]
    return []


@slow
@pytest.mark.parametrize("upper", [1e3, np.nan, np.inf])
def test_the_lower_triangle_alone_is_read(upper: float) -> None:
    a = operands(linalg.cholesky, "float64", 3)[0]
    changed = np.where(np.triu(np.ones((3, 3)), 1) > 0, upper, a)
    ops = (linalg.cholesky, linalg.eigvalsh)
    for op in ops:
        found, wanted = several(op, [changed], [a])
        np.testing.assert_array_equal(found[0], wanted[0])
        if not np.isfinite(upper) and op is ops[0]:
            continue
        assert not any(flags.any() for flags in found.failures.values())


@slow
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_one_triangle_is_read_and_its_diagonal_may_be_ones(dtype: str) -> None:
    a, b = operands(linalg.solve, dtype, 3)
    params = [leaf.param(f"x{i}", TensorType(x.dtype, x.shape)) for i, x in enumerate((a, b))]
    cases = []
    for lower in (False, True):
        for unit in (False, True):
            attrs = {"lower": lower, "unit": unit, "check": True}
            other = np.triu(np.ones((3, 3)), 1) if lower else np.tril(np.ones((3, 3)), -1)
            hidden = np.where(other + unit * np.eye(3) > 0, np.nan, a).astype(dtype)
            cases.append((linalg.solve_triangular(*params, **attrs), [hidden, b]))
    for (node, xs), found in zip(cases, compute(cases), strict=True):
        wanted = MEANING[linalg.solve_triangular](*xs, **node.attrs)
        np.testing.assert_allclose(found[0], wanted, 1e-12)
        assert not any(flags.any() for flags in found.failures.values())


@slow
def test_factors_solve_the_transposed_system() -> None:
    for dtype in ("float64", "complex128"):
        a, b = operands(linalg.solve, dtype, 3)
        xs = [*MEANING[linalg.lu_factor](a), b]
        params = [leaf.param(f"x{i}", TensorType(x.dtype, x.shape)) for i, x in enumerate(xs)]
        (found,) = compute([(linalg.lu_solve(*params, transposed=True, check=True), xs)])
        np.testing.assert_allclose(a.swapaxes(-1, -2) @ found[0], b, 1e-9)


@slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_exponentials_of_all_sizes(dtype: str) -> None:
    """Those of other sizes in the batch leave a matrix alone."""
    random = np.random.default_rng(0)
    sizes = np.array([0, 1e-8, 1e-3, 0.1, 1, 5, 20, 80])[:, None, None]
    a = (random.normal(size=(8, 4, 4)) / 3 * sizes).astype(dtype)
    (found,) = several(linalg.expm, [a])
    wanted = MEANING[linalg.expm](a.astype("float64"))
    size = np.abs(wanted).max((1, 2), keepdims=True)
    assert (np.abs(found[0] - wanted) / size).max() < (1e-11 if dtype == "float64" else 1e-3)
    assert (found[0][0] == np.eye(4)).all()
