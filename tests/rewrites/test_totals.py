"""Carries that only add up: the same as step by step, at the edges too, and no carries any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops import control

EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan]
x = gc.tensor("x", {"time": None, "col": None})
k = gc.tensor("k", {"col": None})
s = gc.tensor("s", {"time": None})

BODIES: dict[str, Callable[..., Any]] = {
    "pure": lambda total, a, b: total + a,
    "product": lambda total, a, b: total + a * b * k,
    "difference": lambda total, a, b: total - gc.sin(a) * b,
    "of the right": lambda total, a, b: gc.exp(a) + total,
    "sum": lambda total, a, b: total + (a * b).sum(),
    "negated": lambda total, a, b: total - (a * k).sum() * b,
    "masked": lambda total, a, b: total + gc.where(a > b, a, 0),
    "of one": lambda total, a, b: total + b * k,
    "two": lambda total, a, b: total + a * a - b,
    "chain": lambda total, a, b: (total + a) + gc.tanh(b),
}


def by_hand(body: Callable[..., Any], start: np.ndarray, a: np.ndarray, b: np.ndarray) -> Any:
    """Step by step, each of them a program of its own."""
    one, two = gc.tensor("a", {"col": None}), gc.tensor("b", {})
    total = gc.tensor("total", {"col": None})
    step = gc.compile([total, one, two, k], body(total, one, two) + 0 * k)
    for place in range(len(a)):
        start = step(start, a[place], b[place], FACTORS[: a.shape[1]])
    return start


FACTORS = np.array([1.5, -2.0, 0.25])


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_totals_are_those_of_all_steps(name: str, reverse: bool, wild: bool) -> None:
    body = BODIES[name]
    start = gc.tensor("start", {"col": None})
    last, _ = gc.scan(
        lambda total, place: (body(total, *place) + 0 * k, None),
        start, (x, s), dim="time", reverse=reverse,
    )  # fmt: skip
    f = gc.compile([start, x, s, k], last)
    random = np.random.default_rng(3)
    for steps, cols in [(0, 3), (1, 3), (5, 3), (5, 1), (5, 0), (0, 0)]:
        a, b = random.normal(size=(steps, cols)), random.normal(size=steps)
        if wild and a.size:
            a.flat[::3] = random.choice(EDGES, a.flat[::3].size)
        first = random.normal(size=cols)
        order = slice(None, None, -1 if reverse else 1)
        with np.errstate(all="ignore"):
            wanted = by_hand(body, first, a[order], b[order])
        np.testing.assert_allclose(f(first, a, b, FACTORS[:cols]), wanted, rtol=1e-12, atol=1e-12)


def step(state: gc.Tensor, place: tuple) -> tuple:
    a, b = place
    new = gc.tanh(w * state + a * gc.maximum(b, 0) + v)
    return new, new


w, v = gc.tensor("w", {"col": None}), gc.tensor("v", {"col": None})


@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_gradients_are_those_of_the_steps_written_out(steps: int) -> None:
    start = 0.1 * k
    states = gc.scan(step, start, (x, s), dim="time")[1]
    grads = gc.grad((states**2).sum() + states.sum() * k.sum(), [w, v, x, s, k])
    f = gc.compile([w, v, x, s, k], grads)
    fixed = x[{"time": slice(steps)}], s[{"time": slice(steps)}]
    state, loss = start, 0 * (w + v + k).sum() + 0 * x.sum() + 0 * s.sum()
    for t in range(steps):
        state, new = step(state, tuple(y.isel(time=t) for y in fixed))
        loss = loss + (new**2).sum() + new.sum() * k.sum()
    g = gc.compile([w, v, x, s, k], gc.grad(loss, [w, v, x, s, k]))
    random = np.random.default_rng(5)
    given = [random.normal(size=shape) for shape in (3, 3, (steps, 3), steps, 3)]
    for found, wanted in zip(f(*given), g(*given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    (back,) = [
        n for n in f.stages["optimized"].nodes() if n.op is control.scan and n.attrs["reverse"]
    ]
    assert back.attrs["carries"] == 1


def test_what_would_take_more_room_is_added_up_in_the_loop() -> None:
    big = gc.tensor("big", {"row": None, "col": None})
    (_, last), _ = gc.scan(
        lambda state, b: ((gc.sin(state[0] + b), state[1] + gc.exp(state[0] * big)), None),
        (0.0, gc.zeros_like(big)), s, dim="time",
    )  # fmt: skip
    f = gc.compile([big, s], last)
    (loop,) = [n for n in f.stages["optimized"].nodes() if n.op is control.scan]
    assert loop.attrs["carries"] == 2
    given, b = np.arange(6.0).reshape(2, 3), np.array([0.5, -1.0])
    np.testing.assert_allclose(f(given, b), np.exp(0 * given) + np.exp(np.sin(0.5) * given))


@pytest.mark.parametrize("reverse", [False, True])
def test_results_that_no_step_needs_are_those_of_all_steps(reverse: bool) -> None:
    def step(state: gc.Tensor, place: tuple) -> tuple:
        a, b = place
        new = gc.tanh(k * state + a)
        away = new - b
        return new, (0.5 * (away**2).mean("col"), away, gc.where(a > 0, new, 0), new, away, b * b)

    last, found = gc.scan(step, 0 * k, (x, s), dim="time", reverse=reverse)
    f = gc.compile([k, x, s], [last, *found])
    (loop,) = [n for n in f.stages["optimized"].nodes() if n.op is control.scan]
    assert len(loop.attrs["body"].outputs) == 2  # the carry, and the state of each step
    random = np.random.default_rng(4)
    for steps in (0, 1, 6):
        a, b, state = random.normal(size=(steps, 3)), random.normal(size=steps), np.zeros(3)
        wanted = [np.zeros((steps, 3)) for _ in range(6)]
        rows = range(steps)[::-1] if reverse else range(steps)
        wanted[0], wanted[5] = np.zeros(steps), b * b
        for t in rows:
            state = np.tanh(FACTORS * state + a[t])
            away = state - b[t]
            wanted[0][t] = 0.5 * (away**2).mean()
            wanted[1][t] = wanted[4][t] = away
            wanted[2][t], wanted[3][t] = np.where(a[t] > 0, state, 0), state
        for ours, theirs in zip(f(FACTORS, a, b), [state, *wanted], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_single_numbers_are_added_up_after_their_loop() -> None:
    """One after the other they would round once a step, in gradients by a number too."""
    (last, total), ys = gc.scan(
        lambda state, b: ((gc.sin(state[0] + b), state[1] + state[0] * b), state[0] * b),
        (0.0, 0.0), s, dim="time",
    )  # fmt: skip
    f = gc.compile([s], [last, total, ys])
    (loop,) = [n for n in f.stages["optimized"].nodes() if n.op is control.scan]
    assert loop.attrs["carries"] == 1
    for b in (np.zeros(0), np.array([0.5, -1.0, 2.0])):
        one, sum_of, each = 0.0, 0.0, []
        for value in b:
            each.append(one * value)
            one, sum_of = np.sin(one + value), sum_of + one * value
        for ours, theirs in zip(f(b), [one, sum_of, each], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_what_is_taken_off_a_total() -> None:
    last, _ = gc.scan(
        lambda total, row: (total - gc.sin(row), None),
        gc.zeros({"col": x.sizes["col"]}),
        x,
        dim="time",
    )
    given = np.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(gc.compile([x], last)(given), -np.sin(given).sum(0))
