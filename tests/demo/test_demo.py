"""`python -m graphcore`: its data, its program, and how it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphcore.demo import by_hand, datasets, model, training

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
    step = model.Network(5).training_step()
    image, label = datasets.digits()
    rng = np.random.default_rng(1)
    weights = training.random_weights(5, rng)
    velocity = {name: rng.normal(size=w.shape) for name, w in weights.items()}
    for count in (33, 2, 1):
        arguments = image[:count], label[:count], weights, velocity, 0.3
        race = training.race(step, by_hand.training_step, arguments, seconds=0)
        assert race.difference < 1e-13
        assert min(race.ours, race.theirs) > 0


def test_a_difference_is_seen() -> None:
    a = [np.float64(1), {"w": np.array([2.0, 4.0]), "zero": np.zeros(2)}]
    b = (np.float64(1), {"w": np.array([2.0, 5.0]), "zero": np.zeros(2)})
    assert training.largest_difference(a, b) == pytest.approx(0.2)
    assert training.largest_difference(b, b) == 0


def test_training_sees_every_digit_once_an_epoch() -> None:
    seen: list[tuple[int, int]] = []
    sizes: list[int] = []
    data = datasets.Digits(np.arange(10.0), np.arange(10))

    def step(image: np.ndarray, label: np.ndarray, *state: object) -> tuple[object, ...]:
        assert np.array_equal(image, label)
        sizes.append(len(label))
        return float(label.sum()), state[0], state[1]

    weights = {"w": np.zeros(1)}
    rng = np.random.default_rng(0)
    report = lambda epoch, loss: seen.append((epoch, int(loss)))
    assert training.train(step, weights, data, 2, 4, 0.1, rng, report) is weights
    assert sizes == [4, 4, 2] * 2
    assert [sum(n for epoch, n in seen if epoch == e) for e in (1, 2)] == [45, 45]
    assert seen[:3] != [(1, n) for _, n in seen[3:]]


def test_a_short_run() -> None:
    result = demo("--epochs", "2", "--hidden", "16", "--seed", "3")
    assert (result.returncode, result.stderr) == (0, "")
    assert accuracy(result.stdout) > 0.8
    assert result.stdout.count(" = pullback(") == 2
    assert re.search(r"f64\[sample, class=10\] += log_softmax\(.*model\.py:\d+", result.stdout)
    assert re.search(r"(?m)^expanded +\d+", result.stdout)
    assert "softplus" in result.stdout
    assert "40 of 32 and one of 17 digits" in result.stdout
    assert "82/82 steps" in result.stdout
    assert re.search(r"(?m)^1,297 digits .*x ", result.stdout)
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.stdout) is None


def test_quiet_says_only_results() -> None:
    result = demo("--epochs", "1", "--quiet", "--batch", "1297")
    assert (result.returncode, result.stderr) == (0, "")
    accuracy(result.stdout)
    assert len(result.stdout.splitlines()) == 4


def test_help() -> None:
    result = demo("--help")
    assert (result.returncode, result.stderr) == (0, "")
    for flag in ("--epochs", "--hidden", "--batch", "--rate", "--seed", "--quiet", "--no-color"):
        assert flag in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "--epochs: 0 is not from 1 to 100,000"),
        (["--batch", "1298"], "--batch: 1,298 is not from 1 to 1,297"),
        (["--hidden", "many"], "--hidden: invalid whole number value: 'many'"),
        (["--rate", "nan"], "--rate: nan is not a positive number"),
        (["--seed", "-1"], "--seed: -1 is not from 0 to"),
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


def test_importing_graphcore_does_not_import_rich() -> None:
    program = "import sys, graphcore; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True, timeout=60)


@pytest.mark.slow
def test_the_whole_run_reads_digits_well() -> None:
    first, second = demo(), demo()
    assert first.returncode == 0, first.stderr
    assert accuracy(first.stdout) >= 0.96
    assert accuracy(first.stdout) == accuracy(second.stdout)
