"""`python -m graphcore`: its data, its program, and how it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphcore.demo import by_hand, datasets, listing, timing
from graphcore.demo.examples import digits

ROOT = Path(__file__).resolve().parents[2]

# A shell that runs tests in the background may have them ignore SIGINT, which children inherit.
LISTENING = """\
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("graphcore", run_name="__main__", alter_sys=True)
"""


def environment() -> dict[str, str]:
    """As outside of any terminal, with UTF-8, and this checkout first."""
    kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return kept | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "graphcore", *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


def accuracy(output: str) -> float:
    found = re.search(r"test accuracy (\d\.\d+) \((\d+) of 500 digits\)", output)
    assert found, output
    assert float(found[1]) == int(found[2]) / 500
    return float(found[1])


def test_the_step_by_hand_is_the_compiled_step() -> None:
    image, label = datasets.digits()
    rng = np.random.default_rng(1)
    weights = digits.random_weights(5, rng)
    velocity = {name: rng.normal(size=w.shape) for name, w in weights.items()}
    for count in (33, 2, 1):
        arguments = image[:count], label[:count], weights, velocity, 0.3
        ours, theirs = digits.step(*arguments), by_hand.step(*arguments)
        assert timing.largest_difference(ours, theirs) < 1e-13


def test_a_difference_is_seen() -> None:
    a = [np.float64(1), {"w": np.array([2.0, 4.0]), "zero": np.zeros(2)}]
    b = (np.float64(1), {"w": np.array([2.0, 5.0]), "zero": np.zeros(2)})
    assert timing.largest_difference(a, b) == pytest.approx(0.2)
    assert timing.largest_difference(b, b) == 0


@pytest.mark.slow
def test_times_are_measured_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []
    run = subprocess.run

    def watched(*args: Any, env: dict[str, str], **options: Any) -> Any:
        given.append(env)
        return run(*args, env=env, **options)

    monkeypatch.setattr(timing.subprocess, "run", watched)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    (race,) = timing.races([3], hidden=5)
    assert race.digits == 3
    assert min(race.ours, race.theirs) > 0
    assert race.difference < 1e-13
    (env,) = given
    for library in ("OPENBLAS", "MKL", "OMP"):
        assert env[f"{library}_NUM_THREADS"] == "1"


def test_samples_are_taken_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    called = ""

    def advance(name: str, seconds: float) -> None:
        nonlocal clock, called
        clock, called = clock + seconds, called + name

    monkeypatch.setattr(timing.time, "process_time", lambda: clock)
    monkeypatch.setattr(timing, "ROUNDS", 3)
    slow, slower = (lambda: advance("a", 1.0)), (lambda: advance("b", 3.0))
    assert timing.median_seconds(slow, slower) == [1.0, 3.0]
    assert called.endswith("ababab")


def test_training_sees_every_digit_once_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def step(image: np.ndarray, label: np.ndarray, *state: object) -> tuple[object, ...]:
        assert np.array_equal(image, label)
        seen.append(label.tolist())
        return float(len(label)), state[0], state[1]

    monkeypatch.setattr(digits, "step", step)
    epochs = [
        (epoch, loss) for epoch, loss, _ in digits.train(np.arange(10.0), np.arange(10), 2, 5, 4)
    ]
    assert epochs == [(1, pytest.approx(10 / 3)), (2, pytest.approx(10 / 3))]
    assert [len(batch) for batch in seen] == [4, 4, 2] * 2
    first, second = np.concatenate(seen[:3]).tolist(), np.concatenate(seen[3:]).tolist()
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_a_short_run() -> None:
    result = demo("--epochs", "2", "--hidden", "16", "--seed", "3")
    assert (result.returncode, result.stderr) == (0, "")
    assert accuracy(result.stdout) > 0.8
    program = listing.first_part("digits")
    for number, line in enumerate(program.text.splitlines(), program.first):
        assert not line or f"{number:3}  {line}\n" in result.stdout
    assert result.stdout.count(" = pullback(") == 1
    assert re.search(r"f64\[sample, class=10\] += log_softmax\(.*digits\.py:\d+", result.stdout)
    assert "log_softmax: (x - m) - log(sum(e^(x - m)))" in result.stdout
    assert "40 of 32 and one of 17 digits" in result.stdout
    assert "2/2 epochs" in result.stdout
    assert re.search(r"(?m)^1,297 digits .*x ", result.stdout)
    assert str(listing.path("digits")) in result.stdout
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.stdout) is None
    wide = [line for line in result.stdout.splitlines() if len(line) > 100]
    assert [line for line in wide if not line.startswith("The program above is")] == []


@pytest.mark.slow
def test_quiet_says_only_results() -> None:
    result = demo("--epochs", "1", "--quiet", "--batch", "1297")
    assert (result.returncode, result.stderr) == (0, "")
    accuracy(result.stdout)
    assert len(result.stdout.splitlines()) == 4


def test_help() -> None:
    result = demo("--help")
    assert (result.returncode, result.stderr) == (0, "")
    for flag in (
        *("--epochs", "--hidden", "--batch", "--rate", "--seed", "--quiet", "--no-color"),
        *("--example", "--copy", "--page", "--force"),
    ):
        assert flag in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "--epochs: 0 is not from 1 to 100,000"),
        (["--batch", "1298"], "--batch: 1,298 is not from 1 to 1,297"),
        (["--hidden", "many"], "--hidden: invalid whole number value: 'many'"),
        (["--rate", "nan"], "--rate: nan is not a positive number"),
        (["--seed", "-1"], "--seed: -1 is not from 0 to"),
        (["--example", "all"], "--example: invalid choice: 'all'"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from graphcore.demo import program

    with pytest.raises(SystemExit) as ended:
        program.run(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def long_run() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", LISTENING, "--epochs", "2000"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(), stdout=pipe, stderr=pipe, encoding="utf-8"
    ) as process:
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_an_interrupt_ends_it_quietly(long_run: subprocess.Popen[str]) -> None:
    assert long_run.stdout is not None
    while "Batches of each epoch" not in (line := long_run.stdout.readline()):
        assert line, "it ended before training"
    long_run.send_signal(signal.SIGINT)
    _, errors = long_run.communicate(timeout=30)
    assert long_run.returncode == 130
    assert errors == "interrupted\n"


def test_rich_is_imported_by_the_demo_alone() -> None:
    program = "import sys, graphcore; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True, timeout=60)
    package = ROOT / "graphcore"
    found = [
        file
        for file in package.rglob("*.py")
        if re.search(r"(?:from|import) rich", file.read_text("utf-8"))
    ]
    assert {file.relative_to(package).parts[0] for file in found} == {"demo"}


@pytest.mark.slow
def test_the_whole_run_reads_digits_well() -> None:
    first, second = demo(), demo()
    assert first.returncode == 0, first.stderr
    assert accuracy(first.stdout) >= 0.96
    assert accuracy(first.stdout) == accuracy(second.stdout)
