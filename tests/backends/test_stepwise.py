"""Long programs run step by step: the same results, errors and memory as the generated source."""

from __future__ import annotations

import re
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks import compile_time
from benchmarks.programs import NAMES, Program
from graphcore.backends.numpy_backend.running import LONG, Generated, Stepwise
from tests.backends.test_failures import OUTSIDE
from tests.ways import WAYS, require_same_bits, run_as


def chain(nodes: int) -> gc.Compiled:
    inputs, y = compile_time.chain(nodes)
    return gc.compile(inputs, [y, *gc.grad(y, inputs)])


@pytest.mark.parametrize("name", NAMES)
def test_a_program_gives_the_same_bits_in_both_ways(name: str) -> None:
    program = Program(name)
    compiled = program.make("graphcore")
    assert isinstance(compiled, gc.Compiled)
    require_same_bits(compiled, program.module.inputs("tiny"))


def test_the_source_runs_as_it_is_shown() -> None:
    """Comments aside it is the text that Python compiles."""
    compiled = Program("kalman").make("graphcore")
    assert isinstance(compiled, gc.Compiled)
    shown = [re.sub(r"(?<=\S)  # .*", "", line) for line in compiled.source.splitlines()]
    assert shown == compiled._function.running.source.text.splitlines()
    assert "kalman.py:" in compiled.source


def test_long_programs_are_not_compiled_by_python() -> None:
    """What Python compiles of them are blocks; the source is made when somebody asks for it."""
    long = chain(LONG)._function
    assert isinstance(long.running, Stepwise)
    assert long.running.source.text == ""
    assert len(long.source.splitlines()) > LONG
    assert isinstance(chain(20)._function.running, Generated)


def test_one_long_program_serves_every_size() -> None:
    compiled = chain(LONG)
    for rows in (3, 0, 1, 1000, 3, 7, 8, 9):
        values = np.random.default_rng(rows).normal(size=(2, rows))
        require_same_bits(compiled, {"x": values[0], "k": values[1]})


def test_threads_share_a_long_function() -> None:
    f = chain(LONG)
    inputs = [np.random.default_rng(i).normal(size=(2, 100 + i % 3)) for i in range(6)]
    expected = [f(*x) for x in inputs]
    wrong: list[bool] = []

    def work(i: int) -> None:
        calls = [f(*inputs[i]) for _ in range(20)]
        wrong.extend(y for call in calls for y in map(np.array_equal, call, expected[i]) if not y)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert not wrong


def test_a_function_keeps_no_argument_and_no_result() -> None:
    f, x = chain(LONG), np.ones(10)
    y = f(x, x)[1]
    alive = weakref.ref(x), weakref.ref(y)
    del x, y
    assert [ref() for ref in alive] == [None, None]


def message(compiled: gc.Compiled, way: Any, values: dict[str, Any]) -> str:
    with pytest.raises(gc.GraphError) as refused:
        run_as(compiled, way)(values)
    return str(refused.value)


@pytest.mark.parametrize("name", OUTSIDE)
def test_errors_are_worded_alike(name: str) -> None:
    """By a step as by a line of generated source: op, position, dim, sizes, line and cure."""
    x, y = gc.tensor("x", {"b": None, "c": 4}), gc.tensor("y", {"b": None})
    n, k = gc.tensor("n", {"b": None}, dtype="int64"), gc.tensor("k", {}, dtype="int64")
    f = gc.compile([x, y, n, k], OUTSIDE[name](x, y, n, k))
    values = {"x": np.ones((3, 4)), "y": np.ones(3), "n": [0, 1, 9], "k": 9}
    first, second = (message(f, way, values) for way in WAYS)
    assert first == second
    assert " 9 " in first


def test_errors_in_loops_name_the_step() -> None:
    x, n = gc.tensor("x", {"t": 3}), gc.tensor("n", {"t": 3}, dtype="int64")
    follow = lambda at, _: (n.isel(t=at), gc.exp(x.isel(t=at)))
    _, ys = gc.scan(follow, gc.constant(0), length=3, dim="t")
    f = gc.compile([x, n], ys * 2)
    for way in WAYS:
        said = message(f, way, {"x": [1.0, 2.0, 3.0], "n": [1, 7, 0]})
        assert "isel at test_stepwise.py:" in said
        assert "position 7 is outside" in said
        assert "in step 2 (from 0) of scan" in said


def test_sizes_that_a_loop_finds_are_sizes_of_steps() -> None:
    """The steps behind a loop ask it for its trip count, and for all that it has recorded."""
    x = gc.tensor("x", {"r": None})
    y = gc.while_loop(lambda c: c.sum() < 100.0, lambda c: gc.exp(0.1 * c) * c * x, x)
    compiled = gc.compile([x], [y, gc.grad(y.sum(), x)])
    assert "while True" in compiled.source
    for values in ([1.5, 2.0], [70.0, 40.0], [3.0]):
        require_same_bits(compiled, {"x": np.array(values)})
