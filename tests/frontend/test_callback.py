"""`gc.callback` runs functions of NumPy arrays in programs, in both targets, with derivatives."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import xarray

import graphcore as gc
from tests.frontend.test_print import TARGETS

exactly, close = np.testing.assert_array_equal, np.testing.assert_allclose
STATES = 3
X, W = gc.tensor("x", {"state": STATES}), gc.tensor("w", {"state": STATES, "old": STATES})
U = gc.tensor("u", {"time": None, "state": STATES})
V = gc.tensor("v", {"state": STATES})
MANY = gc.tensor("many", {"member": None, "state": STATES})
STATE, OLD = gc.zeros({"state": STATES}), gc.zeros({"old": STATES})


def layer(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    assert x.shape == (STATES,), "the function is given one member at a time"
    return np.tanh(w @ x)


def backward(operands: Any, y: np.ndarray, ct: np.ndarray) -> Any:
    x, w = operands
    slope = ct * (1 - y**2)
    return w.T @ slope, np.outer(slope, x)


def forward(operands: Any, y: np.ndarray, tangents: Any) -> np.ndarray:
    (x, w), (dx, dw) = operands, tangents
    return (1 - y**2) * (dw @ x + w @ dx)


def outside(both: bool) -> Callable[[gc.Tensor], gc.Tensor]:
    """A layer whose values and derivatives are NumPy's."""
    dims = ("state", "old")
    back = gc.callback(backward, (OLD, W), dims=dims)
    forth = gc.callback(forward, STATE, dims=dims) if both else None
    cell = gc.callback(layer, STATE, dims=dims, pullback=back, pushforward=forth)
    return lambda x: cell(x.rename(state="old"), W)


def inside(x: gc.Tensor) -> gc.Tensor:
    """The same layer as a program."""
    return gc.tanh(gc.dot(W, x.rename(state="old"), dim="old"))


def walked(cell: Callable[[gc.Tensor], gc.Tensor]) -> list[Any]:
    """A loop of layers, with its gradients and its tangent."""

    def step(x: gc.Tensor, u: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        x = cell(x + u)
        return x, x.sum()

    last, each = gc.scan(step, X, U, dim="time")
    y = (last**2).sum() + each.sum()
    return [y, *gc.grad(y, [X, W, U]), gc.pushforward(y, X, V)]


@TARGETS
@pytest.mark.parametrize(
    "both",
    [
        pytest.param(True, id="two rules", marks=pytest.mark.slow),
        pytest.param(False, id="pullback"),
    ],
)
def test_a_derivative_in_a_loop_under_vectorize_in_both_modes(both: bool, native: bool) -> None:
    random = np.random.default_rng(1)
    x, w, u, v = (random.normal(size=shape) for shape in ((5, 3), (3, 3), (4, 3), (3,)))
    found, wanted = (
        [
            *gc.compile([X, W, U, V], walked(cell), native=native)(x[0], w, u, v),
            *gc.compile([MANY, W, U, V], gc.vectorize(walked(cell), {X: MANY}), native=native)(
                x, w, u, v
            ),
        ]
        for cell in (outside(both), inside)
    )
    for a, b in zip(found, wanted, strict=True):
        close(a, b, rtol=1e-9, atol=1e-12)
    y, *_ = walked(outside(both))
    gc.check_grads(y, [X, W, U], {X: x[0], W: w, U: u})


@TARGETS
def test_it_runs_between_other_steps_and_in_branches(native: bool) -> None:
    x = gc.tensor("x", {"row": None})
    order = gc.callback(np.sort, x)
    y = gc.cond(x.sum() > 0, lambda x: order(gc.exp(x)) * 2, lambda x: order(-x), x)
    f = gc.compile([x], [y, y.cumsum("row")], native=native)
    for values in (np.array([0.5, -0.2, 0.1]), np.array([0.5, -0.9, 0.1])):
        wanted = np.sort(np.exp(values)) * 2 if values.sum() > 0 else np.sort(-values)
        close(f(values)[0], wanted)
        close(f(values)[1], np.cumsum(wanted))


def test_dims_that_the_function_does_not_know_are_batch() -> None:
    shapes = []

    def fit(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, int]:
        shapes.append((y.shape, x.shape))
        return np.polyfit(x, y, 1)[::-1], y.argmax()

    y, x = gc.tensor("y", {"time": None, "place": None}), gc.tensor("x", {"time": None})
    result = {"line": gc.zeros({"power": 2}), "top": gc.constant(0)}
    line = gc.callback(lambda y, x: dict(zip(("line", "top"), fit(y, x))), result, dims="time")
    made = line(y, x)
    assert (made["line"].dims, made["top"].dims) == (("place", "power"), ("place",))
    ys, xs = np.random.default_rng(2).normal(size=(6, 4)), np.arange(6.0)
    found = gc.compile([y, x], made)(ys, xs)
    close(found["line"], np.polyfit(xs, ys, 1)[::-1].T)
    exactly(found["top"], ys.argmax(0))
    assert shapes == [((6,), (6,))] * 4


def test_dims_come_in_the_order_that_is_asked_for() -> None:
    x = gc.tensor("x", {"row": 2, "col": 3})
    flat = gc.callback(np.ravel, gc.zeros({"flat": 6}), dims=("col", "row"))
    values = np.arange(6.0).reshape(2, 3)
    exactly(gc.compile([x], flat(x))(values), values.T.ravel())
    exactly(gc.compile([x], flat(x.transpose("col", "row")))(values), values.T.ravel())
    unnamed = gc.callback(np.ravel, gc.zeros({"flat": 6}))
    exactly(gc.compile([x], unnamed(x))(values), values.ravel())


def test_arrays_are_its_own_and_results_are_copied() -> None:
    kept = []

    def greedy(x: np.ndarray) -> np.ndarray:
        kept.append(x)
        x *= 2
        return x

    x = gc.tensor("x", {"row": 3})
    f = gc.compile([x], [gc.callback(greedy, x)(x + 1), x])
    values = np.ones(3)
    first = f(values)[0]
    kept[0][:] = 7
    exactly(first, 4)
    exactly(values, 1)
    assert f(values)[0] is not kept[1]


def test_results_may_be_lists_and_arrays_with_dims() -> None:
    x = gc.tensor("x", {"row": 2, "col": 3})
    turned = gc.callback(lambda v: xarray.DataArray(v.T, dims=("col", "row")), x)
    values = np.arange(6.0).reshape(2, 3)
    exactly(gc.compile([x], turned(x))(values), values)
    listed = gc.callback(lambda v: [1, 2.5, True], gc.zeros({"k": 3}))
    exactly(gc.compile([x], listed(x))(values), [1, 2.5, 1])


def test_equal_calls_are_one_and_unused_ones_none() -> None:
    calls = []
    f = gc.callback(lambda x: calls.append(1) or x, X)
    assert f(X) is f(X)
    gc.compile([X], [f(X), f(X) * 2])(np.ones(3))
    assert len(calls) == 1
    assert gc.callback(np.sin, X)(X) is not gc.callback(np.sin, X)(X)


def test_members_that_have_stopped_are_not_given_to_it() -> None:
    seen: list[float] = []

    def doubled(v: np.ndarray) -> np.ndarray:
        assert v < 10
        seen.append(float(v))
        return v * 2

    one, several = gc.tensor("one", {}), gc.tensor("several", {"member": None})
    call = gc.callback(doubled, one)
    y = gc.while_loop(lambda v: v < 10, call, one)
    exactly(gc.compile([several], gc.vectorize(y, {one: several}))([1.0, 3.0, 20.0]), [16, 12, 20])
    assert seen == [1, 3, 2, 6, 4, 8]
    seen.clear()
    y = gc.cond(one < 10, call, lambda v: -v, one)
    exactly(gc.compile([several], gc.vectorize(y, {one: several}))([20.0, 3.0]), [-20, 6])
    assert seen == [3]


def test_a_program_with_it_is_pickled_and_looked_into() -> None:
    solve = gc.callback(np.linalg.norm, gc.zeros({}), dims="state")
    y = solve(MANY)
    f = pickle.loads(pickle.dumps(gc.compile([MANY], y)))
    exactly(f(np.eye(3)), np.ones(3))
    named, plain = str(f.stages["named"]), str(f.stages["scheduled"])
    assert "callback(many; norm, for each member)" in named
    assert "callback(many; norm, for each member)" in plain
    assert f.check(np.eye(3)) is None
    fault = f.check(np.full((1, 3), np.nan))
    assert (fault.op, fault.cause) == ("input many", "the argument holds nan")
    with pytest.raises(
        gc.GraphTypeError, match=r"callback at .* has a Function, which JSON cannot"
    ):
        f.stages["named"].to_json()


def test_a_program_calls_another_program() -> None:
    x = gc.tensor("x", {"row": None})
    inner = gc.compile([x], gc.sin(x) * 2, native=False)
    f = gc.compile([x], gc.callback(inner, x)(x) + 1)
    close(f(np.arange(3.0)), np.sin(np.arange(3.0)) * 2 + 1)


# ---- errors


def root(a: np.ndarray) -> float:
    return scipy.optimize.brentq(lambda x: x**2 - a, 0.0, 2.0)


@TARGETS
def test_its_error_is_the_cause_of_one_in_words(native: bool) -> None:
    a = gc.tensor("a", {"time": None, "place": None})

    def step(c: gc.Tensor, a: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        y = gc.callback(root, gc.zeros({}), dims=())(a)
        return c + y, y

    f = gc.compile([a], gc.scan(step, gc.zeros({"place": 2}), a, dim="time")[0], native=native)
    exactly(f([[1.0, 1.0]]), [1, 1])
    with pytest.raises(gc.GraphValueError) as error:
        f([[1.0, 1.0], [2.0, 9.0]])
    message = str(error.value)
    assert "callback at test_callback.py:" in message
    assert "root raised ValueError: f(a) and f(b) must have different signs, for place=1" in message
    assert "in step 1 (from 0) of scan at test_callback.py:" in message
    assert "cure: look at the values that reach it" in message
    assert type(error.value.__cause__) is ValueError


def test_integers_that_fit_a_smaller_dtype() -> None:
    small = gc.zeros({"k": 2}).astype("uint8")
    exactly(gc.compile([X], gc.callback(lambda x: [1, 255], small)(X))(np.ones(3)), [1, 255])


def test_what_is_constant_needs_no_rule() -> None:
    constant = gc.callback(np.sin, X)(gc.stop_gradient(X))
    close(gc.compile([X], gc.grad((X * constant).sum(), X))(np.ones(3)), np.sin(np.ones(3)))
