"""Random programs of loops give what the same programs written out give, to the second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.ir.sizes import evaluate
from tests import interpreter
from tests.loops.random_loops import DIMS, FLOATS, Program, WrittenOut, arrays, inputs, programs
from tests.reference import close
from tests.tiers.drawing import questions


def check(program: Program, seed: int, unknown: bool, stages: bool) -> None:
    sizes = {"a": 1 + seed % 2, "b": 2, "time": (3, 2, 4, 1, 0)[seed % 5]}
    values = arrays(seed, sizes)
    loose = inputs(dict.fromkeys(sizes) if unknown else sizes)
    tight = inputs(sizes)
    ours = program(gc, loose)
    theirs = program(WrittenOut(tight, values), tight)
    assert [y.dims for y in ours] == [y.dims for y in theirs]
    asked, given = questions(ours, [loose[name] for name in FLOATS])
    wanted, given_too = questions(theirs, [tight[name] for name in FLOATS])
    random = np.random.default_rng(seed)
    more = {x.name: random.normal(size=[evaluate(n, sizes) for n in x.shape]) for x in given_too}
    answers = gc.compile([*tight.values(), *given_too], wanted)(**values, **more)
    assume(all(np.isfinite(v).all() and np.abs(v).max(initial=0) < 1e4 for v in answers))
    compiled = gc.compile([*loose.values(), *given], asked)
    scale = max(np.abs(v).max(initial=0) for v in answers)
    for found, answer in zip(compiled(**values, **more), answers, strict=True):
        close(found, answer, scale)
    if stages:
        for name in ("expanded", "optimized"):
            slow = interpreter.run(compiled.stages[name], values | more, sizes)
            for found, answer in zip(slow, answers, strict=True):
                close(found, answer, scale)


def drawn(depth: int) -> Any:
    return given(
        program=programs(depth),
        seed=st.integers(0, 999),
        unknown=st.booleans(),
        stages=st.sampled_from([False, False, False, True]),
    )


@pytest.mark.parametrize("count", [2, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("depth", [1, 2])
def test_loops_are_their_steps_written_out(depth: int, count: int) -> None:
    settings(max_examples=count)(drawn(depth)(check))()


# ---- sizes that only the call can compare

AXES = [(name, dim) for name, dims in DIMS.items() for dim in dims]


def attempt(control: Any, program: Program, given: dict[str, gc.Tensor], values: Any) -> Any:
    """The results of a program, or None if it is refused."""
    try:
        return gc.compile(list(given.values()), program(control, given))(**values)
    except gc.GraphError:
        return None


def check_sizes(program: Program, seed: int, odd: tuple[str, str], more: int) -> None:
    """Where the steps written out are refused, as sizes disagree, the loop is.

    It may be refused alone: its body counts although it makes no step.
    """
    whole = {"a": 1 + seed % 2, "b": 2, "time": (3, 2, 4, 1)[seed % 4]}
    sizes = {name: {dim: whole[dim] for dim in dims} for name, dims in DIMS.items()}
    name, dim = odd
    sizes[name][dim] = max(0, sizes[name][dim] + more)
    given = {
        x: gc.tensor(
            x,
            {d: size if d == "time" else f"{d} of {x}" for d, size in own.items()},
            dtype="int64" if x == "n" else "float64",
        )
        for x, own in sizes.items()
    }
    random = np.random.default_rng(seed)
    values = {x: random.normal(size=list(own.values())) for x, own in sizes.items()}
    values["n"] = np.array(seed % 4)
    ours = attempt(gc, program, given, values)
    if ours is None:
        assert more, "sizes agree"
    elif more:
        theirs = attempt(WrittenOut(given, values), program, given, values)
        assert theirs is not None, "sizes disagree"
        assert [y.shape for y in ours] == [y.shape for y in theirs]


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("depth", [1, 2])
def test_sizes_that_disagree_are_refused(depth: int, count: int) -> None:
    drawing = given(
        program=programs(depth),
        seed=st.integers(0, 999),
        odd=st.sampled_from(AXES),
        more=st.sampled_from([0, 1, -1]),
    )
    settings(max_examples=count)(drawing(check_sizes))()
