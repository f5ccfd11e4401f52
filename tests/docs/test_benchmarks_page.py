"""The page on benchmarks says what the CSV files beside it say, and so do the figures."""

from __future__ import annotations

import csv
import inspect
import math
import re
import statistics
from pathlib import Path

import pytest

from benchmarks import figures, page, programs, report
from tests.docs import pages

FOLDER = page.FOLDER
TEXT = page.PAGE.read_text(encoding="utf-8")


def lines_of(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ratios(name: str, *peers: str) -> dict[str, float]:
    """The ratio of the fastest of some peers by program, straight from the text of a file."""
    return {
        line["program"]: min(float(x) for who in peers if (x := line[f"{who}_ratio"]))
        for line in lines_of(name)
    }


def geometric(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def test_the_page_says_what_the_files_say() -> None:
    assert page.updated(TEXT) == TEXT, "python -m benchmarks.page writes it anew"
    assert {name for _, name, _ in page.BLOCK.findall(TEXT)} == page.BLOCKS.keys()


def test_means_and_wins_are_those_of_the_files() -> None:
    small = ratios("programs.csv", *report.PEERS)
    wins = sum(ratio >= 1 for ratio in small.values())
    assert f"- {wins} of {len(small)} programs take less time" in TEXT
    assert f"takes {geometric(list(small.values())):.1f} times our time, in the geometric" in TEXT
    for name, begins in page.ALONE.items():
        found = ratios(f"{name}.csv", "numpy", "jax", "torch")
        assert found.keys() == small.keys()
        assert re.search(rf"{begins} .* takes {geometric(list(found.values())):.1f} times", TEXT)


def test_every_program_that_another_library_runs_faster_is_named() -> None:
    stated = TEXT.partition("<!-- losses -->")[2].partition("<!-- end -->")[0].splitlines()
    files = ("programs.csv", "programs_tiny.csv", "programs_avx2.csv", "further.csv")
    for line, name in zip([x for x in stated if x][:-1], files, strict=True):
        peers = ("numpy", "jax") if name == "further.csv" else ("numpy", "jax", "torch", "pytensor")
        lost = {program for program, ratio in ratios(name, *peers).items() if ratio < 1}
        assert set(re.findall(r"(\w+) \(", line)) == lost, name


def test_files_are_those_of_the_programs_and_say_where_they_were_measured() -> None:
    assert [line["program"] for line in lines_of("programs.csv")] == programs.NAMES
    further = [line["program"] for line in lines_of("further.csv")]
    assert [f"further.{name}" for name in further] == programs.FURTHER
    runs = {line["file"]: line for line in lines_of("runs.csv")}
    linked = set(re.findall(r"\{download\}`.*? <(.*?)>`", TEXT))
    assert linked == {file.name for file in FOLDER.glob("*.csv")}
    assert runs.keys() == linked - {"runs.csv", "further_as_they_came.csv"}
    for name, run in runs.items():
        assert all(run[what] for what in ("date", "commit", "flags", "blas of numpy")), name
        assert "dirty" not in run["commit"]
    assert "Haswell" in runs["programs_avx2.csv"]["blas of numpy"]
    assert runs["programs_avx2.csv"]["machine code"] == "x86-64-v3"


def test_programs_with_derivatives_are_counted() -> None:
    derivative = re.compile(r"gc\.(\w*grad|pullback|pushforward|hvp|jacobian|hessian)\(")
    sources = [inspect.getsource(programs.Program(name).module) for name in programs.NAMES]
    count = len([source for source in sources if derivative.search(source)])
    assert f"holds {len(sources)} programs that other people wrote" in TEXT
    assert f"\n{count} of them compute derivatives" in TEXT


@pytest.mark.parametrize("name", ["stages", "speed"])
def test_figures_are_those_that_are_drawn_now(name: str) -> None:
    drawn = figures.stages() if name == "stages" else figures.speed(report.read(figures.PROGRAMS))
    shown = (figures.FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == shown, "python -m benchmarks.figures draws them anew"
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")


def test_the_figure_of_stages_shows_what_the_program_prints() -> None:
    shown = (figures.FIGURES / "stages.svg").read_text(encoding="utf-8")
    made = figures.compiled()
    words = re.sub("<[^>]*>", "", shown)
    for line in made.source.splitlines():
        code = line.partition("#")[0].strip()
        assert code.replace(">", "&gt;") in words
    assert all(line.derived for line in figures.stage(made, "named") if "pullback" in line.shown)
    assert any(line.derived for line in figures.code(made))


def test_programs_shown_side_by_side_are_those_of_the_benchmarks() -> None:
    """Each excerpt stands in its file, and has as many lines as it is said to have."""
    text = (FOLDER / "side_by_side.md").read_text(encoding="utf-8")
    shown = re.findall(r"\(`(benchmarks/\S+)`\), (\d+) lines:\n\n```py\n(.*?)```", text, re.DOTALL)
    assert len(shown) == 6
    for file, count, excerpt in shown:
        whole = (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
        assert excerpt in whole
        assert len([line for line in excerpt.splitlines() if line.strip()]) == int(count)


def test_readme_says_what_the_files_say() -> None:
    text = " ".join((pages.ROOT / "README.md").read_text(encoding="utf-8").split())
    small, held = page.rows("programs"), page.rows("programs_avx2")
    ours, jax = (
        statistics.median([x for row in small if (x := row[f"{who}_first_ms"]) is not None])
        for who in ("machine_code", "jax")
    )
    assert f"We time {len(small)} programs that other people wrote" in text
    assert (
        f"takes {page.mean(small):.1f} times our time in the geometric mean, and is ahead in "
        f"{len(page.losses(small)) or 'none'}. With AVX2 alone it takes "
        f"{page.mean(held):.1f} times, and is ahead in {len(page.losses(held))}. A first call "
        f"takes {ours:.0f} ms in the median, in JAX {jax:.0f} ms."
    ) in text
