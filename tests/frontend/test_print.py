"""`gc.print` shows values when they are computed, in order, once, in both targets."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels

NO_MACHINE_CODE = pytest.mark.skipif(
    llvm_kernels.unavailable() is not None, reason="machine code does not run here"
)
TARGETS = pytest.mark.parametrize(
    "native",
    [pytest.param(False, id="numpy"), pytest.param(True, id="machine code", marks=NO_MACHINE_CODE)],
)


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def looped() -> tuple[list[gc.Tensor], gc.Tensor]:
    u, w = gc.tensor("u", {"time": None}), gc.tensor("w", {})

    def step(state: gc.Tensor, u: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        factor = gc.print(2 * w, "same at all steps")
        given = gc.print(u + 1, "of the sequence")
        state = gc.print(factor * state + given, "state")
        return state, gc.print(u, "result")

    last, each = gc.scan(step, 0.0, u, dim="time")
    return [u, w], gc.print(last + each.sum(), "total")


STEPS = [
    *("same at all steps: f64[] = 1.", "of the sequence: f64[] = 2.", "state: f64[] = 2."),
    "result: f64[] = 1.",
    *("same at all steps: f64[] = 1.", "of the sequence: f64[] = 4.", "state: f64[] = 6."),
    "result: f64[] = 3.",
    "total: f64[] = 10.",
]


@TARGETS
def test_each_step_prints_in_order(native: bool, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, y = looped()
    f = gc.compile(inputs, y, native=native)
    for _ in range(2):
        assert f([1.0, 3.0], 0.5) == 10
        assert printed(capsys) == STEPS


@TARGETS
def test_derivatives_pass_through_and_print_nothing(
    native: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs, y = looped()
    grad = gc.grad(y, inputs[1])
    both = gc.compile(inputs, [y, grad, gc.pushforward(y, inputs[1], 1.0)], native=native)
    assert both([1.0, 3.0], 0.5) == [10, 4, 4]
    assert printed(capsys) == STEPS
    x = gc.tensor("x", {"row": 2})
    z = gc.print(gc.print(x, "x") ** 3, "cubes").sum()
    g = gc.compile([x], [z, gc.grad(z, x), gc.hessian(z, x)], native=native)
    _, slope, curvature = g([1.0, 2.0])
    np.testing.assert_allclose(slope, [3, 12])
    np.testing.assert_allclose(curvature, np.diag([6, 12]))
    assert printed(capsys) == ["x: f64[row=2] = [1. 2.]", "cubes: f64[row=2] = [1. 8.]"]


@TARGETS
def test_prints_come_in_the_order_in_which_they_are_written(
    native: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    x = gc.tensor("x", {"row": 1})
    first, second, third = (gc.print(x * i, str(i)) for i in (1, 2, 3))
    gc.compile([x], [third, second * third, first], native=native)([1.0])
    assert printed(capsys) == [f"{i}: f64[row=1] = [{i}.]" for i in (1, 2, 3)]


@TARGETS
def test_loops_and_branches_print_where_they_are_written(
    native: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though nothing but the place in the text says which of them is first."""
    x, u = gc.tensor("x", {}), gc.tensor("u", {"time": None})
    values = []
    for name in ("first", "second"):
        values.append(gc.print(x, f"before the {name}"))
        step = lambda s, u, name=name: (gc.print(s + u, name), None)
        values.append(gc.scan(step, x, u, dim="time")[0])
        values.append(gc.cond(x > 0, lambda: gc.print(x, "then"), lambda: gc.print(-x, "else")))
    values.append(gc.fori_loop(0, 2, lambda i, s: gc.print(s * 2, "third"), x))
    for outputs in (values, values[::-1]):
        gc.compile([x, u], outputs, native=native)(1.0, [1.0, 2.0])
        found = [line.partition(":")[0] for line in printed(capsys)]
        assert found == [
            *("before the first", "first", "first", "then"),
            *("before the second", "second", "second", "then", "third", "third"),
        ]


@TARGETS
def test_only_the_branch_that_is_taken_prints(
    native: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    x = gc.tensor("x", {})
    y = gc.cond(x > 0, lambda: gc.print(x, "then"), lambda: gc.print(-x, "otherwise"))
    f = gc.compile([x], y, native=native)
    f(1.0), f(-2.0)
    assert printed(capsys) == ["then: f64[] = 1.", "otherwise: f64[] = 2."]


@TARGETS
def test_while_loops_print_in_the_condition_and_in_the_body(
    native: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    x = gc.tensor("x", {})
    y = gc.while_loop(lambda x: gc.print(x, "test") < 3, lambda x: gc.print(x + 1, "step"), x)
    assert gc.compile([x], [y, gc.grad(y, x)], native=native)(1.0) == [3, 1]
    assert printed(capsys) == [
        f"{label}: f64[] = {value}."
        for label, value in (("test", 1), ("step", 2), ("test", 2), ("step", 3), ("test", 3))
    ]


@TARGETS
def test_what_a_checkpoint_computes_again_is_printed_once(
    native: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    x = gc.tensor("x", {})
    y = gc.checkpoint(lambda x: gc.exp(gc.print(2 * x, "inside")))(x)
    gc.compile([x], [y, gc.grad(y, x)], native=native)(0.0)
    assert printed(capsys) == ["inside: f64[] = 0."]
    u = gc.tensor("u", {"time": None})
    last = gc.scan(lambda s, u: (gc.print(s * u, "s"), None), x, u, dim="time", checkpoint=2)[0]
    gc.compile([x, u], [last, gc.grad(last, x)], native=native)(1.0, [1.0, 2, 3])
    assert printed(capsys) == [f"s: f64[] = {value}." for value in (1, 2, 6)]


@TARGETS
def test_vectorize_prints_the_batch(native: bool, capsys: pytest.CaptureFixture[str]) -> None:
    x, xs = gc.tensor("x", {"row": 2}), gc.tensor("xs", {"batch": 2, "row": 2})
    y = gc.vectorize(gc.print(2 * x, "x").sum(), {x: xs})
    gc.compile([xs], y, native=native)(np.eye(2))
    assert printed(capsys) == ["x: f64[batch=2, row=2] =", "[[2. 0.]", " [0. 2.]]"]


@TARGETS
def test_constants_print_in_each_call(native: bool, capsys: pytest.CaptureFixture[str]) -> None:
    f = gc.compile([], gc.print(gc.constant(1.5), "c") + 1, native=native)
    assert f() == f() == 2.5
    assert printed(capsys) == ["c: f64[] = 1.5"] * 2


def test_a_print_that_no_output_needs_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    x = gc.tensor("x", {})
    gc.print(x, "unused")
    gc.compile([x], x + 1)(1.0)
    assert printed(capsys) == []


def test_pickled_it_prints_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    x = gc.tensor("x", {"row": None}, dtype="float32")
    pickle.loads(pickle.dumps(gc.compile([x], gc.print(x, "x"))))(np.zeros(2, "f"))
    assert printed(capsys) == ["x: f32[row=2] = [0. 0.]"]


def test_long_arrays_and_hostile_names_stay_short(capsys: pytest.CaptureFixture[str]) -> None:
    x = gc.tensor("x", {"row\n" * 20: None})
    gc.compile([x], gc.print(x, "a\n\x1b[31m"))(np.zeros(10_000))
    (line,) = printed(capsys)
    assert len(line) < 150
    assert "\x1b" not in line
    assert line.endswith("= [0. 0. 0. ... 0. 0. 0.]")


@TARGETS
def test_check_trace_and_profile_print_no_more_than_a_call(
    native: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    x = gc.tensor("x", {})
    f = gc.compile([x], gc.log(gc.print(x, "x")), native=native)
    fault: Any = f.check(0.0)
    assert fault.op == "log"
    assert printed(capsys) == ["x: f64[] = 0."]
    f.trace(1.0)
    assert printed(capsys) == []
    f.profile(1.0)
    f(2.0)
    assert printed(capsys) == ["x: f64[] = 1.", "x: f64[] = 2."]


def test_it_is_shown_with_its_label(capsys: pytest.CaptureFixture[str]) -> None:
    x = gc.tensor("x", {})
    gc.debug_print(gc.print(x, "my label") + gc.print(x))
    out = capsys.readouterr().out
    assert "= print(x; as 'my label')" in out
    assert "= print(x)" in out
