"""Cases of our own, harder than the first ones: tests/cases/harder_cases.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import run_cases

CASES = run_cases.load(Path(__file__).parent / "harder_cases.json")


def params(cases: list[run_cases.Case]) -> list[Any]:
    """Derivatives of third order are slow tests."""
    return [
        pytest.param(case, id=case["id"], marks=pytest.mark.slow if ".third" in case["id"] else ())
        for case in cases
    ]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: run_cases.Case) -> None:
    run_cases.check(case, CASES)


BY_NAME = [case for case in CASES if case["seed"] == "instances"]


@pytest.mark.parametrize("case", params(BY_NAME))
def test_case_of_any_size(case: run_cases.Case) -> None:
    run_cases.check(case, CASES, unknown=True)


def test_instances_mix_in_few_cases() -> None:
    """`per` refuses an inner derivative of a sum over instances, though its terms are their own."""
    mixed = set()
    for case in BY_NAME:
        xs = run_cases.inputs(case)
        y = run_cases.function(case, case["fn"])(xs)
        if any(run_cases.each_instance(case, y, x, 1) is None for x in xs.values()):
            mixed.add(case["id"].removeprefix("instances."))
    assert mixed == {"slope_in_body", "slope_in_body.second", "slope_hidden", "slope_of_own_steps"}


def test_every_case_is_another() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) == 79
