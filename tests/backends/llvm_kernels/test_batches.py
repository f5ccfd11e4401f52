"""Batches of small matrices, several of which are computed side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

from .native import needs_machine_code

pytestmark = needs_machine_code
BATCHES = (0, 1, 2, 3, 8, 9, 19)


def target(native: bool, count: int | None, n: int | None, columns: int, dtype: str) -> Any:
    """Solutions, inverses and determinants of a batch."""
    a = gc.tensor("a", {"batch": count, "row": n, "col": "row"}, dtype=dtype)
    b = gc.tensor(
        "b", {"batch": a.sizes["batch"], "row": a.sizes["row"], "k": columns}, dtype=dtype
    )
    solve, inv = gc.linalg.solve(a, b, check=False), gc.linalg.inv(a, check=False)
    outputs = [solve, inv, gc.linalg.det(a), *gc.linalg.slogdet(a)]
    return gc.compile([a, b], outputs, native=native)


def some(count: int, n: int, columns: int, dtype: str) -> list[np.ndarray]:
    """Matrices whose rows have to be exchanged, and right-hand sides."""
    rng = np.random.default_rng(count + 100 * n)
    a, b = rng.standard_normal((count, n, n)), rng.standard_normal((count, n, columns))
    a[:, 0, :1] = 0
    if dtype[0] == "c":
        a, b = a + 1j * rng.standard_normal(a.shape), b - 1j
    return [a.astype(dtype), b.astype(dtype)]


def compare(found: Any, wanted: Any, tol: float) -> None:
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    ("dtype", "tol"), [("float64", 1e-9), ("float32", 2e-2), ("complex128", 1e-9)]
)
@pytest.mark.parametrize("columns", [1, 3, 17])
@pytest.mark.parametrize("known", [True, False])
def test_values_are_those_of_numpy(dtype: str, tol: float, columns: int, known: bool) -> None:
    for n in (2, 3, 8, 9, 16, 17):
        sizes = (None, n) if known else (None, None)
        native, plain = (target(way, *sizes, columns, dtype) for way in (True, False))
        for count in BATCHES:
            given = some(count, n, columns, dtype)
            compare(native(*given), plain(*given), tol)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_others_change_nothing(n: int) -> None:
    """Each matrix of a batch has the results that it has alone, bit by bit."""
    several, one = target(True, 19, n, 3, "float64"), target(True, 1, n, 3, "float64")
    a, b = some(19, n, 3, "float64")
    a[4], a[11], b[12], a[13, 0, 0] = 0, np.nan, np.inf, np.inf
    a[:, 0, 0] += 1  # a row that is exchanged only sometimes
    found = several(a, b)
    for i in range(19):
        for x, y in zip(found, one(a[i : i + 1], b[i : i + 1]), strict=True):
            np.testing.assert_array_equal(x[i], y[0])


@pytest.mark.parametrize("n", [3, 16])
def test_singular_matrices_are_nan_or_refused(n: int) -> None:
    a, b = some(21, n, 2, "float64")
    a[:, 0, 0] = 4
    a[13, :, 1] = 0
    solve, inv, det, sign, log = target(True, 21, n, 2, "float64")(a, b)
    for x in (solve, inv):
        assert np.isnan(x[13]).all()
        assert np.isfinite(np.delete(x, 13, 0)).all()
    assert (det[13], sign[13], log[13]) == (0, 0, -np.inf)
    given = gc.tensor("a", {"batch": None, "row": n, "col": n})
    for native in (True, False):
        with pytest.raises(gc.GraphError, match=r"singular[\s\S]*13"):
            gc.compile([given], gc.linalg.inv(given), native=native)(a)


@pytest.mark.parametrize("shape", [(3, 5), (5, 2), (2, 3, 9)])
def test_batches_of_several_axes_and_operands_in_other_orders(shape: tuple[int, ...]) -> None:
    names = [f"b{i}" for i in range(len(shape))]
    rng = np.random.default_rng(1)
    x = rng.standard_normal((4, *shape, 4))
    a = gc.tensor("a", {"row": 4, **dict(zip(names, shape, strict=True)), "col": 4})
    sums = gc.exp(a.transpose(*names, "row", "col"))
    outputs = [
        gc.linalg.inv(sums),
        gc.linalg.det(sums),
        gc.linalg.solve(sums, sums.isel(col=0) * 2),
    ]
    native, plain = (gc.compile([a], outputs, native=native)(x) for native in (True, False))
    compare(native, plain, 1e-9)


GRADIENTS: dict[str, Callable[..., Any]] = {
    "solve": lambda a, b: (gc.linalg.solve(a, b, check=False) ** 2).sum(),
    "inv": lambda a, b: (gc.linalg.inv(a, check=False) ** 2).sum() + b.sum(),
    "slogdet": lambda a, b: (gc.linalg.slogdet(a)[1] * b.sum("row").sum("k")).sum(),
    "both": lambda a, b: (gc.linalg.solve(a, b) * gc.linalg.det(a)).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_share_the_factors(name: str, dtype: str) -> None:
    for n in (2, 7, 16, 18):
        a = gc.tensor("a", {"batch": None, "row": n, "col": n}, dtype=dtype)
        b = gc.tensor("b", {"batch": a.sizes["batch"], "row": n, "k": 2}, dtype=dtype)
        value = GRADIENTS[name](a, b)
        outputs = [value, *gc.grad(value, [a, b])]
        native, plain = (gc.compile([a, b], outputs, native=native) for native in (True, False))
        for count in BATCHES:
            x, y = some(count, n, 2, dtype)
            x = (x / np.sqrt(n) + 3 * np.eye(n)[::-1]).astype(dtype)  # rows are exchanged
            compare(native(x, y), plain(x, y), 1e-8 if dtype == "float64" else 2e-2)


def test_singular_factors_of_a_gradient() -> None:
    a = gc.tensor("a", {"batch": None, "row": 3, "col": 3})
    b = gc.tensor("b", {"batch": a.sizes["batch"], "row": 3})
    value = GRADIENTS["solve"](a, b).sum()
    native, plain = (
        gc.compile([a, b], gc.grad(value, [a, b]), native=way) for way in (True, False)
    )
    x, y = some(12, 3, 1, "float64")
    x[5, 1] = 0
    for found, wanted in zip(native(x, y[..., 0]), plain(x, y[..., 0]), strict=True):
        assert np.isnan(found[5]).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
