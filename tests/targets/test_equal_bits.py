"""Equal calls give equal bits: from the first call to the last, in threads, and after a pickle."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import FURTHER, NAMES, Program
from tests.random_programs.joining import join_of
from tests.random_programs.running import results, tensors
from tests.targets.drawing import KINDS

pytestmark = [pytest.mark.by_rule, pytest.mark.usefixtures("generated_python")]

CALLS, THREADS = 400, 4


def bits(results: Sequence[Any]) -> bytes:
    """What results are, to the last bit."""
    return b"".join([np.ascontiguousarray(y).tobytes() for y in results])


def changed(compiled: gc.Compiled, arguments: Sequence[Any], calls: int = CALLS) -> list[str]:
    """The ways in which calls give other bits than the first one."""
    call: Callable[[gc.Compiled], bytes] = lambda f: bits(f._values(*arguments))
    first, again = call(compiled), pickle.loads(pickle.dumps(compiled))
    found = [f"call {at}" for at in range(1, calls) if call(compiled) != first][:1]
    with ThreadPoolExecutor(THREADS) as pool:
        each = pool.map(lambda _: [call(compiled) for _ in range(calls // THREADS)], range(THREADS))
        found += ["in threads"] * any(one != first for some in each for one in some)
    return found + ["after a pickle"] * (call(again) != first)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *FURTHER])
def test_programs(name: str) -> None:
    program = Program(name)
    compiled = program.module.program()
    given = program.module.inputs("tiny")
    arguments = [given[param.name] for param in compiled._boundary.params]
    assert changed(compiled, arguments) == []


@pytest.mark.parametrize(
    ("kind", "count", "calls"),
    [
        ("graphs", 12, 40),
        *[pytest.param(kind, 50, CALLS, marks=pytest.mark.slow) for kind in KINDS],
    ],
)
def test_random_programs(kind: str, count: int, calls: int) -> None:
    found = {}
    for seed in range(count):
        program = KINDS[kind](seed)
        try:
            given = tensors(program)
            outputs = results(program, given)
            compiled = gc.compile([*given.values()], outputs, join=join_of(program))
            arguments = program.arguments(0)
            compiled._values(*arguments)
        except gc.GraphError:
            continue
        if wrong := changed(compiled, arguments, calls):
            found[seed] = str(compiled.target), wrong
    assert found == {}
