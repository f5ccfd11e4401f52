"""Loops record the parts of their results that are read."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir import Graph, Size
from graphcore.ops.control import LOOPS, Loop

X = gc.tensor("x", {"n": None})
Y = gc.tensor("y", {"t": None})


def recorded(f: gc.Compiled) -> list[tuple[Size, ...]]:
    """The shapes of what the steps of the loops of a program record."""
    graph: Graph = f.stages["optimized"]
    loops = [Loop.of(node) for node in graph.every_node() if node.op in LOOPS]
    return [y.type.shape for loop in loops for y in loop.results]


def agree(f: gc.Compiled, results: object) -> None:
    """The program gives what NumPy calls of the graph before any pass for speed give."""
    plain = gc.compile([X, Y], results, target="numpy")
    rng = np.random.default_rng(0)
    for n, steps in ((1, 1), (3, 7), (6, 2), (4, 0)):
        given = rng.random(n), rng.random(steps)
        for found, wanted in zip(f(*given), plain(*given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("target", ["native", "numpy"])
def test_a_derivative_reads_an_element_of_a_state(target: str) -> None:
    def step(state: gc.Tensor, y: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        first = state[{"n": 0}]
        return state.roll(n=-1).at[{"n": -1}].set(0.9 * first + y), first * y**2

    value = gc.scan(step, X, Y, dim="t")[1].sum()
    results = [value, *gc.grad(value, [X, Y])]
    f = gc.compile([X, Y], results, target=target)
    assert set(recorded(f)) <= {(), (1,)}
    agree(f, results)
    gc.check_grads(value, [X, Y], {X: np.linspace(0.5, 1, 3), Y: np.ones(4)})


def test_what_is_read_as_a_whole_too_is_recorded_as_a_whole() -> None:
    states = gc.scan(lambda state, y: (gc.sin(state) * y, state), X, Y, dim="t")[1]
    size = X.sizes["n"]
    first, rest = states[{"n": 0}].sum(), states[{"n": slice(1, None)}].sum("t")
    whole = states[{"n": slice(0, size)}].sum()
    for results, parts in (
        ([first], True),
        ([first, rest, states], False),
        ([first, whole], False),
    ):
        f = gc.compile([X, Y], results)
        assert all(shape in ((), (1,)) for shape in recorded(f)) is parts
        agree(f, results)


def test_slices_of_steps_are_no_parts_of_each() -> None:
    """The steps in reverse, and every other step."""
    states = gc.scan(lambda state, y: (gc.sin(state) * y, state), X, Y, dim="t")[1]
    for steps in (slice(None, None, -1), slice(None, None, 2), slice(1, None)):
        results = [states[{"t": steps, "n": 0}], states[{"t": steps, "n": slice(0, 1)}]]
        f, whole = gc.compile([X, Y], results), gc.compile([X, Y], states)
        given = np.linspace(0.5, 1, 3), np.linspace(1, 2, 5)
        wanted = whole(*given)[steps]
        for found, part in zip(f(*given), (wanted[:, 0], wanted[:, :1]), strict=True):
            np.testing.assert_array_equal(found, part)


def test_a_part_of_what_a_loop_of_unknown_length_records() -> None:
    limit = gc.tensor("limit", {})
    step = lambda x: gc.concat([x[{"n": slice(1, None)}], gc.exp(-x[{"n": slice(0, 1)}])], "n")
    last = gc.while_loop(lambda x: x[{"n": 0}] < limit, step, X)
    f = gc.compile([X, limit], [last.sum(), gc.grad(last.sum(), X)])
    plain = gc.compile([X, limit], [last.sum(), gc.grad(last.sum(), X)], target="numpy")
    for found, wanted in zip(f(np.arange(9) / 9, 0.8), plain(np.arange(9) / 9, 0.8), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
