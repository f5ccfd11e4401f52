"""Everyday tasks of newcomers from NumPy, xarray, JAX and PyTensor: each is a few lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

import graphcore as gc

# ---- functions, trees and values


def test_the_value_of_an_expression_in_a_repl() -> None:
    x = gc.tensor("x", {"row": None})
    assert (x**2).sum().eval(x=[1.0, 2.0]) == 5.0


def test_a_program_from_its_middle() -> None:
    x = gc.tensor("x", {"row": None})
    hidden = gc.tanh(x)
    f = gc.compile([hidden], (hidden**2).sum())
    assert f([1.0, 2.0]) == 5.0


def test_a_value_and_its_gradient() -> None:
    w = gc.tensor("w", {"row": 2})
    value, slope = gc.compile([w], gc.value_and_grad((w**2).sum(), w))([1.0, 2.0])
    assert value == 5.0
    np.testing.assert_array_equal(slope, [2.0, 4.0])


def test_a_function_is_the_unit() -> None:
    @gc.function(x={"batch": None, "feature": 2}, w=("feature",))
    def loss(x, w, power=2):
        return (gc.dot(x, w, dim="feature") ** power).mean("batch")

    @gc.function(x={"batch": None, "feature": 2}, w=("feature",))
    def slope(x, w):
        return gc.grad(loss(x, w), w)

    assert loss(np.eye(2), np.ones(2), power=3) == 1.0
    np.testing.assert_array_equal(slope(np.eye(2), np.ones(2)), [1.0, 1.0])


def test_parameters_of_a_dataclass() -> None:
    @dataclass
    class Model:
        w: Any
        b: Any

    x, model = gc.tensor("x", {"row": None}), Model(gc.tensor("w", {}), gc.tensor("b", {}))
    loss = ((model.w * x + model.b) ** 2).sum()
    f = gc.compile([x, model], gc.grad(loss, model))
    assert f(np.ones(2), Model(1.0, 2.0)) == Model(12.0, 12.0)


def test_parameters_as_one_vector_for_a_solver() -> None:
    x, y = np.linspace(0, 1, 20), 3 * np.exp(-2 * np.linspace(0, 1, 20))
    vector, unravel = gc.ravel({"height": gc.tensor("h", {}), "rate": gc.tensor("r", {})})
    v, t = gc.tensor("v", vector.sizes), gc.constant(x, "time")
    p = unravel(v)
    left = p["height"] * gc.exp(-p["rate"] * t) - gc.constant(y, "time")
    f, jac = gc.compile([v], left), gc.compile([v], gc.jacobian(left, v))
    found = unravel(least_squares(f, [1.0, 1.0], jac).x)
    np.testing.assert_allclose([found["height"], found["rate"]], [3.0, 2.0])


def test_adam_in_float32_with_a_dict_of_parameters() -> None:
    adam = gc.optimize.adam(0.1)

    @gc.function(x=gc.tensor("x", {"row": 3}, dtype="float32"))
    def train(x, steps=100):
        def step(carry, _):
            params, state = carry
            loss, grads = gc.value_and_grad(((params["w"] - x) ** 2).sum(), params)
            return adam.update(params, grads, state), loss

        start = {"w": gc.zeros_like(x)}
        return gc.scan(step, (start, adam.init(start)), length=steps, dim="step")[0][0]

    x = np.array([0.5, -0.3, 0.1], "float32")
    found = train(x)["w"]
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, x, atol=0.02)


def test_state_between_calls_is_returned() -> None:
    @gc.function(state=(), x=("time",))
    def level(state, x):
        return gc.scan(lambda state, x: (0.5 * state + x, None), state, x, dim="time")[0]

    state = 0.0
    for chunk in ([1.0, 2.0], [3.0]):
        state = level(state, chunk)
    assert state == 4.25


def test_a_float64_number_for_a_float32_input_is_refused_with_its_cure() -> None:
    x, rate = (gc.tensor(name, {}, dtype="float32") for name in ("x", "rate"))
    f = gc.compile([x, rate], x * rate)
    scheduled = 0.1 * np.cos(0.5)
    with pytest.raises(gc.GraphTypeError, match=r"pass a Python number.*: float\(value\)"):
        f(np.float32(2), scheduled)
    assert f(np.float32(2), float(scheduled)).dtype == "float32"


def test_new_values_in_the_dtype_of_an_input() -> None:
    x = gc.tensor("x", {"time": None}, dtype="float32")
    t = gc.linspace(0, 1, x.sizes["time"], dim="time", like=x)
    assert (x * t + gc.zeros(x.sizes, like=x)).dtype == "float32"


def test_a_number_of_steps_given_at_the_call() -> None:
    x, steps = gc.tensor("x", {}), gc.tensor("steps", {}, dtype="int64")
    last, path = gc.scan(lambda c, _: (c * x, c), 1.0, length=steps, dim="step")
    f = gc.compile([x, steps], [last, path, gc.grad(last, x)])
    for n in (3, 5):
        got = f(2.0, n)
        assert (got[0], got[1].shape, got[2]) == (2.0**n, (n,), n * 2.0 ** (n - 1))


def test_a_result_of_a_size_given_at_the_call() -> None:
    x, n = gc.tensor("x", {"row": None}), gc.tensor("n", {}, dtype="int64")
    f = gc.compile(
        [x, n], gc.interp(gc.linspace(0, 1, n, dim="t"), [0.0, 1.0], [0.0, 9.0], dim="k")
    )
    np.testing.assert_array_equal(f(np.ones(2), 4), [0.0, 3.0, 6.0, 9.0])
