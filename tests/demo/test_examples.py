"""The programs that the demo shows: what they find, beside SciPy and NumPy, copies and pages."""

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from graphcore.demo import datasets, listing, program

pytestmark = pytest.mark.by_rule  # they run as readers run them


class Run:
    """A program that has run: its variables and its output."""

    def __init__(self, name: str) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.variables: dict[str, Any] = runpy.run_path(str(listing.path(name)))
        self.output = out.getvalue()

    def __getitem__(self, name: str) -> Any:
        return self.variables[name]


def anomalies() -> np.ndarray:
    values = datasets.sea_temperature().values.reshape(61, 12)
    return (values - values.mean(axis=0)).ravel()


def test_climate() -> None:
    pytest.importorskip("xarray")
    run = Run("climate")
    slope, _ = np.polyfit(np.arange(732) / 120, anomalies(), 1)
    found = run["found"]
    assert found["anomaly"] == pytest.approx(anomalies())
    assert found["trend"] == pytest.approx(slope)
    assert found["influence"] @ run["values"] == pytest.approx(slope)  # it is linear
    warmer = run["values"] + np.eye(732)[5]
    assert run["f"](warmer)["trend"] - slope == pytest.approx(found["influence"][5])
    assert f"trend: {slope:+.3f} degrees" in run.output
    assert re.findall(r"\d{4}-\d\d(?=  \+)", run.output)[:2] == ["1983-06", "1997-12"]
    december = anomalies()[12 * 47 + 11]
    assert f"{december:.2f}])\nCoordinates:" in run.output
    assert "1997-12-01" in run.output


def test_climate_without_xarray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    assert "xarray is not installed" in Run("climate").output


def test_fit() -> None:
    """With a given growth the model is linear, so that the best growth is all that is sought."""
    run = Run("fit")
    times, values = datasets.co2()
    known = ~np.isnan(values)
    year = 1970 + times[known].astype(float) / 365.25
    waves = [wave(2 * np.pi * k * year) for wave in (np.sin, np.cos) for k in (1, 2, 3)]

    def columns(growth: float, year: np.ndarray) -> np.ndarray:
        return np.stack([np.ones_like(year), np.exp(growth * (year - 1980))], axis=1)

    def solve(growth: float) -> tuple[np.ndarray, float]:
        matrix = np.hstack([columns(growth, year), np.stack(waves, axis=1)])
        best, squares, *_ = np.linalg.lstsq(matrix, values[known])
        return best, squares[0] / known.sum()

    growth = scipy.optimize.minimize_scalar(lambda g: solve(g)[1], bounds=(0.005, 0.05)).x
    best, mean_square = solve(growth)
    found = run["unravel"](run["fit"].x)
    assert run["fit"].fun == pytest.approx(mean_square, rel=1e-9)
    assert found["growth"] == pytest.approx(growth, rel=1e-3)
    assert [*found["sin"], *found["cos"]] == pytest.approx(best[2:], abs=1e-3)
    level = columns(growth, np.array([1960.0, 2020.0])) @ best[:2]
    assert run["level"][[0, 3]] == pytest.approx(level, abs=0.05)
    assert run["slope"][0] == pytest.approx(growth * (level[0] - best[0]), rel=1e-3)
    assert f"{mean_square**0.5:.2f} ppm" in run.output
    assert f"2020-01-01: {level[1]:.1f} ppm" in run.output
    assert re.search(r"2001-1\d-\d\d to \+2\.9 ppm on 2001-05", run.output)


def test_sampler() -> None:
    """The level and the trend are integrated by hand, the other two parameters over a grid."""
    run = Run("sampler")
    y, x = anomalies(), np.stack([np.ones(732), np.arange(-366, 366) / 120], axis=1)
    weights, means, variances, values = [], [], [], []
    for z in np.linspace(1.2, 2.1, 61):
        phi = np.tanh(z)
        u, v = y[1:] - phi * y[:-1], x[1:] - phi * x[:-1]
        for s in np.linspace(-1.0, -0.6, 61):
            precision = v.T @ v / np.exp(2 * s) + np.eye(2)
            right = v.T @ u / np.exp(2 * s)
            mean = np.linalg.solve(precision, right)
            square = u @ u / np.exp(2 * s) - right @ mean
            determinant = np.log(np.linalg.det(precision))
            weights.append(-(square + determinant + z**2 + s**2) / 2 - len(u) * s)
            means.append(mean)
            variances.append(np.linalg.inv(precision).diagonal())
            values.append([phi, np.exp(s)])
    p = np.exp(np.array(weights) - max(weights))
    p /= p.sum()
    mean = p @ np.hstack([means, values])
    square = p @ np.hstack([np.square(means) + variances, np.square(values)])
    found, deviation = np.stack(list(run["found"].values())), np.sqrt(square - mean**2)
    assert np.all(abs(found.mean(axis=(1, 2)) - mean) < 0.1 * deviation)
    assert found.std(axis=(1, 2)) == pytest.approx(deviation, rel=0.1)
    chains = found.mean(axis=2) - mean[:, None]
    assert np.all(abs(chains) < 0.25 * deviation[:, None])
    assert (np.diff(found, axis=2) != 0).mean() > 0.8  # accepted
    probability = scipy.stats.norm.cdf(mean[1] / deviation[1])
    shown = re.search(r"the trend is positive: (0\.\d\d)", run.output)
    assert shown
    assert float(shown[1]) == pytest.approx(probability, abs=0.03)


def test_inside() -> None:
    run = Run("inside")
    pixels, signs = run["images"].reshape(-1, 64), run["signs"]
    assert len(signs) == 360
    weights = (run["weights"] + 0.5 * run["gradient"]).ravel()  # those of the last call
    margin = signs * (pixels @ weights)
    assert run["value"] == pytest.approx(np.logaddexp(0, -margin).mean())
    gradient = -(signs / (1 + np.exp(margin))) @ pixels / len(signs)
    assert run["gradient"].ravel() == pytest.approx(gradient)
    assert f"100 steps downhill: {run['value']:.4f}" in run.output
    assert "log1p(exp(x)) = softplus(x)" in run.output
    assert "def run(inputs" in run.output
    assert max(map(len, run.output.splitlines())) <= 100


@pytest.mark.parametrize("name", ["digits", *listing.EXAMPLES])
def test_programs_fit_the_terminal(name: str) -> None:
    lines = listing.text(name).splitlines()
    assert max(map(len, lines)) <= 95  # beside the numbers of the lines
    assert len(lines) <= 70


def test_an_example_is_shown_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    program.run(["--example", "fit", "--no-color"])
    out = capsys.readouterr().out
    for number, line in enumerate(listing.text("fit").splitlines(), 1):
        assert not line or f"{number:3}  {line}\n" in out
    assert "root mean square error after" in out
    assert "python -m graphcore --example fit --copy fit.py" in out


@pytest.mark.parametrize("name", [None, "inside"])
def test_a_copy_runs(name: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    program.run(["--copy", str(file), *([] if name is None else ["--example", name])])
    assert f"Wrote {file}. Run it: python {file}" in capsys.readouterr().out
    assert file.read_text("utf-8") == listing.text(name or "digits")
    runpy.run_path(str(file), run_name="__main__")
    assert re.search("test accuracy 0.99|steps downhill", capsys.readouterr().out)


@pytest.mark.parametrize("option", ["--copy", "--page"])
def test_no_file_is_replaced_unless_asked(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine"
    file.write_text("mine", "utf-8")
    with pytest.raises(SystemExit, match="exists: choose another name, or add --force"):
        program.run([option, str(file)])
    assert file.read_text("utf-8") == "mine"
    program.run([option, str(file), "--force"])
    assert len(file.read_text("utf-8")) > 1000


def test_a_page_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program.run(["--page"])
    text = Path("digits.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "log_softmax" in text
    program.run(["--example", "climate", "--page"])
    assert "group" in Path("climate.html").read_text("utf-8")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="cannot be written: No such file"):
        program.run(["--copy", str(tmp_path / "nowhere" / "digits.py")])
