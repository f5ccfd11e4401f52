"""The programs of benchmarks/programs agree with their references, and can be measured."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import programs, race, report
from benchmarks.programs import NAMES, PEERS, Program, compared

CASES = [(name, dtype) for name in NAMES for dtype in Program(name).dtypes]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_program_computes_what_its_reference_does(name: str, dtype: str) -> None:
    agreement = Program(name).check("tiny", dtype)
    assert agreement.passed, agreement


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_program_at_its_small_size(name: str, dtype: str) -> None:
    agreement = Program(name).check("small", dtype)
    assert agreement.passed, agreement


@pytest.mark.slow
@pytest.mark.parametrize("who", [who for who in PEERS if importlib.util.find_spec(who)])
@pytest.mark.parametrize("name", NAMES)
def test_a_peer_computes_what_the_reference_does(name: str, who: str) -> None:
    program = Program(name)
    function = program.make(who)
    if function is None:
        pytest.skip(f"{who} has no {name}")
    given = program.module.inputs("tiny")
    race.require_same(program, who, function(**given), program.module.reference(**given))


@pytest.mark.parametrize("name", NAMES)
def test_a_program_says_what_it_is(name: str) -> None:
    module = Program(name).module
    assert module.__doc__
    assert list(module.SIZES) == ["tiny", "small"]


def test_a_program_is_measured_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PEERS", ["numpy"])
    out = Console(record=True, width=200, quiet=False)
    measured = command.measure([Program("eight_schools")], "tiny", 2, out)
    (result,) = measured
    assert {"graphcore", "numpy"} == result.medians.keys() == result.alone.keys()
    assert "eight_schools" in out.export_text()
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report.as_json(measured, "one")), encoding="utf-8")
    (found,) = json.loads(path.read_text(encoding="utf-8"))["programs"]
    assert found["over graphcore"]["numpy"].keys() == {"low", "median", "high"}


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    spread = race.Spread(0.9, 1.0, 1.1)
    alone = {"graphcore": race.Alone(0.1, 1), "numpy": race.Alone(0.1, 1)}
    medians = {"graphcore": 1.0, "numpy": 1.0}
    path = tmp_path / "ratios.png"
    report.plot([race.Result("gmm", "tiny", medians, {"numpy": spread}, alone)], path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_checks_are_counted_and_a_wrong_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Console(record=True, width=200)
    program = Program("logreg")
    assert command.check([program], out) == 0
    assert out.export_text().splitlines()[-1] == "2 passed, 0 failed"
    monkeypatch.setattr(program.module, "TOLERANCE", -1.0, raising=False)
    assert command.check([program], out) == 2
    assert out.export_text().splitlines()[-1] == "0 passed, 2 failed"


@pytest.mark.parametrize(
    ("found", "off"),
    [
        ([1.0, 4.0], 0.0),
        ([1.0, 5.0], 0.25),
        ([1.0, np.nan], np.inf),
        ([1.0, np.inf], np.inf),
        ([1.0], np.inf),
    ],
)
def test_errors_are_relative_to_the_largest_value(found: list[float], off: float) -> None:
    expected = {"value": np.array([1.0, 4.0])}
    assert compared({"value": np.array(found)}, expected) == {"value": off}


def test_results_missing_or_added_are_errors() -> None:
    one = {"value": np.array(1.0)}
    assert compared({}, one) == compared(one, {}) == {"value": np.inf}


def test_names_that_are_no_programs_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["logreg", "nothing"])
    assert "no program nothing" in capsys.readouterr().err
