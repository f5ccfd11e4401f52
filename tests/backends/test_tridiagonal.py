"""Many tridiagonal systems are eliminated at once, with the row exchanges of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import linalg

Array = np.ndarray[Any, Any]


def systems(n: int, *batch: int, dtype: Any = float, columns: int = 2) -> tuple[Array, ...]:
    """Three diagonals and right-hand sides; some pivots are 0, and some factors."""
    random = np.random.default_rng(n)
    low, on, up = (np.round(2 * random.normal(size=(*batch, n))) / 2 for _ in range(3))
    shift = random.normal(size=(*batch, n)) / 100  # else systems are singular
    parts = low, on + shift, up, random.normal(size=(*batch, n, columns))
    turn = 1 + 0.5j if np.dtype(dtype).kind == "c" else 1
    return tuple((part * turn).astype(dtype) for part in parts)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 32])
@pytest.mark.parametrize("cached", [64, linalg.SOLVED_AT_ONCE])
def test_many_are_what_each_is(
    n: int, dtype: str, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left over is rounding, in each of many systems as in each alone."""
    monkeypatch.setattr(linalg, "SOLVED_AT_ONCE", cached)
    parts = systems(n, 2, 5 * n + 1, dtype=dtype)
    many = linalg.solve_tridiagonal(*parts)
    assert many.dtype == parts[-1].dtype
    for at in np.ndindex(2, 5 * n + 1):
        low, on, up, b = (x[at] for x in parts)
        matrix = np.diag(on) + np.diag(low[1:], -1) + np.diag(up[:-1], 1)
        for x in (many[at], linalg.solve_tridiagonal(low, on, up, b)):
            sizes = np.abs(matrix) @ np.abs(x) + np.abs(b)
            assert (np.abs(matrix @ x - b) <= 30 * np.finfo(dtype).eps * sizes.max()).all()


def test_a_singular_one_of_many_is_named() -> None:
    low, on, up, b = systems(3, 4, 10)
    on[2, 7], low[2, 7], up[2, 7] = 0, 0, 0
    on[3, 1], low[3, 1], up[3, 1] = 1, 1, 1  # singular only once a row is eliminated
    low[3, 1, 1], up[3, 1, 0], up[3, 1, 1] = 1, 1, 0
    for first in (2, 3):
        with pytest.raises(linalg.MatrixError) as refused:
            linalg.solve_tridiagonal(low[first:], on[first:], up[first:], b[first:])
        assert refused.value.element == (0, 7 if first == 2 else 1)
    with pytest.raises(linalg.MatrixError):
        linalg.solve_tridiagonal(low[3, 1], on[3, 1], up[3, 1], b[3, 1])


def test_programs_of_many_systems() -> None:
    """Values and gradients, with the systems along another dim than the last."""
    dims = {"row": 4, "cell": None}
    low, on, up, b = (gc.tensor(name, dims) for name in ("low", "on", "up", "b"))
    x = gc.linalg.solve_tridiagonal(low, on, up, b, "row").transpose("row", "cell")
    f = gc.compile([low, on, up, b], [x, gc.grad((x * x).sum(), b)])
    parts = systems(4, 50, columns=1)
    given = [part.reshape(50, 4).T for part in parts]
    found, slope = f(*given)
    for cell in range(50):
        a = np.diag(given[1][:, cell])
        a += np.diag(given[0][1:, cell], -1) + np.diag(given[2][:-1, cell], 1)
        wanted = np.linalg.solve(a, given[3][:, cell])
        np.testing.assert_allclose(found[:, cell], wanted, rtol=1e-6)
        np.testing.assert_allclose(slope[:, cell], np.linalg.solve(a.T, 2 * wanted), rtol=1e-6)
