"""Inner tensors as inputs of programs, and values at once."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc

X = gc.tensor("x", {"row": None, "col": 3})
W = gc.tensor("w", {"col": 3})
A, B, V = np.arange(6.0).reshape(2, 3), np.ones((2, 3)), np.array([1.0, -1.0, 2.0])


def test_a_program_starts_from_inner_tensors() -> None:
    h = gc.exp(X) * W
    y = (h * W).sum("col")
    (got,) = gc.compile([h, W], [y], native=False)(A, V)
    np.testing.assert_allclose(got, A @ V)


def test_what_an_inner_input_is_computed_from_is_not_needed() -> None:
    f = gc.compile(gc.exp(X), {"twice": 2 * gc.exp(X)}, native=False)
    np.testing.assert_array_equal(f(A)["twice"], 2 * A)


def test_inner_inputs_that_depend_on_each_other() -> None:
    h = gc.exp(X)
    k = gc.sin(h)
    f = gc.compile({"k": k, "h": h}, h + k, native=False)
    np.testing.assert_array_equal(f({"k": A, "h": B}), A + B)


@pytest.mark.parametrize("mode", ["grad", "pushforward"])
def test_a_derivative_by_an_inner_input(mode: str) -> None:
    h = gc.exp(X)
    y = (gc.sin(h) * W).sum()
    dy = gc.grad(y, h) if mode == "grad" else gc.pushforward(y, h, h * 0 + 1)
    got = gc.compile([h, W], dy, native=False)(A, V)
    want = np.cos(A) * V
    np.testing.assert_allclose(got, want if mode == "grad" else want.sum())


def test_a_derivative_by_what_comes_after_an_inner_input() -> None:
    h = gc.exp(X)
    k = gc.sin(h)
    got = gc.compile([h], gc.grad((k * k * h).sum(), k), native=False)(A)
    np.testing.assert_allclose(got, 2 * np.sin(A) * A)


def test_inner_inputs_of_loops_and_vectorized_programs() -> None:
    h = X * 2
    last, _ = gc.scan(lambda c, row: (c * W + row + h.sum(), None), W, h, dim="row")
    got = gc.compile([h, W], last, native=False)(A, V)
    carry = V
    for row in A:
        carry = carry * V + row + A.sum()
    np.testing.assert_allclose(got, carry)
    many = gc.tensor("many", {"run": None, "row": None, "col": 3})
    wide = gc.vectorize((h * W).sum("col"), {h: many})
    np.testing.assert_allclose(gc.compile([many, W], wide, native=False)([A, B], V), [A @ V, B @ V])


def test_a_pickled_program_keeps_its_inner_inputs() -> None:
    import pickle

    h = gc.exp(X)
    f = pickle.loads(pickle.dumps(gc.compile([h], h + 1, native=False)))
    np.testing.assert_array_equal(f(A), A + 1)


def test_values_at_once() -> None:
    h = X * W
    np.testing.assert_array_equal(h.eval(x=A, w=V), A * V)
    np.testing.assert_array_equal(h.eval({X: A, "w": V}), A * V)
    found = gc.evaluate({"h": h, "many": [h.sum(), 2]}, {X: A, W: V})
    assert found["h"].shape == (2, 3)
    assert found["many"][1] == 2
    np.testing.assert_array_equal(gc.evaluate(h.sum("col"), {h: B}), [3.0, 3.0])
    assert gc.ones({"row": 2}).eval().shape == (2,)
