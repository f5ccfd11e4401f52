"""The programs of benchmarks/programs agree with their references, and can be measured."""

import importlib.util
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import large, programs, race, report, where
from benchmarks.programs import FURTHER, NAMES, PEERS, Program, compared
from graphcore.backends.llvm_kernels import machine

CASES = [(name, dtype) for name in [*NAMES, *FURTHER] for dtype in Program(name).dtypes]


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
@pytest.mark.parametrize("name", [*NAMES, *FURTHER])
def test_a_peer_computes_what_the_reference_does(name: str, who: str) -> None:
    program = Program(name)
    function = program.make(who)
    if function is None:
        pytest.skip(f"{who} has no {name}")
    given = program.module.inputs("tiny")
    race.require_same(program, who, function(**given), program.module.reference(**given))


@pytest.mark.parametrize("name", [*NAMES, *FURTHER])
def test_a_program_says_what_it_is(name: str) -> None:
    module = Program(name).module
    assert module.__doc__
    assert list(module.SIZES) == ["tiny", "small"]


@pytest.mark.slow
def test_a_program_is_measured_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "PEERS", ["numpy"])
    monkeypatch.setattr(race, "WARM", 0.0)
    out = Console(record=True, file=io.StringIO())
    (result,) = command.measure([Program("eight_schools")], "tiny", 2, out)
    targets = {"graphcore", "native"} if machine.unavailable() is None else {"graphcore"}
    assert {*targets, "numpy"} == result.alone.keys() == result.medians.keys() - {race.AGAIN}
    assert result.medians.keys() == result.least.keys() == {result.ours, *result.over_ours}
    said = out.export_text().split()
    assert said[0] == "eight_schools"
    assert float(said[-1]) > 0
    row = report.row_of(report.measured(result))
    assert row["numpy_ratio_low"] <= row["numpy_ratio"] <= row["numpy_ratio_high"]
    assert (row["size"], row["jax_us"]) == ("tiny", None)


@pytest.mark.slow
def test_a_program_that_no_peer_has_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PEERS", [])
    monkeypatch.setattr(race, "WARM", 0.0)
    out = Console(record=True, file=io.StringIO())
    assert command.measure([Program("eight_schools")], "tiny", 2, out, first=False) == []
    assert "none of the peers" in out.export_text()


def test_a_large_program_answers_and_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = Program("mlp").module
    monkeypatch.setattr(module, "SIZES", {**module.SIZES})
    monkeypatch.setitem(large.LARGE, "mlp", module.SIZES["tiny"])
    monkeypatch.setattr(large, "SAMPLE", 0.0)
    monkeypatch.setattr("sys.stdin", io.StringIO("\nprofile\n"))
    large.serve("mlp", "graphcore")
    begun, seconds, flops = map(json.loads, capsys.readouterr().out.splitlines())
    assert begun["squares"].keys() == module.reference(**module.inputs("tiny")).keys()
    assert seconds > 0
    assert flops == 2 * 4 * (2 * 3 * 5 + 3 * 5 * 4 + 3 * 4 * 3)  # x has no gradient
    times = {1: {"native": 1.0, "numpy": 3.0, "jax": 0.8}, 2: {"native": 0.6, "jax": 0.6}}
    rows = [large.Row("further.irls", n, 2.0, times[n], 0.1, 0.2) for n in times]
    found = [large.cells(row, rows[0]) for row in rows]
    assert [(row["best"], row["ratio"]) for row in found] == [("jax", 0.8), ("jax", 1.0)]
    assert found[1]["of_cores"] == pytest.approx(1 / 1.2)
    assert found[1]["amdahl_16_ms"] == pytest.approx(1000 * (0.2 + 0.8 / 16))
    assert [*large.findings(found)] == [
        "1 threads: best peer over ours, geometric mean of 1: 0.80; below 0.9: irls 0.80",
        "2 threads: best peer over ours, geometric mean of 1: 1.00; below 0.9: none",
    ]


def test_reports_are_put_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was measured again counts as it was last."""
    parts = [[measured("gmm", 2.0, 0.1), measured("gp", 2.0, 0.1)], [measured("gmm", 3.0, 0.1)]]
    files = [tmp_path / "whole.json", tmp_path / "part.json"]
    for file, part in zip(files, parts, strict=True):
        file.write_text(json.dumps(report.as_json(part, "one")), encoding="utf-8")
    report.main([*map(str, files), "--csv", str(tmp_path / "all.csv")])
    said = capsys.readouterr().out.splitlines()
    assert [x.split() for x in said[:2]] == [
        ["gmm", "1", "s", "JAX", "3", "s", "3.00"],
        ["gp", "1", "s", "JAX", "2", "s", "2.00"],
    ]
    assert said[2] == "best peer over ours, geometric mean of 2: 2.45"
    found = report.read(tmp_path / "all.csv")
    assert [(row["program"], row["jax_ratio"]) for row in found] == [("gmm", 3.0), ("gp", 2.0)]
    (run,) = report.read(tmp_path / report.RUNS)
    assert (run["file"], run["threads"]) == ("all.csv", "one")
    assert run.keys() >= {"date", "commit", "flags", "machine code", "numpy"}


def measured(name: str, peer: float, first: float) -> race.Result:
    """A program that took us a second, and a peer as long as is said."""
    medians, over = {"graphcore": 1.0, "jax": peer}, {"jax": race.Spread(peer, peer, peer)}
    alone = {"graphcore": race.Alone(first, 1), "jax": race.Alone(0.1, 1)}
    spent = where.Where(1.0, 3, {"dot": 0.7, "add": 0.26, "exp": 0.04}, [where.Loop(2, 0.4)])
    return race.Result(name, "tiny", medians, medians, over, alone, spent)


def test_machine_code_is_measured_beside_numpy_calls() -> None:
    slow = measured("gmm", 0.5, 0.1)
    both = slow._replace(
        medians={**slow.medians, "native": 0.25},
        over_ours={"jax": race.Spread(2.0, 2.0, 2.0), "again": race.Spread(1.0, 1.0, 1.0)},
        alone={**slow.alone, "native": race.Alone(0.6, 1)},
    )
    found = report.as_json([both], "one")
    (row,) = report.rows(found)
    assert report.cells(row) == ["gmm", "250 ms", "JAX 500 ms", "2.00", "600 ms", "0.0"]
    assert list(report.findings(found))[1:] == [
        "a peer is faster: none",
        "first calls over 0.5 s: gmm 600 ms",
    ]


def test_a_program_without_machine_code_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program("eight_schools")

    def refused(*args: object, native: bool = False) -> None:
        raise programs.gc.GraphValueError("no machine code")

    monkeypatch.setattr(programs.gc, "compile", refused)
    assert program.make("native") is None
    with pytest.raises(programs.gc.GraphValueError):
        program.make("graphcore")


def test_what_is_missed_is_explained() -> None:
    found = report.as_json([measured("gmm", 0.5, 0.1), measured("gp", 0.8, 0.6)], "one")
    spent = "gmm, JAX 0.50: 70% dot, 26% add; 2 steps of 400 ms (3 calls, 1 s)"
    assert list(report.findings(found)) == [
        "best peer over ours, geometric mean of 2: 0.63",
        "a peer is faster: gmm 0.50, gp 0.80",
        spent,
        "first calls over 0.5 s: gp 600 ms",
    ]


def test_where_a_call_spends_its_time() -> None:
    program = Program("heat1d")
    given, compiled = program.module.inputs("tiny"), program.module.program()
    before = compiled(**given)
    found = where.where(compiled, given)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert {"pad", "multiply", where.PYTHON, where.ENTRANCE} <= found.shares.keys()
    assert [loop.steps for loop in found.loops] == [5, 5]
    assert all(0 < loop.steps * loop.seconds < found.seconds for loop in found.loops)
    assert compared(compiled(**given), before) == dict.fromkeys(before, 0.0)


def test_clocks_are_between_what_calls_something_else() -> None:
    source = """def f(x):
    a = np.exp(x)
    b = np.exp(a)
    c = 2 * 3
    for i in range(4):
        if i == 1:
            b.append(c)
    return b
"""
    clocked = where.Clocked(source, {}, {4: "multiply"})
    lines = [(group.calls, group.lines, group.loop) for group in clocked.groups]
    expected = [(where.ENTRANCE, 0, 0), ("exp", 2, 0), ("multiply", 1, 0), ("append", 1, 5)]
    assert lines == expected


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
    with pytest.raises(SystemExit):
        command.main(["logreg", "--further"])
    assert "no program logreg; there are further.american_option" in capsys.readouterr().err
