"""Triangles of many rows, which are solved by products of blocks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import blocked, entrance, panels, sharing, threads
from graphcore.ir import Node
from graphcore.ir.errors import GraphError
from graphcore.ops import linalg
from graphcore.ops import tensor as t
from graphcore.ops.meaning import MEANING

from .native import Both, M, N, given, needs_machine_code

pytestmark = needs_machine_code

SHAPES = [(63, 5), (64, 97), (65, 1), (66, 33), (128, 0), (130, 24), (257, 50)]
"""Numbers of rows and columns: just below, at and above those where the algorithm changes."""
WAYS = [*product((True, False), repeat=3)]


def solved(a: Node, b: Node, lower: bool, transposed: bool, unit: bool) -> Node:
    a = t.transpose(a, perm=(0, 2, 1)) if transposed else a
    return linalg.solve_triangular(a, b, lower=lower, unit=unit, check=False)


def triangles(rng: np.random.Generator, n: int, batch: int = 2) -> np.ndarray:
    """Matrices whose triangles have solutions of the size of their right-hand sides."""
    return rng.normal(size=(batch, n, n)) / (n + 1) + np.eye(n) * rng.uniform(1, 2, (batch, 1, n))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
def test_triangles(dtype: str) -> None:
    a, b = given("a", 2, N, N, dtype=dtype), given("b", 2, N, M, dtype=dtype)
    both = Both([solved(a, b, *ways) for ways in WAYS])
    assert both.text.count("in blocks") == len(WAYS)
    rng, eps = np.random.default_rng(0), np.finfo(dtype).eps
    for n, m in SHAPES:
        ts, right = triangles(rng, n).astype(dtype), rng.normal(size=(2, n, m)).astype(dtype)
        if ts.dtype.kind == "c":
            ts, right = ts + 1j * triangles(rng, n).astype(eps.dtype), right * (1 - 2j)
            ts, right = ts.astype(dtype), right.astype(dtype)
        found = both.agree([ts, right], (n, m), 1e3)
        for x, (lower, transposed, unit) in zip(found, WAYS, strict=True):
            of = np.swapaxes(ts, 1, 2) if transposed else ts
            used = (np.tril if lower else np.triu)(of).astype(np.result_type(dtype, float))
            if unit:
                used[:, range(n), range(n)] = 1
            bound = n * eps * (abs(used) @ abs(x)) + eps * abs(right)
            assert (abs(used @ x - right) <= bound).all(), (n, m, lower, transposed, unit)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_columns_that_are_not_finite_stay_alone(bad: float) -> None:
    a, b = given("a", N, N), given("b", N, M)
    both = Both([linalg.solve_triangular(a, b, lower=True, unit=False, check=False)])
    rng, n, m = np.random.default_rng(1), 150, 40
    (ts,), right = triangles(rng, n, 1), rng.normal(size=(n, m))
    (usual,) = both.native([ts, right], (n, m))
    right[70, 5] = bad
    (found,) = both.native([ts, right], (n, m))
    np.testing.assert_array_equal(np.delete(found, 5, 1), np.delete(usual, 5, 1))
    np.testing.assert_array_equal(found[:70, 5], usual[:70, 5])
    assert not np.isfinite(found[70:, 5]).any()


def test_a_matrix_of_a_batch_without_an_inverse() -> None:
    a = gc.tensor("a", {"i": None, "p": None, "q": None})
    b = gc.tensor("b", {"i": None, "p": None, "k": None})
    f = gc.compile([a, b], gc.linalg.solve_triangular(a, b, ("p", "q"), lower=True), native=True)
    rng = np.random.default_rng(2)
    ts, right = triangles(rng, 100, 5), rng.normal(size=(5, 100, 7))
    every_second = f(ts[::2], right[::2, :, ::2])
    np.testing.assert_array_equal(every_second, f(ts, right)[::2, ::2])
    ts[3, 90, 90] = 0
    with pytest.raises(GraphError, match="singular"):
        f(ts, right)


@pytest.mark.parametrize("batch", [1, 3])
def test_threads_share_columns_and_matrices(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ((sharing, "LEAST"), (sharing, "FEW"), (entrance, "HUGE_NEST")):
        monkeypatch.setattr(name, value, 1)
    monkeypatch.setattr(blocked, "COLUMNS", 5)
    a = gc.tensor("a", {"i": None, "p": None, "q": None})
    b = gc.tensor("b", {"i": None, "p": None, "k": None})
    c = gc.tensor("c", {"i": None, "q": None, "k": None})
    below = gc.linalg.solve_triangular(a, b, ("p", "q"), lower=True)
    above = gc.linalg.solve_triangular(a, c, ("q", "p"), lower=False)
    f = gc.compile([a, b, c], [below, above], native=True)
    lines = [line for line in f.source.splitlines() if "in blocks" in line]
    assert ["shared by threads where long" in line for line in lines] == [True] * 2
    assert "share its loops" in str(f.why(below))
    rng = np.random.default_rng(3)
    for n, columns in ((20, 33), (65, 1), (90, 33), (200, 12)):
        sides = [rng.normal(size=(batch, n, columns)) for _ in range(2)]
        arrays, before, found = [triangles(rng, n, batch), *sides], threads.shared(), []
        for many in (1, 2, 3, 7):
            with gc.threads(many):
                found.append(f(*arrays))
        for results in found[1:]:
            for x, y in zip(results, found[0], strict=True):
                np.testing.assert_array_equal(x, y)
        assert threads.shared() > before or batch * columns == 1


# ---- factors


def definite(rng: np.random.Generator, n: int, batch: int = 2) -> np.ndarray:
    """Matrices that are symmetric and positive definite, with nan above the diagonal."""
    a = rng.normal(size=(batch, n, n + 5))
    a = a @ np.swapaxes(a, 1, 2) / (n + 5) + 0.3 * np.eye(n)
    return np.where(np.tri(n, dtype=bool), a, np.nan)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factors(dtype: str) -> None:
    both = Both([linalg.cholesky(given("a", 2, N, N, dtype=dtype), check=True)], ("n",))
    assert "by potrf or in blocks" in both.text
    rng, eps = np.random.default_rng(4), np.finfo(dtype).eps
    for n in (96, 97, 127, 128, 129, 225, 257, 390):
        a = definite(rng, n).astype(dtype)
        (lower,) = both.agree([a], (n,), 1e3)
        assert not np.triu(lower, 1).any()
        exact, upper = lower.astype(float), np.swapaxes(lower, 1, 2)
        bound = n * eps * (abs(lower) @ abs(upper))
        assert (abs(np.tril(exact @ upper - a)) <= np.tril(bound)).all()


@pytest.mark.parametrize("place", [0, 40, 127, 128, 170, 199])
def test_matrices_that_are_not_definite(place: int) -> None:
    checked = Both([linalg.cholesky(given("a", 3, N, N), check=True)], ("n",))
    without = Both([linalg.cholesky(given("a", 3, N, N), check=False)], ("n",))
    a = definite(np.random.default_rng(5), 200, 3)
    first, _, last = without.native([a], (200,))[0]
    a[1, place, place] = -1.0
    found = without.native([a], (200,))[0]
    np.testing.assert_array_equal(found[[0, 2]], [first, last])
    assert np.isnan(found[1]).all()
    a[:, np.triu(np.ones((200, 200), bool), 1)] = 0
    messages = []
    for call in (checked.numpy, checked.native):
        with pytest.raises(GraphError) as error:
            call([a], (200,))
        messages.append(str(error.value).partition("\n  called at")[0])
    assert messages[0] == messages[1]
    a[1, 150, 100] = np.nan
    assert np.isnan(checked.native([a], (200,))[0][1]).any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cotangents_of_factors(dtype: str) -> None:
    sides = [given(name, 2, N, N, dtype=dtype) for name in "ab"]
    both = Both([linalg.cholesky_cotangent(*sides)], ("n",))
    assert "in blocks" in both.text
    rng = np.random.default_rng(8)
    for n in (0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 65, 127, 128, 129, 225, 257, 390):
        a = np.nan_to_num(definite(rng, n))
        lower = np.linalg.cholesky(a) + np.triu(np.full((n, n), np.nan), 1)
        g = np.where(np.tri(n, dtype=bool), rng.normal(size=(2, n, n)), np.nan)
        (found,) = both.agree([x.astype(dtype) for x in (lower, g)], (n,), 1e3)
        assert not np.triu(found, 1).any()


def test_cotangents_of_a_factor_that_is_not_finite() -> None:
    both = Both([linalg.cholesky_cotangent(given("a", 2, N, N), given("b", 2, N, N))], ("n",))
    rng = np.random.default_rng(9)
    for n in (5, 40, 200):
        lower, g = np.linalg.cholesky(np.nan_to_num(definite(rng, n))), rng.normal(size=(2, n, n))
        (usual,) = both.native([lower, g], (n,))
        lower[0] = np.nan
        (found,) = both.native([lower, g], (n,))
        np.testing.assert_array_equal(found[1], usual[1])
        assert np.isnan(found[0][np.tri(n, dtype=bool)]).all()


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_cotangents_of_complex_factors_are_taken_apart(target: str) -> None:
    a = gc.tensor("a", {"p": None, "q": None}, dtype="complex128")
    total = gc.abs(gc.linalg.cholesky(a, ("p", "q"))).sum()
    f = gc.compile([a], gc.grad(total, a), target=target)
    assert "cholesky_cotangent" not in f.source
    x = np.random.default_rng(11).normal(size=(2, 40, 50))
    x = (x[0] + 1j * x[1]) @ (x[0] - 1j * x[1]).T
    lower = np.linalg.cholesky(x)
    units = lower / np.where(lower == 0, 1, np.abs(lower))
    wanted = MEANING[linalg.cholesky_cotangent](lower, units).conj()
    np.testing.assert_allclose(f(x), wanted, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 3])
def test_threads_share_cotangents(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ((sharing, "LEAST"), (sharing, "FEW"), (entrance, "HUGE_NEST")):
        monkeypatch.setattr(name, value, 1)
    monkeypatch.setattr(panels, "BAND", 24)
    monkeypatch.setattr(blocked, "COLUMNS", 24)
    dims = ("p", "q") if batch == 1 else ("i", "p", "q")
    a, w = [gc.tensor(name, dict.fromkeys(dims)) for name in "aw"]
    f = gc.compile([a, w], gc.grad((gc.linalg.cholesky(a, ("p", "q")) * w).sum(), a), native=True)
    assert "cholesky_cotangent" in f.source
    rng = np.random.default_rng(10)
    for n in (9, 100, 300):
        matrices = [np.nan_to_num(definite(rng, n, batch)), rng.normal(size=(batch, n, n))]
        arrays = [x[0] if batch == 1 else x for x in matrices]
        before, found = threads.shared(), []
        for many in (1, 2, 3, 7):
            with gc.threads(many):
                found.append(f(*arrays))
        assert threads.shared() > before
        for share in found[1:]:
            np.testing.assert_array_equal(share, found[0])


def test_threads_share_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ((sharing, "LEAST"), (sharing, "FEW"), (entrance, "HUGE_NEST")):
        monkeypatch.setattr(name, value, 1)
    rng = np.random.default_rng(6)
    one, several = ("p", "q"), ("i", "p", "q")
    for dims, matrices in ((one, definite(rng, 450, 1)[0]), (several, definite(rng, 300, 3))):
        a = gc.tensor("a", dict.fromkeys(dims))
        f = gc.compile([a], gc.linalg.cholesky(a, ("p", "q")), native=True)
        assert "by potrf or in blocks" in f.source
        assert "share its loops" in str(f.why(f.stages["named"].outputs[0]))
        before, found = threads.shared(), []
        for many in (1, 2, 3, 7):
            with gc.threads(many):
                found.append(f(matrices))
        assert threads.shared() > before
        for lower in found[1:]:
            np.testing.assert_array_equal(lower, found[0])


def test_routines_are_made_for_the_sizes_of_a_call() -> None:
    """Those of a factor come later than those of a triangle; sizes that are found have all."""
    a, v = gc.tensor("a", {"p": None, "q": None}), gc.tensor("v", {"r": None})
    b = gc.tensor("b", {"q": None, "k": None})
    lower = gc.linalg.cholesky(a, ("p", "q"))
    solution = gc.linalg.solve_triangular(lower, b.rename(q="p"), ("p", "q"), lower=True)
    some = v[v > 0]
    (found,) = some.dims
    other = some.rename({found: "s"})
    definite_one = some * other + gc.eye({found: some.sizes[found], "s": some.sizes[found]})
    f = gc.compile([a, b], [lower, solution], native=True)
    g = gc.compile([v], gc.linalg.cholesky(definite_one, (found, "s")))
    rng = np.random.default_rng(7)
    for n in (50, 70, 100, 70):
        matrix, right = np.nan_to_num(definite(rng, n, 1)[0]), rng.normal(size=(n, 3))
        l_found, x = f(matrix, right)
        wanted = np.linalg.cholesky(matrix)
        np.testing.assert_allclose(l_found, wanted, atol=1e-12)
        np.testing.assert_allclose(l_found @ x.T, right, atol=1e-12)
        values = np.abs(rng.normal(size=n)) / n
        wanted = np.linalg.cholesky(np.outer(values, values) + np.eye(n))
        np.testing.assert_allclose(g(np.concatenate([values, -values])), wanted, atol=1e-12)
