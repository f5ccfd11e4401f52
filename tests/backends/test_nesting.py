"""Loops and branches in one another: how many blocks Python nests is no limit of programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import nesting

Body = Callable[[gc.Tensor], gc.Tensor]


def counted(body: Body, x: gc.Tensor) -> gc.Tensor:
    return gc.fori_loop(0, 1, lambda i, s: body(s) + i, x)


def walked(body: Body, x: gc.Tensor) -> gc.Tensor:
    last, sums = gc.scan(lambda s, _: (body(s), s.sum()), x, length=1)
    return last + 0 * sums.sum()


def repeated(body: Body, x: gc.Tensor) -> gc.Tensor:
    """One step: the step counts down what is left to do."""
    done = lambda state: (body(state[0]), state[1] - 1.0)
    return gc.while_loop(lambda state: state[1] > 0, done, (x, x.sum() * 0 + 1))[0]


def chosen(body: Body, x: gc.Tensor) -> gc.Tensor:
    return gc.cond(x.sum() > 0, body, lambda s: s * 100, x)


def stopped(body: Body, x: gc.Tensor) -> gc.Tensor:
    return gc.checkpoint(body)(x)


def nest(depth: int, form: Any, x: gc.Tensor) -> gc.Tensor:
    if depth == 0:
        return gc.sin(x)
    return form(lambda s: nest(depth - 1, form, s) * 1.01, x)


@pytest.fixture(autouse=True)
def frames() -> Iterator[None]:
    """Bodies are traced in one another: Python's limit of frames is the user's to raise."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    yield
    sys.setrecursionlimit(before)


FORMS = pytest.mark.parametrize("form", [counted, walked, repeated, chosen, stopped])


@FORMS
@pytest.mark.parametrize("depth", [16, 17, 21, pytest.param(100, marks=pytest.mark.slow)])
def test_deep_programs_run(form: Any, depth: int) -> None:
    x = gc.tensor("x", {"a": 3})
    value = np.array([0.1, 0.2, 0.3])
    found = gc.compile([x], nest(depth, form, x))(value)
    np.testing.assert_allclose(found, np.sin(value) * 1.01**depth, rtol=1e-12)


@FORMS
def test_deep_programs_are_differentiated(form: Any) -> None:
    x = gc.tensor("x", {"a": None})
    value = np.array([0.1, 0.2, 0.3])
    y = nest(21, form, x)
    found = gc.compile([x], [y, gc.grad(y.sum(), x)])(value)
    np.testing.assert_allclose(found[0], np.sin(value) * 1.01**21, rtol=1e-12)
    np.testing.assert_allclose(found[1], np.cos(value) * 1.01**21, rtol=1e-12)


def test_an_error_in_a_deep_loop_names_its_line_and_sizes() -> None:
    x, k = gc.tensor("x", {"a": None}), gc.tensor("k", {}, dtype="int64")

    def body(depth: int, s: gc.Tensor) -> gc.Tensor:
        if depth == 0:
            return s + x.isel(a=k)
        return gc.fori_loop(0, 1, lambda i, s: body(depth - 1, s * (i + k)), s)

    f = gc.compile([x, k], body(40, x.sum()))
    assert "def block" in f.source
    assert f(np.arange(3.0), 1) == 4.0
    with pytest.raises(
        gc.GraphIndexError, match=r"position 7 is outside dim 'a', which has size 3"
    ):
        f(np.arange(3.0), 7)


def test_what_a_block_reads_and_others_read_of_it() -> None:
    """Blocks of two levels, cut at the first: names that come before, and after."""
    lines = ["def run(x):", "    a = x", "    b = 1"]
    lines += [f"{'    ' * depth}for i{depth} in range(1):" for depth in range(1, 36)]
    inner = "    " * 36
    lines += [f"{inner}c = plus(a, b)", f"{inner}b += c", "    return b, i1"]
    rows = nesting.shallow(nesting.rows_of(lines), {"plus"})
    heads = [row.text for row in rows if row.text.startswith("def")]
    assert heads == ["def run(x):", "def block33_0(a, b):", "def block17_0(a, b):"]
    text = "\n".join("    " * row.level + row.text for row in rows)
    scope: dict[str, Any] = {"plus": lambda a, b: a + b}
    exec(text, scope)
    assert scope["run"](5) == (7, 0)
    assert max(row.level for row in rows) <= nesting.DEEPEST + 1
    assert [row.number for row in rows if row.text.startswith("c =")] == [39]
