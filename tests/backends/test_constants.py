"""What a program computes of constants alone is computed when it is compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend.constants import MOST_VALUES

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
    if name != "eigenvalues":  # one of several results
        assert op not in f.source
    wanted = np.asarray(gc.compile([], made)())
    found = f([1.0, 2.0])
    np.testing.assert_allclose(found[0], 3 * wanted, rtol=1e-13)
    np.testing.assert_allclose(found[1], [wanted.sum()] * 2, rtol=1e-13)


def test_a_result_that_takes_much_memory_is_computed_at_each_call() -> None:
    n = int(MOST_VALUES**0.5) + 1
    long = gc.constant(np.arange(float(n)), "a")
    outer = gc.sin(long * long.rename(a="b"))
    f = gc.compile([X], outer * X.sum(), native=False)
    assert "sin" in f.source
    assert "sin" not in gc.compile([X], gc.sin(long) * X.sum(), native=False).source


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
