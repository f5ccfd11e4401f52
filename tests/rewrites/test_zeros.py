"""Carries that start at zero and stay there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops.control import LOOPS, Loop

X = np.array([1.0, -2.0, np.inf])


def carried(f: gc.Compiled) -> list[int]:
    """How many carries the loops of a program have in the end."""
    return [len(Loop.of(x).carries) for x in f.stages["optimized"].nodes() if x.op in LOOPS]


def run(
    step: Callable[[tuple, gc.Tensor], tuple], start: tuple[float, ...]
) -> tuple[gc.Compiled, list[np.ndarray]]:
    """The last carries of a loop over X, compiled, and computed."""
    x = gc.tensor("x", {"time": 3})
    last, _ = gc.scan(lambda state, at: (step(state, at), None), start, x)
    f = gc.compile([x], list(last))
    return f, f(X)


STAYING = {
    "itself": (lambda s, x: (s[0] + x, s[1]), 1),
    "a sum of zeros": (lambda s, x: (s[0] + x, s[1] + s[1] - s[1]), 1),
    "a choice between zeros": (lambda s, x: (s[0] + x, gc.where(x > 0, s[1], 0.0)), 1),
    "of each other": (lambda s, x: (s[1], s[0], s[2] + x), 1),
    "plus a zero of any sign": (lambda s, x: (s[0] + x, s[1] - s[1] * 2.0), 1),
    "through an inner loop": (
        lambda s, x: (s[0] + x, gc.fori_loop(0, 2, lambda i, z: z + z, s[1])),
        1,
    ),
    "in both branches": (
        lambda s, x: (s[0] + x, gc.cond(x > 0, lambda z: z, lambda z: z + z, s[1])),
        1,
    ),
}
CHANGING = {
    "a term": lambda s, x: (s[0] + x, s[1] + x),
    "through another": lambda s, x: (s[0] + x, s[1] + s[0]),
    "after two steps": lambda s, x: (s[1], s[2], s[2] + x),
    "by an infinite factor": lambda s, x: (s[0] + x, s[1] * x),
    "by its sign": lambda s, x: (s[0] + 1 / s[1], -s[1]),
    "in one branch": lambda s, x: (s[0] + x, gc.cond(x > 0, lambda z: z, lambda z: z + x, s[1])),
    "cos": lambda s, x: (s[0] + x, gc.cos(s[1])),
    "compared": lambda s, x: (s[0] + x, gc.where(s[1] > -1, x, s[1])),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", STAYING)
def test_zeros_are_not_carried(name: str) -> None:
    step, left = STAYING[name]
    start = (0.0,) * (3 if name == "of each other" else 2)
    f, found = run(step, start)
    assert carried(f) in ([left], [])  # a plain sum over steps needs no loop at all
    assert [np.copysign(1.0, y) for y in found if y == 0] == [1.0] * (len(start) - 1)
    assert sum(y == X.sum() for y in found) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CHANGING)
def test_what_changes_is_carried(name: str) -> None:
    """With the values of the same steps in Python, each computed by itself."""
    step = CHANGING[name]
    start = (0.0,) * (3 if name == "after two steps" else 2)
    _, found = run(step, start)
    state = [np.float64(x) for x in start]
    for x in X:
        given = [gc.tensor(f"s{i}", {}) for i in range(len(state))]
        at = gc.tensor("at", {})
        state = gc.compile([*given, at], list(step(tuple(given), at)))(*state, x)
    for one, two in zip(found, state, strict=True):
        np.testing.assert_array_equal(one, two)
        assert np.signbit(one) == np.signbit(two)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_negative_zero_keeps_its_sign() -> None:
    _, (one, _) = run(lambda s, x: (1 / s[1], s[1]), (0.0, -0.0))
    assert one == -np.inf


def test_no_loop_goes_back_for_a_derivative_that_is_zero() -> None:
    """The path of a search does not depend on a constant of what is sought."""
    a, start = gc.tensor("a", {}), gc.tensor("start", {})

    def step(state: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        x, _ = state
        new = x / 2
        return new, new**2 + a

    x, _ = gc.while_loop(lambda state: state[1] - a > 1e-3, step, (start, start**2 + a))
    value = x + a
    f = gc.compile([a, start], [value, gc.grad(value, a)])
    assert len(carried(f)) == 1
    np.testing.assert_array_equal(f(2.0, 1.0), [2.03125, 1.0])
