"""LU factors of many rows, their solutions and determinants, whose panels threads share."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import (
    blocked,
    conversions,
    dense,
    elementary,
    entrance,
    machine,
    panels,
    removal,
    sharing,
    threads,
)
from graphcore.ir.errors import GraphError
from graphcore.ops import linalg
from graphcore.ops.leaf import values

from .native import Both, M, N, given, needs_machine_code

pytestmark = needs_machine_code

DTYPES = ["float64", "float32", "complex128", "complex64"]
SIZES = (96, 97, 127, 128, 129, 225, 257, 390)
"""Just below, at and above those where the algorithm changes."""
DIMS = {"i": None, "p": None, "q": None}


def drawn(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    """Normal numbers."""
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def product_of(packed: np.ndarray, exchanges: np.ndarray) -> np.ndarray:
    """The matrix that has these factors."""
    lower, upper = np.tril(packed), np.triu(packed, 1) + np.eye(len(packed))
    a = lower.astype(np.result_type(packed, float)) @ upper
    for k in reversed(range(len(packed))):
        a[:, [k, exchanges[k]]] = a[:, [exchanges[k], k]]
    return a


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors(dtype: str) -> None:
    both = Both([*values(linalg.lu_factor(given("a", 2, N, N, dtype=dtype)))], ("n",))
    assert "by getrf or in blocks" in both.text
    rng, eps = np.random.default_rng(0), np.finfo(dtype).eps
    for n in SIZES:
        a = drawn(rng, dtype, 2, n, n)
        packed, exchanges = both.native([a], (n,))
        for x, factors, order in zip(a, packed, exchanges, strict=True):
            upper = abs(np.triu(factors, 1)) + np.eye(n)
            assert upper.max() <= (1.0001 if dtype[0] == "f" else 1.4143)
            assert ((order >= range(n)) & (order < n)).all()
            bound = n * eps * (abs(np.tril(factors)) @ upper)
            for k in reversed(range(n)):
                bound[:, [k, order[k]]] = bound[:, [order[k], k]]
            assert (abs(product_of(factors, order) - x) <= bound).all()


def test_the_first_of_equal_pivots_is_taken() -> None:
    """As LAPACK does, whose factors those of few rows are."""
    both = Both([*values(linalg.lu_factor(given("a", N, N)))], ("n",))
    rng = np.random.default_rng(5)
    for n in (97, 100, 131):
        _, exchanges = both.agree([np.sign(rng.normal(size=(n, n)))], (n,), 1e6)
        assert exchanges[0] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions(dtype: str) -> None:
    """Solutions, also of transposed matrices, inverses and determinants, beside NumPy's."""
    a, b = given("a", 2, N, N, dtype=dtype), given("b", 2, N, M, dtype=dtype)
    packed, exchanges = values(linalg.lu_factor(a))
    results = [
        linalg.solve(a, b, check=True),
        linalg.lu_solve(packed, exchanges, b, transposed=True, check=True),
        linalg.inv(a, check=True),
        *values(linalg.slogdet(a)),
    ]
    both = Both(results)
    rng, eps = np.random.default_rng(1), np.finfo(dtype).eps
    for n, m in ((97, 1), (128, 0), (130, 40), (257, 5)):
        arrays = [drawn(rng, dtype, 2, n, n) + np.sqrt(n).astype(dtype) * np.eye(n, dtype=dtype)]
        arrays.append(drawn(rng, dtype, 2, n, m))
        solved, transposed, inverse, sign, log = both.native(arrays, (n, m))
        matrix, right = [x.astype(np.result_type(dtype, float)) for x in arrays]
        size = 40 * n * eps
        np.testing.assert_allclose(matrix @ solved, right, atol=size)
        np.testing.assert_allclose(np.swapaxes(matrix, 1, 2) @ transposed, right, atol=size)
        np.testing.assert_allclose(matrix @ inverse, [np.eye(n)] * 2, atol=size)
        signs, logs = np.linalg.slogdet(matrix)
        np.testing.assert_allclose(sign, signs, atol=size)
        np.testing.assert_allclose(log, logs, rtol=size)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("place", [0, 7, 60, 127, 128, 199])
def test_matrices_without_an_inverse(dtype: str, place: int) -> None:
    a = gc.tensor("a", DIMS, dtype=dtype)
    b = gc.tensor("b", {"i": None, "p": None, "k": None}, dtype=dtype)
    solved = gc.linalg.solve(a, b, dims=("p", "q"))
    f = gc.compile([a, b], solved, native=True)
    g = gc.compile([a], gc.linalg.det(a, dims=("p", "q")), native=True)
    rng = np.random.default_rng(2)
    x, right = drawn(rng, dtype, 3, 200, 200), drawn(rng, dtype, 3, 200, 4)
    usual = f(x, right)
    x[1, place] = 0
    assert g(x / 10)[1] == 0
    with pytest.raises(GraphError, match="singular"):
        f(x, right)
    x[1, place] = np.nan
    found = f(x, right)
    np.testing.assert_array_equal(found[[0, 2]], usual[[0, 2]])
    assert np.isnan(found[1]).any()


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("batch", [0, 3])
def test_threads_share_panels(batch: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ((sharing, "LEAST"), (sharing, "FEW"), (entrance, "HUGE_NEST")):
        monkeypatch.setattr(name, value, 1)
    monkeypatch.setattr(panels, "BAND", 24)
    monkeypatch.setattr(blocked, "COLUMNS", 24)
    dims = {k: v for k, v in DIMS.items() if batch or k != "i"}
    a = gc.tensor("a", dims, dtype=dtype)
    b = gc.tensor("b", {**dict.fromkeys([*dims][:-1]), "k": None}, dtype=dtype)
    f = gc.compile([a, b], gc.linalg.solve(a, b, dims=("p", "q")), native=True)
    assert "by getrf or in blocks" in f.source
    rng = np.random.default_rng(3)
    for n, columns in ((9, 50), (100, 50), (300, 70)):
        arrays = drawn(rng, dtype, 3, n, n), drawn(rng, dtype, 3, n, columns)
        arrays = [x if batch else x[0] for x in arrays]
        before, found = threads.shared(), []
        for many in (1, 2, 3, 7):
            with gc.threads(many):
                found.append(f(*arrays))
        assert threads.shared() > before
        for each in found[1:]:
            np.testing.assert_array_equal(each, found[0])


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_products_in_blocks(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few numbers of each axis are written as floats at a time, and however they lie."""
    for name, size in (("INNER", 5), ("COLUMNS", 7), ("ROWS", 11)):
        monkeypatch.setattr(removal, name, size)
    kind = conversions.KINDS[dtype]
    made = elementary.compiled(removal.Removal(kind).text(), "remove")
    types = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 9 + [ctypes.c_bool]
    remove = ctypes.CFUNCTYPE(None, *types)(made["remove"])
    scratch = np.zeros(dense.scratch_for(machine.levels()[0]), dtype)
    rng = np.random.default_rng(4)
    for rows, inner, columns in ((1, 1, 1), (11, 5, 7), (40, 12, 15), (25, 0, 9), (3, 6, 0)):
        for turned in product((False, True), repeat=2):
            x, y = drawn(rng, dtype, rows, inner), drawn(rng, dtype, inner, columns)
            z = drawn(rng, dtype, rows, columns + 2)
            before, sides = z.copy(), [x, y]
            for n, side in enumerate(sides):
                sides[n] = np.asfortranarray(side) if turned[n] else side
            strides = [stride // x.itemsize for side in sides for stride in side.strides]
            pointers = [a.ctypes.data for a in (*sides, z, z, scratch)]
            remove(*pointers, rows, inner, columns, *strides, columns + 2, inner, False)
            before[:, :columns] -= x @ y
            np.testing.assert_allclose(z, before, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["solve", "det", "inv"])
def test_threads_share_matrices_of_some_hundred_rows(name: str) -> None:
    a, b = gc.tensor("a", {"p": None, "q": None}), gc.tensor("b", {"p": None})
    more = (b,) if name == "solve" else ()
    f = gc.compile([a, *more], getattr(gc.linalg, name)(a, *more, dims=("p", "q")), native=True)
    rng = np.random.default_rng(6)
    arrays = [rng.normal(size=(400, 400)), rng.normal(size=400)][: 1 + len(more)]
    before = threads.shared()
    with gc.threads(2):
        f(*arrays)
    assert threads.shared() > before
