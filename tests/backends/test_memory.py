"""Who shares memory with whom: what the plan says is so, in random programs and in known cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.poison import poisoned
from tests.random_programs.deriving import derived
from tests.random_programs.drawing import Program, Skip
from tests.random_programs.running import expected, results, tensors
from tests.random_programs.shrinking import held, require
from tests.shares import parts


def check(given: Mapping[str, gc.Tensor], ys: list[gc.Tensor], values: Mapping[str, Any]) -> None:
    """The same bits in every call, and the same numbers with memory poisoned when it is given up.

    A place of each result is read as well, along each dim, known at the call; the result may be
    written over afterwards.
    """
    at = gc.tensor("at", {}, dtype="int64")
    places = [y.isel({dim: at}) for y in ys for dim in y.dims if y.sizes[dim] != 0]
    inputs, outputs = [*given.values(), at], [*ys, *places, *(gc.cos(y) for y in ys)]
    values = {**values, "at": 0}
    compiled = gc.compile(inputs, outputs)
    wanted = compiled(**values)
    with poisoned():
        f = gc.compile(inputs, outputs)
    for _ in range(2):
        for again, ours, theirs in zip(compiled(**values), f(**values), wanted, strict=True):
            assert again.tobytes() == theirs.tobytes()
            np.testing.assert_array_equal(ours, theirs)


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


@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [
        *[("plain", 0, 40), ("loops", 0, 8)],
        *parts("plain", 40, 1460),
        *parts("loops", 8, 292),
    ],
)
def test_random_programs_keep_to_the_plan(kind: str, first: int, count: int) -> None:
    def run(program: Program) -> None:
        if any(not y.data.size for y in expected(program, 0)):
            raise Skip  # there is no place to read
        given = tensors(program)
        try:
            check(given, results(program, given), program.values(0))
        except (gc.GraphError, gc.GraphIndexError) as refused:  # of sizes of a branch not taken
            raise Skip from refused

    require(held(run), (derived(seed, kind) for seed in range(first, first + count)))
