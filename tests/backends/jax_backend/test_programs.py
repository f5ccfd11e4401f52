"""Whole programs on JAX: the cases, the programs of the benchmarks, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from unittest import mock

import pytest

import graphcore as gc
from benchmarks.programs import FURTHER, NAMES, Program
from tests import run_cases
from tests.backends.jax_backend.random_programs import verdicts
from tests.cases import test_harder_cases as harder
from tests.cases.test_seed_cases import CASES, EVERY
from tests.shares import shared

NOT_AS_EXACT = {"isoneutral": 1e-4}
"""Where a tanh that is wrong in its last digit decides: 1 + tanh(x) near -1."""


@pytest.fixture
def on_jax() -> Iterator[None]:
    """In this test all programs run on JAX."""
    compile = gc.compile

    def for_jax(*args: object, native: object = None, **options: object) -> object:
        return compile(*args, **{"target": "jax", **options})  # type: ignore[call-overload]

    with mock.patch.object(gc, "compile", for_jax):
        yield


@pytest.mark.usefixtures("on_jax")
@pytest.mark.parametrize("name", shared(CASES, 16))
def test_cases(name: str) -> None:
    run_cases.check(CASES[name], EVERY)


HARDER = {case["id"]: case for case in harder.CASES}
OF_ANY_SIZE = [case["id"] for case in harder.BY_NAME]


@pytest.mark.usefixtures("on_jax")
@pytest.mark.parametrize("name", shared(HARDER, 16))
def test_harder_cases(name: str) -> None:
    run_cases.check(HARDER[name], harder.CASES)


@pytest.mark.usefixtures("on_jax")
@pytest.mark.parametrize("name", shared(OF_ANY_SIZE, 16))
def test_harder_cases_of_any_size(name: str) -> None:
    run_cases.check(HARDER[name], harder.CASES, unknown=True)


@pytest.mark.parametrize("name", shared([*NAMES, *FURTHER], 6))
def test_programs_of_the_benchmarks(name: str) -> None:
    with mock.patch.object(gc, "compile", partial(gc.compile, target="jax")):
        found = Program(name).check("tiny")
    assert found.worst[1] <= NOT_AS_EXACT.get(name, found.tolerance), found.worst


@pytest.mark.parametrize("first", shared(range(0, 100, 10), 5))
@pytest.mark.parametrize("kind", ["graphs", "loops"])
def test_random_programs(kind: str, first: int) -> None:
    found = verdicts(kind, first, 10).items()
    assert [(seed, x.reason) for seed, x in found if x.kind in ("differs", "lacks")] == []


def test_a_few_random_programs_in_buckets() -> None:
    found = verdicts("graphs", 5, 2, buckets=True).items()
    assert [(seed, x.reason) for seed, x in found if x.kind in ("differs", "lacks")] == []


@pytest.mark.parametrize("first", shared(range(0, 120, 10), 6))
@pytest.mark.parametrize("kind", ["graphs", "loops", "programs"])
def test_random_programs_in_buckets(kind: str, first: int) -> None:
    """Results do not depend on padding; ops for which they would are refused by name."""
    found = verdicts(kind, first, 10, buckets=True).items()
    assert [(seed, x.reason) for seed, x in found if x.kind == "differs"] == []
