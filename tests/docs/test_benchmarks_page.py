"""The figure of stages shows what the program prints today."""

from __future__ import annotations

import re

from benchmarks import figures


def test_the_figure_of_stages_is_the_one_that_is_drawn_now() -> None:
    shown = (figures.FIGURES / "stages.svg").read_text(encoding="utf-8")
    assert figures.stages() == shown, "python -m benchmarks.figures draws it anew"
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
