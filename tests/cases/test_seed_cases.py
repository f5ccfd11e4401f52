"""The numeric cases the project is judged by: tests/cases/seed_cases.json."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import run_cases

HERE = Path(__file__).parent
FILE = HERE / "seed_cases.json"
CASES = {case["id"]: case for case in run_cases.load(FILE)}
EVERY = list(CASES.values())

# Named cases, with sizes unknown until the call.
OF_ANY_SIZE = [
    name
    for name in CASES
    if any("dims" in entry for entry in CASES[name].get("inputs", {}).values())
]


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    run_cases.check(CASES[name], EVERY)


@pytest.mark.parametrize("name", OF_ANY_SIZE)
def test_case_of_any_size(name: str) -> None:
    run_cases.check(CASES[name], EVERY, unknown=True)


def test_instances_mix_in_few_cases() -> None:
    """Where they do, an expected gradient is that of the sum, and `per` refuses it."""
    mixed = set()
    for name in CASES:
        case = CASES[name]
        if "per_instance" in case.get("expected", {}):
            xs = run_cases.inputs(case)
            y = run_cases.function(case, case["fn"])(xs)
            if any(run_cases.each_instance(case, y, x, 1) is None for x in xs.values()):
                mixed.add(name)
    assert mixed == {"1731.hidden.swap_names_nonlinear", "1731.devec.scalar_loss"}


def test_every_case_is_there() -> None:
    assert len(CASES) == len(EVERY) == 298


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("2269.elemwise.exp", ("value",), "value: off by"),
        ("2269.elemwise.exp", ("grad", "x", "data"), "grad x: off by"),
        ("2269.second.cube", ("grad", "x", "data"), "grad x: off by"),
        ("1731.het.multiply", ("output", "data"), "output: off by"),
        ("1731.het.multiply", ("per_instance", "y", "data"), "per_instance y: off by"),
        ("1748.probe.norm", ("grad", "x"), "grad x: off by"),
    ],
)
def test_a_wrong_answer_is_seen(name: str, path: tuple[str, ...], message: str) -> None:
    case = copy.deepcopy(CASES[name])
    entry: Any = case["expected"]
    for key in path[:-1]:
        entry = entry[key]
    wrong = np.asarray(entry[path[-1]])
    wrong.flat[-1] += 1e-6
    entry[path[-1]] = wrong.tolist()
    with pytest.raises(run_cases.Wrong, match=message):
        run_cases.check(case, EVERY)


def test_nan_is_a_wrong_answer() -> None:
    with pytest.raises(run_cases.Wrong):
        run_cases.compare("value", np.array(np.nan), np.array(1.0), 1e-10, None)


@pytest.mark.slow
def test_script() -> None:
    script = [sys.executable, str(HERE.parent / "run_cases.py"), str(FILE)]
    done = subprocess.run([*script, "nx#1748"], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    group = [name for name in CASES if CASES[name]["seed"] == "nx#1748"]
    assert len(group) > 1
    assert lines == [f"{len(group)} passed, 0 failed"]
    assert done.returncode == 0
    assert done.stderr == ""
    unknown = subprocess.run([*script, "nobody#1"], capture_output=True, text=True, check=False)
    assert unknown.returncode == 2
