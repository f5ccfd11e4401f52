"""What a program computes of constants alone is computed once."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import constants
from graphcore.backends.numpy_backend.function import Function
from graphcore.ir.graph import Graph

X = gc.tensor("x", {"t": None})
K = gc.constant(np.arange(5.0), "obs")
A = gc.constant(np.eye(3) * 4 + 0.1, ("i", "j"))
DIMS = ("i", "j")

MADE = {
    "special function": (gc.special.gammaln(K + 1), "gammaln"),
    "sum": ((K**2).sum(), "square"),
    "product": (gc.dot(K, K, dim="obs"), "vecdot"),
    "running sum": (K.cumsum("obs"), "cumsum"),
    "cholesky": (gc.linalg.cholesky(A, dims=DIMS), "cholesky"),
    "eigenvalues": (gc.linalg.eigh(A, dims=DIMS).values, "eigh"),
    "solve": (gc.linalg.solve(A, gc.constant(np.ones(3), "i"), dims=DIMS), "solve"),
    "in a loop": (gc.exp(K), "exp"),
}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_work_on_constants_is_done_once(name: str, native: bool) -> None:
    made, op = MADE[name]
    y = X.sum() * made
    if name == "in a loop":
        y = gc.scan(lambda s, e: (s + e * made, None), gc.zeros_like(K), X, dim="t")[0]
    f = gc.compile([X], [y, gc.grad(y.sum(), X)], native=native)
    assert op not in f.source
    wanted = np.asarray(gc.compile([], made)())
    found = f([1.0, 2.0])
    np.testing.assert_allclose(found[0], 3 * wanted, rtol=1e-13)
    np.testing.assert_allclose(found[1], [wanted.sum()] * 2, rtol=1e-13)


@pytest.mark.parametrize("native", [False, True])
def test_much_work_is_done_at_the_first_call(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(constants, "FLOPS_AT_ONCE", 0)
    monkeypatch.setattr(constants, "Function", lambda *a: calls.append(a) or Function(*a))
    asked = {name: made for name, (made, _) in MADE.items()}
    f = gc.compile([X], {name: X.sum() * made for name, made in asked.items()}, native=native)
    assert not any(computes(x, "gammaln") for x in calls)
    wanted = gc.compile([], asked)()
    first, later = f([1.0, 2.0]), f([1.0, 2.0])
    assert sum(computes(x, "gammaln") for x in calls) == 1
    for name in MADE:
        np.testing.assert_allclose(first[name], 3 * np.asarray(wanted[name]), rtol=1e-13)
        np.testing.assert_array_equal(first[name], later[name])


def computes(given: tuple[Graph, ...], op: str) -> bool:
    """Whether a function is made of a graph in which an op of this name stands."""
    return op in {node.op.name for node in given[0].nodes()}


def test_results_are_kept_as_far_as_memory_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    long = gc.constant(np.arange(5000.0), "a")
    y = X.sum() * gc.sin(gc.cos(long)) + gc.exp(gc.constant(3.0))
    monkeypatch.setattr(constants, "MOST_BYTES", 40_000)
    kept = gc.compile([X], y, native=False).source
    assert not re.search("sin|cos", kept)
    monkeypatch.setattr(constants, "MOST_BYTES", 39_999)
    made = gc.compile([X], y, native=False).source
    assert re.search("cos.*sin", made, re.DOTALL)
    assert "exp" not in made


def test_a_result_much_longer_than_what_it_is_computed_of_is_not_kept() -> None:
    n = int(constants.VALUES_ALWAYS_KEPT**0.5) + 1
    long = gc.constant(np.arange(float(n)), "a")
    outer = long * long.rename(a="b")
    assert "multiply" in gc.compile([X], outer + X.sum(), native=False).source
    assert "multiply" not in gc.compile([X], outer.sum("b") + X.sum(), native=False).source


def test_what_fails_on_constants_fails_at_the_call() -> None:
    bad = gc.linalg.cholesky(gc.constant(-np.eye(3), DIMS), dims=DIMS)
    f = gc.compile([X], X.sum() * bad)
    with pytest.raises(gc.GraphValueError, match=r"cholesky at test_constants.py.*not positive"):
        f([1.0])
    nan = gc.compile([X], X.sum() * gc.special.gammaln(gc.constant([np.nan], "k")).sum())
    assert np.isnan(nan([1.0]))


def test_a_program_without_inputs_computes_at_each_call() -> None:
    assert "gammaln" in gc.compile([], gc.special.gammaln(K), native=False).source


def test_positions_in_constants_may_wait_for_a_size() -> None:
    """A constant of known sizes, overwritten at a place that an unknown size decides."""
    x = gc.tensor("x", {"row": None})
    ct = gc.constant([1.0, 2.0, 3.0], "row")
    last = gc.pullback(x.at[{"row": -1}].set(0.5), x, ct)
    joined = gc.pullback(gc.concat([x, x], "row"), x, gc.constant(np.arange(6.0), "row"))
    for native in (False, True):
        found = gc.compile([x], [last, joined], native=native)(np.ones(3))
        np.testing.assert_array_equal(found, [[1.0, 2.0, 0.0], [3.0, 5.0, 7.0]])
