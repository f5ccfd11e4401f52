"""Sizes that are the values of integer inputs, and numbers of steps given at the call."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph

N = gc.tensor("n", {}, dtype="int64")
X = gc.tensor("x", {"row": 3})
A = np.array([1.0, 2.0, 4.0])

MAKERS: dict[str, Any] = {
    "arange": (lambda n: gc.arange(n, dim="t"), np.arange),
    "arange from": (lambda n: gc.arange(2, n, dim="t"), lambda n: np.arange(2, n)),
    "zeros": (lambda n: gc.zeros({"t": n}), np.zeros),
    "full": (lambda n: gc.full({"t": n}, X.sum()), lambda n: np.full(n, 7.0)),
    "linspace": (lambda n: gc.linspace(0, 1, n, dim="t"), lambda n: np.linspace(0, 1, n)),
    "eye": (lambda n: gc.eye({"t": n, "u": n}), np.eye),
    "expand_dims": (lambda n: X.expand_dims(t=n), lambda n: np.tile(A, (n, 1))),
    "one_hot": (
        lambda n: gc.one_hot(gc.constant([0, 2], "t"), n),
        lambda n: 1.0 * (np.array([[0], [2]]) == np.arange(n)),
    ),
    "bincount": (
        lambda n: gc.bincount(gc.constant([0, 0], "t"), n),
        lambda n: np.bincount([0, 0], minlength=n),
    ),
    "hann": (lambda n: gc.signal.hann(n, dim="t"), None),
    "scan": (
        lambda n: gc.scan(lambda c, _: (c * X.sum() / 7 + 1, c), 0.0, length=n)[1],
        lambda n: np.arange(float(n)),
    ),
    "size": (lambda n: gc.zeros({"t": n}).sizes["t"] * X, lambda n: n * A),
}

LONG, ROW = gc.tensor("long", {"t": None}), np.arange(12.0)
K = gc.tensor("k", {}, dtype="int64")


def shifted(a: Any, k: int) -> Any:
    moved = np.roll(a, k)
    moved[: max(k, 0)] = np.nan
    moved[len(a) + min(k, 0) :] = np.nan
    return moved


ARITHMETIC: dict[str, Any] = {
    "zeros": (lambda n, k: gc.zeros({"a": 2 * n + 1}), lambda a, n, k: np.zeros(2 * n + 1)),
    "arange": (
        lambda n, k: gc.arange(n, 5 * n, k, dim="a"),
        lambda a, n, k: np.arange(n, 5 * n, k),
    ),
    "linspace": (
        lambda n, k: gc.linspace(0, 1, n + 2, dim="a"),
        lambda a, n, k: np.linspace(0, 1, n + 2),
    ),
    "min, max, abs": (
        lambda n, k: gc.zeros({"a": gc.maximum(n, k) + abs(n - k), "b": gc.minimum(n, k) ** 2}),
        lambda a, n, k: np.zeros((max(n, k) + abs(n - k), min(n, k) ** 2)),
    ),
    "slice": (lambda n, k: LONG[k : n + k], lambda a, n, k: a[k : n + k]),
    "step": (lambda n, k: LONG[n::k], lambda a, n, k: a[n::k]),
    "head": (lambda n, k: LONG.head(t=n - 1), lambda a, n, k: a[: n - 1]),
    "tail": (lambda n, k: LONG.tail(n // 2), lambda a, n, k: a[12 - n // 2 :]),
    "thin": (lambda n, k: LONG.thin(t=k + 1), lambda a, n, k: a[:: k + 1]),
    "roll": (lambda n, k: LONG.roll(t=k - 2 * n), lambda a, n, k: np.roll(a, k - 2 * n)),
    "shift": (lambda n, k: LONG.shift(t=n - 2 * k), lambda a, n, k: shifted(a, n - 2 * k)),
    "top_k": (lambda n, k: gc.top_k(LONG, n - 1, "t").values, lambda a, n, k: a[::-1][: n - 1]),
    "repeat": (lambda n, k: gc.repeat(LONG, k + 1, "t"), lambda a, n, k: np.repeat(a, k + 1)),
    "tile": (lambda n, k: gc.tile(LONG, t=k + 1), lambda a, n, k: np.tile(a, k + 1)),
    "pad": (
        lambda n, k: gc.pad(LONG, {"t": (n - 1, 2 * k)}, constant_values=0.0),
        lambda a, n, k: np.pad(a, (n - 1, 2 * k)),
    ),
    "windows": (
        lambda n, k: gc.windows(LONG, {"t": n + 1}, "w"),
        lambda a, n, k: np.lib.stride_tricks.sliding_window_view(a, n + 1),
    ),
    "scan": (
        lambda n, k: gc.scan(lambda c, _: (c + 1, c), 0.0, length=n * k)[1],
        lambda a, n, k: np.arange(float(n * k)),
    ),
    "segment_sum": (
        lambda n, k: gc.segment_sum(LONG, gc.constant(np.arange(12) % 2, "t"), n + k, dim="t"),
        lambda a, n, k: np.bincount(np.arange(12) % 2, a, n + k),
    ),
    "irfft": (
        lambda n, k: gc.fft.irfft(gc.fft.rfft(LONG, "t"), "t", n=2 * n),
        lambda a, n, k: np.fft.irfft(np.fft.rfft(a), 2 * n),
    ),
    "unstack": (
        lambda n, k: LONG.unstack(t={"a": k + 1, "b": None}),
        lambda a, n, k: a.reshape(k + 1, -1),
    ),
    "diag": (lambda n, k: gc.diag(LONG, "t", offset=n - 1), lambda a, n, k: np.diag(a, n - 1)),
    "nonzero": (
        lambda n, k: gc.nonzero(LONG, n + k)["t"],
        lambda a, n, k: np.flatnonzero(a)[: n + k],
    ),
    "histogram": (
        lambda n, k: gc.histogram(LONG, n + k).counts,
        lambda a, n, k: np.histogram(a, n + k)[0],
    ),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_of_inputs_is_a_size(name: str) -> None:
    ours, theirs = ARITHMETIC[name]
    f = gc.compile([LONG, N, K], ours(N, K), native=name in ("step", "roll", "zeros"))
    for n, k in ((3, 1), (4, 2), (2, 1)):
        np.testing.assert_allclose(f(ROW, n, k), theirs(ROW, n, k), rtol=1e-12, atol=1e-12)


def test_results_that_may_wrap_around_are_computed() -> None:
    small = gc.tensor("n", {}, dtype="int8")
    assert gc.zeros({"t": gc.constant(3)}).shape == (3,)
    assert gc.zeros({"a": small.astype("int64") + 1}).shape == gc.zeros({"a": N + 1}).shape
    f = gc.compile([small], gc.zeros({"a": small + 1}), native=False)
    assert f(126).shape == (127,)
    with pytest.raises(gc.GraphValueError, match="a computed size is -128"):
        f(127)


def test_derivatives_are_checked_where_an_input_is_a_size() -> None:
    s = gc.tensor("s", {})
    y = gc.scan(lambda c, _: (1.1 * c, None), s, length=N)[0]
    assert gc.check_grads(y, s, {s: 1.0, N: 3}).error < 1e-6
    assert gc.check_grads(y, s, {"s": 1.0, "n": 3}).error < 1e-6


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_one_program_serves_all_values(name: str, native: bool) -> None:
    ours, theirs = MAKERS[name]
    f = gc.compile([X, N], ours(N), native=native)
    for n in (3, 1, 3, 5) if name == "bincount" else (3, 0, 1, 5):
        got = f(A, np.array(n))
        if theirs is not None:
            np.testing.assert_array_equal(got, theirs(n))
        assert name in ("arange from", "size") or n in got.shape


def test_values_and_dims_of_one_name_are_different_sizes() -> None:
    x = gc.tensor("x", {"n": None})
    f = gc.compile([x, N], [gc.arange(N, dim="t").sum(), x.sizes["n"] * x], native=False)
    total, scaled = f(np.ones(2), 5)
    assert total == 10
    np.testing.assert_array_equal(scaled, [2.0, 2.0])


def test_sizes_are_compared_and_checked_at_the_call() -> None:
    y = gc.tensor("y", {"t": None}) + gc.zeros({"t": N})
    f = gc.compile([gc.tensor("y", {"t": None}), N], y, native=False)
    assert f(np.ones(4), 4).shape == (4,)
    with pytest.raises(gc.GraphError, match="n = 3, the value of input 'n'"):
        f(np.ones(4), 3)
    for wrong in (-1, 2**40 + 1):
        with pytest.raises(gc.GraphError, match=f"input 'n' is {wrong}, but is the size of a dim"):
            f(np.ones(4), wrong)
        with pytest.raises(gc.GraphError, match=f"input 'n' is {wrong}, but is the size of a dim"):
            gc.compile([N], gc.zeros({"t": N}), native=False)(wrong)
    steps, _ = gc.scan(lambda c, x: (c + x, None), 0.0, X, dim="row", length=N)
    with pytest.raises(gc.GraphError, match="3"):
        gc.compile([X, N], steps, native=False)(A, 2)


@pytest.mark.parametrize("native", [False, True])
def test_an_input_of_a_size_that_another_gives_by_value(native: bool) -> None:
    y = gc.tensor("y", {"t": N})
    f = gc.compile([y, N], [y * 2, gc.arange(N, dim="t")], native=native)
    np.testing.assert_array_equal(f(np.ones(2), np.array(2))[1], [0, 1])
    with pytest.raises(gc.GraphError, match="dim 't' of input 'y' has size 2, but must have n = 5"):
        f(np.ones(2), np.array(5))
    with pytest.raises(gc.GraphError, match="needs the value of the input 'n' as a size"):
        gc.compile([y], y)
    wide = gc.tensor("wide", {"run": None, "t": None})
    many = gc.vectorize(y + gc.arange(N, dim="t"), {y: wide})
    f = gc.compile([wide, N], many, native=native)
    np.testing.assert_array_equal(f(np.ones((1, 2)), np.array(2)), [[1, 2]])
    with pytest.raises(gc.GraphError, match="n = 5, the value of input 'n'"):
        f(np.ones((1, 2)), np.array(5))


@pytest.mark.parametrize("mode", ["grad", "pushforward"])
def test_derivatives_of_a_number_of_steps_given_at_the_call(mode: str) -> None:
    s = gc.tensor("s", {})
    last, _ = gc.scan(lambda c, _: (gc.sin(c) * s, None), s, length=N, dim="step")
    dy = gc.grad(last, s) if mode == "grad" else gc.pushforward(last, s, s * 0 + 1)
    f = gc.compile([s, N], [last, dy], native=False)
    for n in (0, 1, 4):
        _, slope = f(0.7, n)
        h = 1e-6
        difference = (f(0.7 + h, n)[0] - f(0.7 - h, n)[0]) / (2 * h)
        np.testing.assert_allclose(slope, difference, rtol=1e-6)
    many = gc.tensor("many", {"run": None})
    wide = gc.compile([many, N], gc.vectorize(dy, {s: many}), native=False)
    np.testing.assert_allclose(wide(np.array([0.7, 0.2]), 4)[0], f(0.7, 4)[1])


def test_a_value_is_kept_by_pickles_and_json() -> None:
    f = gc.compile([X, N], X.expand_dims(t=N) * 2, native=False)
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again(A, 2), f(A, 2))
    graph = f.stages["named"]
    assert Graph.from_json(graph.to_json()) == graph
    assert "t=n" in str(graph.outputs[0].type)


def test_values_at_once_and_functions() -> None:
    assert gc.arange(N, dim="t").sum().eval(n=4) == 6
    assert gc.evaluate(gc.arange(N, dim="t").sum(), {N: 4}) == 6

    @gc.function(start=(), steps=gc.tensor("any", {}, dtype="int64"))
    def powers(start: Any, steps: Any) -> Any:
        return gc.scan(lambda c, _: (2 * c, c), start, length=steps, dim="step")[1]

    np.testing.assert_array_equal(powers(1.0, 4), [1, 2, 4, 8])
    np.testing.assert_array_equal(powers(3.0, 1), [3])
    assert len(powers.compiled(1.0, 2).stages) >= 6
