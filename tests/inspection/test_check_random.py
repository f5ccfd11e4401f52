"""`check` on random programs: it finds the nan that an argument was given, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontend.core.trees import flatten
from tests.operations import CASES
from tests.operations.case import DEFAULT as SIZES
from tests.random_programs.running import built
from tests.random_programs.statements import drawn

EACH = 10
DEFAULT, SLOW = 10, 200


def is_finite(results: list[np.ndarray]) -> bool:
    return all(np.isfinite(y).all() for y in results if y.dtype.kind in "fc")


def check(seed: int) -> None:
    program = drawn(seed)
    try:
        (f,), _ = built(program, [None])
        arguments = [np.array(x) for x in program.arguments(0)]
        healthy = is_finite(f(*arguments))
    except Exception:  # it is refused, as others are that the eager reference refuses as well
        return
    assert (f.check(*arguments) is None) == healthy
    if not healthy:
        return
    assert not any(fault.outputs for fault in f.check(*arguments, any=True))
    rng = np.random.default_rng(seed)
    for given, x in zip(program.inputs, arguments, strict=True):
        if x.dtype.kind == "f" and x.size:
            at = tuple(int(rng.integers(size)) for size in x.shape)
            before, x[at] = x[at], np.nan
            try:
                finite = is_finite(f(*arguments))
            except Exception:  # a matrix of nan may be refused
                finite = None
            if finite is not None:
                fault = f.check(*arguments)
                assert (fault is None) == finite
                if fault is not None and "skipna=True" not in program.text():  # else it is left out
                    assert (fault.op, [*fault.place.values()]) == (f"input {given.name}", [*at])
            x[at] = before


MORE = [pytest.param(x, marks=pytest.mark.slow) for x in range(DEFAULT, DEFAULT + SLOW, EACH)]


@pytest.mark.parametrize("first", [*range(0, DEFAULT, EACH), *MORE])
def test_a_nan_in_an_argument_is_found(first: int) -> None:
    for seed in range(first, first + EACH):
        check(seed)


EDGES = np.array(
    [0, 1, -1, 2, -2, 0.5, 1e30, -1e30, 1e308, -1e308, 1e-320, np.inf, -np.inf, np.nan]
)
"""Values at which functions are nan or infinite."""


def derivative(ys: list[gc.Tensor], xs: list[gc.Tensor]) -> list[gc.Tensor]:
    """The derivative of all results by the first input, if there is one."""
    floats = [y for y in ys if y.dtype.kind == "f"]
    try:
        return [gc.grad(sum(gc.abs(y).sum() for y in floats), xs[0])]
    except gc.GraphError:
        return []


def check_function(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(0)
    xs = [
        gc.tensor(f"x{i}", {dim: SIZES[dim] for dim in given.dims.split()}, dtype=given.dtype)
        for i, given in enumerate(case.inputs)
    ]
    ys, _ = flatten(case.ours(*xs), "results")
    f = gc.compile(xs, [*ys, *derivative(ys, xs)])
    for some in (EDGES[:-3], EDGES):
        arguments = [given.draw(rng, SIZES) for given in case.inputs]
        for x in arguments:
            if x.dtype.kind == "f":
                edges = rng.random(x.shape) < 0.2
                x[edges] = rng.choice(some, edges.sum())
        try:
            healthy = is_finite(f(*arguments))
        except gc.GraphError:  # a matrix of nan is refused
            continue
        fault = f.check(*arguments)
        assert (fault is None) == healthy
        assert str(f.check(*arguments, any=True))
        if fault is not None:
            assert fault.outputs
            assert fault.cause
            assert "rounding" not in fault.cause


@pytest.mark.parametrize("name", ["betainc", "where", "cumsum", "median"])
def test_functions_at_their_edges(name: str) -> None:
    check_function(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_public_function_at_its_edges(name: str) -> None:
    check_function(name)
