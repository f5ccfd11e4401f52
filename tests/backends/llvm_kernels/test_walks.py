"""How nests are walked: what is stored together, and in which order it is written."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels.nests import MOST_STORED, Nest
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t
from graphcore.schedule.regions import as_one

from .native import SIZES, Both, M, N, given, needs_machine_code, some

pytestmark = needs_machine_code


def behind(*columns: Node) -> Node:
    """Columns side by side along a new last axis."""
    axis = columns[0].type.ndim
    shape = (*columns[0].type.shape, 1)
    return t.concat(*[t.reshape(x, shape=shape) for x in columns], axis=axis)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool", "complex128"])
def test_short_last_axes_are_stored_as_runs(dtype: str) -> None:
    x, y = given("x", N, dtype=dtype), given("y", M, N, dtype=dtype)
    other = e.logical_not(x) if dtype == "bool" else e.add(x, x)
    made = [behind(*([x, other] * 5)[:n]) for n in (2, 3, 5, 8, 9)]
    made += [behind(y, y, y), t.transpose(behind(behind(y, y), behind(y, y)), perm=(1, 0, 3, 2))]
    made.append(t.transpose(t.expand(y, axes=(0, 1), sizes=(6, 5)), perm=(2, 3, 0, 1)))
    both, rng = Both(made), np.random.default_rng(12)
    for n in SIZES[:-1]:
        for m in (0, 1, 3):
            both.agree([some(rng, (n,), dtype), some(rng, (m, n), dtype)], (n, m), 1.0)


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_places_that_a_loop_takes_in_turn_are_not_interleaved(n: int) -> None:
    """All sizes are known, and a loop around the lanes has few steps, which are written out."""
    x = given("x", 2, 3, n, 1, 3)
    both = Both([t.transpose(x, perm=(2, 1, 3, 4, 0)), t.transpose(x, perm=(4, 1, 2, 3, 0))])
    both.agree([np.random.default_rng(13).standard_normal((2, 3, n, 1, 3))], (0, 0))


def test_no_run_is_scattered() -> None:
    x = given("x", N)
    graph = Graph((x,), (behind(x, e.negative(x), e.square(x)),))
    text = llvm_kernels.text(as_one(graph), ("n",))
    assert "store" in text
    assert "scatter" not in text


def test_a_nest_stores_so_many_values_at_most() -> None:
    x = given("x", N)
    made = tuple([e.add(x, t.expand(given(f"y{k}"), axes=(0,), sizes=(N,))) for k in range(30)])
    graph = Graph((x, *[y.inputs[1].inputs[0] for y in made]), made)
    steps = best_plan(graph, set(graph.params)).steps
    assert all(isinstance(step, Nest) and len(step.roots) <= MOST_STORED for step in steps)
    assert sum(len(step.roots) for step in steps) == len(made)


def test_products_of_few_rows_are_arithmetic() -> None:
    a, x = given("a", 2, 3), given("x", 3, N)
    u, v = given("u", N, 1), given("v", 1, M)
    twice = t.matmul(a, e.negative(x))
    made = [twice, e.add(twice, t.matmul(a, x)), t.matmul(u, v)]
    both, rng = Both(made), np.random.default_rng(13)
    assert all(
        isinstance(step, Nest)
        for step in best_plan(Graph((a, x, u, v), tuple(made)), {a, x, u, v}).steps
    )
    for n in SIZES:
        arrays = [rng.standard_normal(shape) for shape in ((2, 3), (n, 1), (1, 5), (3, n))]
        both.agree(arrays, (n, 5), 20.0, cancels=True)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool", "complex64"])
def test_matrices_are_turned_in_tiles(dtype: str) -> None:
    x, y = given("x", N, M, dtype=dtype), given("y", N, 3, M, dtype=dtype)
    turned = t.transpose(x, perm=(1, 0))
    made = [turned, t.transpose(y, perm=(2, 1, 0)), t.transpose(y, perm=(1, 2, 0))]
    deep = t.expand(y, axes=(2,), sizes=(40,))
    made += [t.transpose(deep, perm=(0, 1, 3, 2)), t.transpose(deep, perm=(3, 2, 0, 1))]
    both, rng = Both(made), np.random.default_rng(14)
    for n in SIZES[:-1]:
        for m in SIZES[:-1]:
            both.agree([some(rng, (n, m), dtype), some(rng, (n, 3, m), dtype)], (n, m))


@pytest.mark.parametrize("shape", [(0, M), (2, 0, M), (0, 3, M)])
def test_no_rows_have_no_sums(shape: tuple[Size, ...]) -> None:
    x = given("x", *shape)
    last = (len(shape) - 1,)
    both = Both([t.sum_(x, axes=last), t.sum_(e.square(x), axes=last)])
    for m in (0, 1, 9):
        both.agree([np.ones((*map(int, shape[:-1]), m))], (0, m))
