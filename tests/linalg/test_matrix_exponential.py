"""The exponential of matrices, beside SciPy's and beside one of many digits."""

from __future__ import annotations

import decimal

import numpy as np
import pytest
import scipy

import graphcore as gc

BOTH = pytest.mark.parametrize("native", [False, True])


def expm(a: np.ndarray, native: bool) -> np.ndarray:
    """The exponential of each matrix of a batch."""
    x = gc.tensor("x", {"batch": None, "row": None, "col": "row"}, dtype=a.dtype.name)
    return gc.compile([x], gc.linalg.expm(x), native=native)(a)


def exact(a: np.ndarray) -> np.ndarray:
    """The exponential in 80 digits, rounded."""
    with decimal.localcontext(prec=80):
        x = np.vectorize(decimal.Decimal, otypes=[object])(a) / 2**30
        term = total = np.vectorize(decimal.Decimal, otypes=[object])(np.eye(len(a)))
        for k in range(1, 40):
            term = term @ x / k
            total = total + term
        for _ in range(30):
            total = total @ total
        return total.astype(float)


def off(found: np.ndarray, wanted: np.ndarray) -> float:
    """How far a matrix is from another, in units of eps of its norm."""
    eps = np.finfo(found.dtype).eps
    return float(np.linalg.norm(found - wanted, 1) / np.linalg.norm(wanted, 1) / eps)


@BOTH
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_agrees_with_scipy(dtype: str, native: bool) -> None:
    """Of matrices of any size, in batches whose members are squared as often as each needs."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 17, 65):
        a = rng.standard_normal((3, n, n)) / max(n, 1) ** 0.5
        a = ((1 + 1j) * a if dtype == "complex128" else a).astype(dtype)
        a *= np.array([1, 0, 9], dtype)[:, None, None]
        found = expm(a, native)
        assert found.dtype == dtype
        for x, y in zip(a, found, strict=True):
            assert not n or off(y, scipy.linalg.expm(x.astype(complex))) < 200


HARD = {
    "nilpotent": np.triu(np.ones((6, 6)), 1),
    "far from normal": np.array([[1.0, 1e6, 0.0], [0.0, -1.0, 1e6], [0.0, 0.0, 0.5]]),
    "hidden far from normal": np.array([[49.0, 24.0], [-64.0, -31.0]]),  # Moler, Van Loan
    "decays": -30.0 * np.eye(4) + np.ones((4, 4)),
    "diagonal": np.diag([-700.0, -1.0, 0.0, 3.0, 600.0]),
    "rotates": 40.0 * np.array([[0.0, 1.0, 0.5], [-1.0, 0.0, 2.0], [-0.5, -2.0, 0.0]]),
    "small": 1e-9 * np.arange(16.0).reshape(4, 4),
    "lower": np.tril(np.arange(25.0).reshape(5, 5)) - 12.0 * np.eye(5),
    "zero": np.zeros((3, 3)),
}


@BOTH
@pytest.mark.parametrize("name", HARD)
def test_matrices_that_are_hard(name: str, native: bool) -> None:
    """As near the truth as SciPy's, but for what one rounding of the matrix moves it."""
    a = HARD[name]
    truth = exact(a)
    moved = off(exact(a * (1 + 2.0**-50)), truth) / 4
    assert (
        off(expm(a[None], native)[0], truth) <= 4 * off(scipy.linalg.expm(a), truth) + 8 * moved + 8
    )


@BOTH
def test_of_derivatives_of_any_size(native: bool) -> None:
    """The upper right block is linear in what stands there, however large."""
    rng = np.random.default_rng(1)
    a, e = rng.standard_normal((2, 4, 4))
    for size in (1e-12, 1.0, 1e6):
        block = np.block([[a, size * e], [np.zeros((4, 4)), a]])
        found = expm(block[None], native)[0]
        wanted = scipy.linalg.expm_frechet(a, e)
        assert off(found[:4, :4], wanted[0]) < 200
        assert off(found[:4, 4:] / size, wanted[1]) < 200


@BOTH
def test_what_is_not_finite_stays_so(native: bool) -> None:
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        a = np.full((1, 3, 3), 0.5)
        a[0, 1, 2] = bad
        assert not np.isfinite(expm(a, native)).all()
