"""One exponential for the softplus and the sigmoid of a value."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import unavailable
from graphcore.backends.llvm_kernels.passes.exponentials import share_exponentials
from graphcore.ops.elementwise import exp

X, Y = gc.tensor("x", {"i": None}), gc.tensor("y", {"i": None})
SOFTPLUS, SIGMOID = gc.special.softplus, gc.special.expit


def powers(*results: gc.Tensor) -> int:
    """How many exponentials are computed, in loops as well."""
    graph = gc.compile([X, Y], [*results], native=False).stages["optimized"]
    return sum(node.op is exp for node in share_exponentials(graph).every_node())


def test_exponentials_are_shared() -> None:
    loss = SOFTPLUS(X) - Y * X
    assert powers(SOFTPLUS(X), SIGMOID(X), SIGMOID(-X)) == 1
    assert powers(SOFTPLUS(-X), SIGMOID(X)) == 1
    assert powers(loss.sum(), gc.grad(loss.sum(), X)) == 1
    assert powers(SIGMOID(X), gc.exp(-abs(X))) == 2
    assert powers(SOFTPLUS(X), SIGMOID(Y)) == 2


def test_exponentials_are_shared_in_loops() -> None:
    step = lambda total, x: (total + SOFTPLUS(x) * SIGMOID(x), SIGMOID(-x))
    assert powers(*gc.scan(step, 0.0, X, dim="i")) == 1


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoids_are_accurate(dtype: str) -> None:
    """At the ends of the range, in whole vectors and in the last one, alone and not at all."""
    x = gc.tensor("x", {"i": None}, dtype=dtype)
    results = [SOFTPLUS(x), SIGMOID(x), SIGMOID(-x)]
    f = gc.compile([x], results, native=True)
    ends = [0.0, 1e-300, 1e-20, 0.5, 17.0, 36.7, 87.0, 88.8, 103.0, 708.0, 710.0, 740.0, 746.0]
    some = np.random.default_rng(0).uniform(-30, 30, 50)
    given = np.array([*ends, *[-end for end in ends], *some], dtype)
    with mpmath.workdps(40):
        exact = [
            [mpmath.log1p(mpmath.exp(v)) for v in map(mpmath.mpf, given.tolist())],
            [1 / (1 + mpmath.exp(-v)) for v in map(mpmath.mpf, given.tolist())],
            [1 / (1 + mpmath.exp(v)) for v in map(mpmath.mpf, given.tolist())],
        ]
    for found, wanted in zip(f(given), exact, strict=True):
        near = np.array([float(v) for v in wanted])
        unit = np.spacing(near.astype(dtype)).astype(float)
        assert (abs(found.astype(float) - near) <= 4 * unit).all()
    strange = np.array([np.inf, -np.inf, np.nan, -0.0], dtype)
    np.testing.assert_array_equal(f(strange)[1], np.array([1, 0, np.nan, 0.5], dtype))
    np.testing.assert_array_equal(f(strange)[2], np.array([0, 1, np.nan, 0.5], dtype))
    assert [y.shape for y in f(given[:0])] == [(0,)] * 3
    assert [y.tolist() for y in f(given[3:4])] == [y[3:4].tolist() for y in f(given)]
