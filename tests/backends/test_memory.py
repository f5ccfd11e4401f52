"""Who shares memory with whom: what the plan says is so, in random programs and in known cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from tests.laws import random_graphs
from tests.loops import random_loops
from tests.poison import poisoned
from tests.ways import require_same_bits


def check(given: Mapping[str, gc.Tensor], ys: list[gc.Tensor], values: Mapping[str, Any]) -> None:
    """The same numbers, in both ways to run, and with memory that is poisoned when it is given up.

    A place of each result is read as well, along each dim, known at the call; the result may be
    written over afterwards.
    """
    at = gc.tensor("at", {}, dtype="int64")
    places = [y.isel({dim: at}) for y in ys for dim in y.dims if y.sizes[dim] != 0]
    inputs, outputs = [*given.values(), at], [*ys, *places, *(gc.cos(y) for y in ys)]
    values = {**values, "at": 0}
    compiled = gc.compile(inputs, outputs)
    wanted = compiled(**values)
    require_same_bits(compiled, values)
    with poisoned():
        f = gc.compile(inputs, outputs)
    for _ in range(2):
        for ours, theirs in zip(f(**values), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


COUNTS = pytest.mark.parametrize("count", [40, pytest.param(1500, marks=pytest.mark.slow)])


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_a_place_known_at_the_call_is_no_view(dtype: str) -> None:
    """Of what does not lie in order NumPy's index of one number gives one: it was written over."""
    x = gc.tensor("x", {"b": None, "c": 3})
    k = gc.tensor("k", {"a": 2}, dtype=dtype)
    v = x.T * 2
    for at in (k.isel(a=0), k.isel(a=k.isel(a=1))):
        y = v[{"c": at}]
        outputs = [y, v + 1, gc.grad((y * y).sum(), x)]
        values = {"x": np.arange(6.0).reshape(2, 3), "k": [1, 0]}
        found = gc.compile([x, k], outputs)(**values)
        np.testing.assert_array_equal(found[0], [2, 8])
        np.testing.assert_array_equal(found[2], [[0, 8, 0], [0, 32, 0]])
        check({"x": x, "k": k}, outputs, values)


@COUNTS
def test_random_programs_keep_to_the_plan(count: int) -> None:
    @settings(max_examples=count)
    @given(program=random_graphs.programs(mixed=True), seed=st.integers(0, 99))
    def run(program: random_graphs.Program, seed: int) -> None:
        inputs = random_graphs.inputs()
        y = program(inputs)
        xs = [inputs[name] for name in random_graphs.FLOATS]
        slopes = gc.grad(y.sum(), xs, disconnected="zero")
        check(inputs, [y, *slopes], random_graphs.arrays(seed, 4, 2))

    run()


@COUNTS
def test_random_loops_keep_to_the_plan(count: int) -> None:
    @settings(max_examples=count // 5)
    @given(program=random_loops.programs(2), seed=st.integers(0, 99))
    def run(program: random_loops.Program, seed: int) -> None:
        sizes = {"a": 2, "b": 3, "time": 1 + seed % 3}
        inputs = random_loops.inputs(sizes if seed % 2 else dict.fromkeys(sizes))
        ys = program(gc, inputs)
        xs = [inputs[name] for name in random_loops.FLOATS]
        slopes = gc.grad(sum(y.sum() for y in ys), xs, disconnected="zero")
        check(inputs, [*ys, *slopes], random_loops.arrays(seed, sizes))

    run()
