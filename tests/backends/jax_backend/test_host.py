"""Functions of users and prints: what they are given, and what is said of those that fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc

x = gc.tensor("x", {"b": None, "k": 3})
LARGE = 300_000
"""So many numbers are computed in a thread of XLA's, whose settings are its own."""


def targets(inputs: Any, outputs: Any) -> list[Any]:
    return [gc.compile(inputs, outputs, target=name) for name in ("numpy", "jax")]


slow = pytest.mark.slow
MORE = ("f4", "i8", "u8", "i4", "?", "c16", "c8")


@pytest.mark.parametrize("dtype", ["f8", *[pytest.param(x, marks=slow) for x in MORE]])
def test_every_bit_goes_to_a_function_and_back(dtype: str) -> None:
    random = np.random.default_rng(0)
    given = random.integers(0, 2**62, LARGE * 2).view("f8")[:LARGE]
    values = (given * (1 + 2j) if dtype[0] == "c" else given.view("i8")).astype(dtype)
    seen = []

    def keep(a: np.ndarray) -> np.ndarray:
        seen.append(a)
        return a

    y = gc.tensor("y", {"n": None}, dtype=dtype)
    f = gc.compile([y], gc.callback(keep, result=y)(y), target="jax")
    for array in (values, values[:3], values[:0]):
        np.testing.assert_array_equal(f(array), array)
        np.testing.assert_array_equal(seen.pop(), array)


def test_what_a_function_raises_is_said_as_by_numpy_calls() -> None:
    def turned(a: np.ndarray) -> np.ndarray:
        if a[0] > 5:
            raise ValueError("too large")
        return a[::-1]

    turn = gc.callback(turned, result=gc.zeros({"k": 3}), dims="k")
    in_steps = gc.scan(lambda c, e: (turn(e), c), gc.zeros({"k": 3}), x, dim="b")
    for outputs in (turn(x), in_steps):
        said = []
        for f in targets([x], outputs):
            f(np.ones((2, 3)))
            with pytest.raises(gc.GraphValueError, match="too large") as caught:
                f(np.arange(9.0).reshape(3, 3))
            assert isinstance(caught.value.__cause__, ValueError)
            said.append(str(caught.value))
        assert said[0] == said[1]


@slow
def test_prints_come_in_the_order_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    y = gc.print(x, "all")
    last, steps = gc.scan(lambda c, e: (e, gc.print(c, "carry")), gc.zeros({"k": 3}), y, dim="b")
    shown = []
    for f in targets([x], [gc.print(last, "last"), steps]):
        f(np.arange(9.0).reshape(3, 3) / 7)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].count("carry") == 3
