"""Random programs of loops give what the same programs written out give, to the second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.ir.sizes import evaluate
from tests import interpreter
from tests.random_loops import FLOATS, Program, WrittenOut, arrays, inputs, programs
from tests.reference import close

Tensors = list[gc.Tensor]


def partners(prefix: str, xs: Tensors) -> Tensors:
    """A tensor of the same dims for each."""
    return [gc.tensor(f"{prefix} {i}", x.sizes) for i, x in enumerate(xs)]


def questions(ys: Tensors, xs: Tensors) -> tuple[Tensors, Tensors]:
    """Values, derivatives of first and of second order; and the cotangents and tangents."""
    cts, vs, ws = partners("ct", ys), partners("v", xs), partners("w", xs)
    zero: Any = {"disconnected": "zero"}
    back = gc.pullback(ys, xs, cts, **zero)
    forth = gc.pushforward(ys, xs, vs, **zero)
    second = [
        *gc.pushforward(back, xs, vs, **zero),
        *gc.pullback(back, xs, ws, **zero),
        *gc.pullback(forth, xs, cts, **zero),
        *gc.pushforward(forth, xs, ws, **zero),
    ]
    return [*ys, *back, *forth, *second], [*cts, *vs, *ws]


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


def limits(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def drawn(depth: int) -> Any:
    return given(
        program=programs(depth),
        seed=st.integers(0, 999),
        unknown=st.booleans(),
        stages=st.sampled_from([False, False, False, True]),
    )


@pytest.mark.parametrize("count", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("depth", [1, 2])
def test_loops_are_their_steps_written_out(depth: int, count: int) -> None:
    limits(count)(drawn(depth)(check))()
