"""What is said of functions that do not fit a loop, and of what goes wrong in one of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

X = gc.tensor("x", {})
V = gc.tensor("v", {"time": None})
N = gc.tensor("n", {}, dtype="int64")
F = gc.tensor("f", {"row": 3}, dtype="float32")

MISFITS: dict[str, tuple[Callable[[], Any], str]] = {
    "while_loop, cond": (
        lambda: gc.while_loop(lambda a, b: a < 3, lambda s: s, (X, 1.0)),
        r"while_loop: cond is called with \(carry\), but takes \(a, b\)"
        r"(.*\n)*.*lambda carry: .*; a tuple is one argument",
    ),
    "while_loop, body": (
        lambda: gc.while_loop(lambda s: s[0] < 3, lambda a, b: (a, b), (X, 1.0), max_steps=3),
        r"while_loop: body is called with \(carry\), but takes \(a, b\)",
    ),
    "scan": (
        lambda: gc.scan(lambda c: (c, None), X, V),
        r"scan: body is called with \(carry, x\), but takes \(c\)(.*\n)*.*lambda carry, x: \.\.\.$",
    ),
    "fori_loop": (
        lambda: gc.fori_loop(0, 3, lambda s: s, X),
        r"fori_loop: body is called with \(i, carry\)",
    ),
    "fori_loop, counted at the call": (
        lambda: gc.fori_loop(0, N, lambda s: s, X),
        r"fori_loop: body is called with \(i, carry\)",
    ),
    "map": (lambda: gc.map(lambda a, b: a, (V, V), "time"), r"map: function is called with \(x\)"),
    "cond": (
        lambda: gc.cond(X > 0, lambda: X, lambda: X, X),
        r"cond: \w+ is called with \(x0\), but takes \(\)",
    ),
    "cond by place": (
        lambda: gc.cond(V > 0, lambda x: x, lambda: X, V),
        r"cond: otherwise is called with \(x0\)",
    ),
    "cond of values": (
        lambda: gc.cond(X > 0, X, 0.0),
        r"cond: then is Tensor, not a function(.*\n)*.*write lambda: \.\.\.$",
    ),
    "switch": (
        lambda: gc.switch(N, [lambda a: a, lambda: X], X),
        r"switch: branch 1 is called with \(x0\)",
    ),
    "checkpoint": (
        lambda: gc.checkpoint(lambda a: a)(X, X),
        r"checkpoint: function is called with \(x0, x1\), but takes \(a\)",
    ),
    "custom_pullback, function": (
        lambda: gc.custom_pullback(lambda a, b: a, lambda xs, y, ct: (ct,))(X),
        r"custom_pullback: function is called with \(x0\), but takes \(a, b\)",
    ),
    "custom_pullback, pullback": (
        lambda: gc.custom_pullback(lambda a: a, lambda y, ct: (ct,))(X),
        r"custom_pullback: pullback is called with \(operands, result, ct\), but takes \(y, ct\)",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_function_of_other_arguments(case: str) -> None:
    attempt, message = MISFITS[case]
    with pytest.raises(gc.GraphTypeError, match=message) as caught:
        attempt()
    assert "test_loop_messages.py" in str(caught.value)


def test_errors_inside_of_a_function_are_its_own() -> None:
    def body(carry: Any, x: Any) -> Any:
        return len(3), None  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len"):
        gc.scan(body, X, V)


def test_the_op_that_changes_a_dtype_is_named() -> None:
    wide = gc.tensor("wide", {"row": 3})
    with pytest.raises(gc.GraphTypeError) as caught:
        gc.scan(lambda c, _: ((gc.sin(c[0]), gc.exp(c[1] * wide) + 1), None), (F, F), length=2)
    message = str(caught.value)
    assert "carry[1] becomes f64[row=3], by multiply at test_loop_messages.py" in message
    assert "of f32[row=3], f64[row=3]\n" in message
    assert "carry[0] becomes" not in message


STEPS: dict[str, tuple[Callable[[], Any], str]] = {
    "scan": (
        lambda: gc.scan(lambda c, k: (c + V.isel(time=k), None), 0.0, gc.arange(5, dim="k"), "k")[
            0
        ],
        r"position 3 .*\n.*\n  in step 3 \(from 0\) of scan at test_loop_messages.py",
    ),
    "reverse": (
        lambda: gc.scan(
            lambda c, k: (c + V.isel(time=k), None), 0.0, gc.arange(5, dim="k"), "k", reverse=True
        )[0],
        r"position 4 .*\n.*\n  in step 4 \(from 0\) of scan at",
    ),
    "while_loop": (
        lambda: gc.while_loop(
            lambda s: s[0] < 9, lambda s: (s[0] + 2, s[1] + V.isel(time=s[0])), (0, 0.0)
        )[1],
        r"position 4 .*\n.*\n  in step 2 \(from 0\) of while_loop at",
    ),
    "loop in a loop": (
        lambda: gc.fori_loop(
            0, 3, lambda i, s: gc.fori_loop(0, 2, lambda k, s: s + V.isel(time=i + k), s), 0.0
        ),
        r"position 3 .*\n.*\n  in step 1 \(from 0\) of fori_loop at .*\n"
        r"  in step 2 \(from 0\) of fori_loop",
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_a_refusal_in_a_loop_says_at_which_step(case: str) -> None:
    attempt, message = STEPS[case]
    f = gc.compile([V], attempt())
    with pytest.raises(gc.GraphIndexError, match=message):
        f(np.ones(3))


def test_lengths_that_turn_negative() -> None:
    left = V.sizes["time"] - 5
    made = {
        "scan": gc.scan(lambda c, _: (c + 1, None), X, length=left)[0],
        "zeros": gc.zeros({"row": left}).sum(),
        "expand_dims": X.expand_dims(row=left).sum(),
    }
    for name, y in made.items():
        f = gc.compile([V, X], y)
        assert f(np.ones(5), 0.0) == 0
        with pytest.raises(gc.GraphValueError, match=f"{name}.* needs 0 <= time - 5 .*and -2"):
            f(np.ones(3), 0.0)
