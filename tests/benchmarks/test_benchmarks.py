"""The benchmarks compute what they claim to, at tiny sizes; nothing here is timed."""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    compile_time,
    linalg,
    loops,
    measure,
    memory,
    peaks,
    programs,
    rows,
    speed,
)
from benchmarks.rows import ROWS, Row, Sizes
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import machine
from graphcore.ir.node import toposort

every_row = pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))


def tiny(row: Row) -> Sizes:
    """A different small size for each dim, so that no two can be confused."""
    return {dim: number + 3 for number, dim in enumerate(row.sizes[0])}


@every_row
def test_graphcore_computes_what_numpy_does(row: Row) -> None:
    data = row.data(tiny(row))
    found = rows.in_graphcore(row, tiny(row))(*data)
    rows.require_same(row, "graphcore", found, rows.in_numpy(row)(*data))


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
@every_row
def test_jax_computes_what_numpy_does(row: Row) -> None:
    jax = pytest.importorskip("benchmarks.jax_rows")
    data = row.data(tiny(row))
    rows.require_same(row, "JAX", rows.in_jax(row, jax)(*data), rows.in_numpy(row)(*data))


@every_row
def test_no_argument_is_written_over(row: Row) -> None:
    data = row.data(tiny(row))
    kept = [np.copy(x) for x in data]
    rows.in_graphcore(row, tiny(row))(*data)
    rows.in_numpy(row)(*data)
    for x, before in zip(data, kept, strict=True):
        np.testing.assert_array_equal(x, before)


def test_a_wrong_result_is_refused() -> None:
    with pytest.raises(AssertionError, match="result 1 of graphcore"):
        rows.require_same(ROWS["softmax"], "graphcore", [1.0, 2.0], [1.0, 2.001])


@every_row
def test_a_row_is_measured_and_printed(row: Row) -> None:
    result = speed.run(row, tiny(row), None, rounds=2)
    assert result.medians.keys() == {"graphcore", "numpy"}
    assert str(result).startswith(row.name)
    assert len(str(result)) == len(speed.HEAD)


def test_the_report_is_json(tmp_path: Path) -> None:
    result = speed.run(ROWS["softmax"], tiny(ROWS["softmax"]), None, rounds=2)
    limits = speed.Limits(bandwidth=1e9, flops=1e9)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(speed.report([result], limits)), encoding="utf-8")
    (row,) = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert row["row"] == "softmax"
    assert row["numpy over graphcore"].keys() == {"low", "median", "high"}


def test_samples_are_taken_in_turn() -> None:
    seen = []
    calls = {name: measure.Call(seen.append, [name]) for name in "abc"}
    samples = measure.interleaved(calls, rounds=2, least=0)
    assert {name: len(times) for name, times in samples.items()} == {"a": 2, "b": 2, "c": 2}
    assert "".join(seen).endswith("aabbccaabbcc")  # one call to warm up, one that counts


@pytest.mark.parametrize(
    ("value", "text"), [(2.5, "2.5 s"), (0.0125, "12.5 ms"), (3e-6, "3 us"), (4e-7, "0.4 us")]
)
def test_seconds_are_written_in_the_unit_that_suits(value: float, text: str) -> None:
    assert measure.seconds(value) == text


def test_ratios_are_of_pairs() -> None:
    assert measure.ratios([2.0, 30.0, 4.0], [1.0, 10.0, 4.0]) == measure.Spread(1.5, 2.0, 2.5)


def test_samples_are_summed_up_by_medians_and_by_ratios_to_ours() -> None:
    medians, over = measure.summary({"numpy": [2.0, 8.0], "graphcore": [1.0, 2.0]})
    assert medians == {"numpy": 5.0, "graphcore": 1.5}
    assert over == {"numpy": measure.Spread(2.5, 3.0, 3.5)}


def test_the_chain_has_as_many_nodes_as_it_says() -> None:
    inputs, y = compile_time.chain(1000)
    found = set(toposort([y.node])) - {x.node for x in inputs} - {y.node}
    assert len(found) == 1001  # the number 2 as well


@pytest.mark.slow
@pytest.mark.parametrize("task", ["per_node", "deep"])
def test_chain_tasks(task: str) -> None:
    assert compile_time.TASKS[task](200)["compile"] > 0


def test_the_logistic_task() -> None:
    assert compile_time.logistic(1).keys() == {"first", "later"}


@pytest.mark.slow
@pytest.mark.skipif(bool(llvm_kernels.unavailable()), reason="needs machine code")
def test_peaks_are_measured_in_each_way() -> None:
    cases = ["machine code"], [peaks.STORED], ["machine code", peaks.EACH]
    found = [peaks.measured(peaks.Case("lstm", "tiny", *case)) for case in cases]
    least = programs.Program("lstm").module.inputs("tiny")["w"].nbytes
    assert all(peak and least < peak.planned < peak.first for peak in found)
    ours, stored, checked = [peak.planned for peak in found if peak]
    assert ours < stored
    assert ours != checked


def test_memory_is_watched(capsys: pytest.CaptureFixture[str]) -> None:
    memory.watch("calls", 20, lambda n, _: memory.calls(n))
    memory.watch("graphs", 20, memory.graphs)
    assert capsys.readouterr().out.count("drift") == 2


def test_every_policy_of_checkpoints_has_the_same_gradient() -> None:
    """That of a loop by hand."""
    random = np.random.default_rng(0)
    x, a, b = random.normal(size=50), random.uniform(0.5, 1, 3), random.normal(size=3)
    states = [np.zeros(3)]
    for xt in x:
        states.append(np.tanh(a * states[-1] + b * xt))
    dx, da, db, dy = np.zeros(50), np.zeros(3), np.zeros(3), 2 * states[-1]
    for t in reversed(range(50)):
        dz = dy * (1 - states[t + 1] ** 2)
        dx[t], da, db, dy = dz @ b, da + dz * states[t], db + dz * x[t], dz * a
    for policy in loops.POLICIES:
        for found, wanted in zip(loops.recurrence(3, policy)(x, a, b), (dx, da, db), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_loops_are_measured_in_processes_of_their_own() -> None:
    found = loops.fresh("gradient", 20, 2, "log")
    assert found.keys() == {"seconds", "bytes"}
    assert found["seconds"] > 0


def test_loops_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loops.compile_seconds(repeats=1).keys() == {"first", "later"}
    monkeypatch.setattr(loops, "fresh", loops.run_task)
    loops.report_gradients([20], 2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.count("MB") for line in lines] == [0, 0, len(loops.POLICIES)]


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
def test_linear_algebra_is_measured_and_printed() -> None:
    row = linalg.run("gp", "tiny", rounds=2)
    assert row.first.keys() == row.medians.keys() - {"again"} >= {"graphcore", "jax"}
    assert 0 < row.nodes < row.equations
    assert str(row).startswith("gp ")


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax")
def test_the_target_jax_is_measured_and_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And which sizes can be other ones is found: of a convolution all."""
    jax_target = pytest.importorskip("benchmarks.jax_target")
    monkeypatch.setattr(jax_target, "WARM", 0.0)
    (row,) = jax_target.table(["eight_schools"], lambda name: jax_target.run(name, "tiny", 1))
    assert row["ratio"] == pytest.approx(row["ours_us"] / row["jax_us"])
    assert "1 programs: geometric mean" in capsys.readouterr().out
    monkeypatch.setattr(jax_target, "CALLS", 2)
    tiny, larger = jax_target.of_sizes(programs.Program("conv2d"))
    assert (tiny["x"].shape, larger["x"].shape) == ((2, 6, 7, 2), (3, 8, 9, 3))
    some = [jax_target.grown(programs.Program("logreg"), ["row"], step) for step in (2, 3)]
    assert [x["x"].shape[0] for x in some] == [50, 60]
    monkeypatch.setattr(jax_target, "of_sizes", lambda program: some)
    rows = jax_target.table(["logreg"], jax_target.compilations)
    assert rows == [{"program": "logreg", "sizes": 2, "exact": 2, "buckets": 1}]


@pytest.mark.slow
def test_linear_algebra_is_measured_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PEERS", ("numpy",))
    monkeypatch.setattr(linalg, "equations", lambda program, size: None)
    row = linalg.run("mvn", "tiny", rounds=2)
    assert row.ratio is None
    assert str(row).endswith("-")


def test_a_process_is_started_with_one_thread_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that sets a variable otherwise after that is not started again and again."""
    started: list[dict[str, str]] = []
    monkeypatch.delenv(measure.STARTED, raising=False)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cpus: None)
    monkeypatch.setattr(os, "execve", lambda path, arguments, new: started.append(dict(new)))
    measure.use_one_thread()
    (new,) = started
    assert new.items() >= measure.ONE_THREAD.items()
    assert not new.keys() & set(measure.LEFT_TO_OPENBLAS)
    for name in (measure.STARTED, "XLA_FLAGS"):
        monkeypatch.setenv(name, new[name])
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    measure.use_one_thread()
    assert len(started) == 1


def test_what_is_measured_on_is_said() -> None:
    found = measure.hardware()
    assert found.keys() >= {"system", "cpu", "flags", "numpy uses", "machine code"}
    assert all(found["blas of numpy"].split())


def test_machine_code_is_held_to_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(machine.levels()) < 2:
        pytest.skip("needs AVX-512")
    monkeypatch.setattr(machine, "LEVELS", dict(machine.LEVELS))
    monkeypatch.setenv("GRAPHCORE_AVX2_ALONE", "yes")
    measure.hold_machine_code()
    assert machine.levels() == ("x86-64-v3",)
    monkeypatch.undo()
    machine.levels.cache_clear()
