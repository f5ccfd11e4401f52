"""The page of a compiled program in a headless browser: pointing, searching, folding, keyboard.

Where there is no browser these tests are skipped, and the last lines of a run of tests say so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.inspection.page_data import Data
from graphcore.inspection.why import Explained
from tests.inspection.browser import MISSING, Browser, browser
from tests.inspection.test_page import SHOWN, compiled, hostile

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

DRAWN = """
return [...document.querySelectorAll('.stage')].map(
    (stage) => [...stage.querySelectorAll(arguments[0])].map(
        (line) => [Number(line.dataset.line),
                   line.children[1].textContent + line.children[2].textContent]))
"""
PRINT = "window.dispatchEvent(new Event(arguments[0]))"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as found:
        yield found


class Shown:
    """A program and its page in the window; the console stays empty."""

    def __init__(self, f: gc.Compiled, window: Browser, folder: Path) -> None:
        self.f, self.window = f, window
        self.data = Data(f).document()
        file = folder / "program.html"
        f.to_html(file)
        window.open(file)
        assert window.run("return document.documentElement.dataset.ready") == "true"

    def lines(self, css: str = ".line[data-line]") -> list[list[list[Any]]]:
        """The lines that a selector finds in all stages, each its number and text."""
        found: list[list[list[Any]]] = self.window.run(DRAWN, css)
        return found

    def all_lines(self, css: str = ".line[data-line]") -> list[list[list[Any]]]:
        """The same of all lines, as they are drawn for paper."""
        self.window.run(PRINT, "beforeprint")
        found = self.lines(css)
        self.window.run(PRINT, "afterprint")
        return found

    def text(self, css: str) -> str:
        found: str = self.window.run(f"return document.querySelector('{css}').innerText")
        return found

    def element(self, stage: int, line: int) -> str:
        return f"#line-{stage}-{line}"

    def at(self, stage: int, op: str) -> int:
        """The first line of a stage that has an op."""
        rows, nodes = self.data["stages"][stage]["lines"], self.data["nodes"]
        return next(at for at, x in enumerate(rows) if x[2] >= 0 and nodes[x[2]][0] == op)

    def quiet(self) -> None:
        assert self.window.console() == []


@pytest.fixture(params=[SHOWN[0], *(pytest.param(x, marks=pytest.mark.slow) for x in SHOWN[1:])])
def shown(request: pytest.FixtureRequest, window: Browser, tmp_path: Path) -> Shown:
    return Shown(compiled(request.param), window, tmp_path)


def test_every_line_is_there(shown: Shown) -> None:
    expected = [
        [[at, line[0] + line[1]] for at, line in enumerate(stage["lines"])]
        for stage in shown.data["stages"]
    ]
    assert shown.all_lines() == expected
    headings = shown.window.run(
        "return [...document.querySelectorAll('h2')].map((x) => x.firstChild.textContent)"
    )
    assert headings == list(shown.f.stages)
    assert shown.text("#title") == shown.data["title"]
    shown.quiet()


def test_pointing_shows_what_a_node_was_made_of_and_what_came_of_it(shown: Shown) -> None:
    last = len(shown.data["stages"]) - 1
    found = Explained(shown.f)
    printed = found.printed_nodes(len(found.names) - 1).of
    number = Data(shown.f).numbers
    node = next(x for x in reversed(shown.f.stages["scheduled"].nodes()) if x.inputs)
    line = next(
        at for at, x in enumerate(shown.data["stages"][last]["lines"]) if x[2] == number[node]
    )
    shown.window.run(
        "stages[arguments[0]].cursor = arguments[1]; show(stages[arguments[0]])", last, line
    )
    shown.window.run("document.querySelectorAll('.stage')[arguments[0]].scrollIntoView()", last)
    shown.window.point(shown.element(last, line))
    assert shown.lines(".line.self")[last] == [[line, printed[node].line]]
    shown.window.point(shown.element(last, line), click=True)
    answer = found.backwards(node, len(found.names) - 1)
    above = [text for _, text in shown.all_lines(".line.above")[0]]
    own = [text for _, text in shown.all_lines(".line.self")[0]]
    for each in (*answer.written, *answer.asked):
        assert each.text.partition(" body ")[2] or each.text in (*above, *own)
    said = shown.text("#details")
    assert str(answer.node.origin) in said
    assert "operations" in said
    for step in answer.steps[:20]:
        assert str(step).partition("  ")[0] in said
    for x in node.inputs:
        assert printed[x].name in said
    shown.quiet()


def test_a_users_node_shows_what_became_of_it(window: Browser, tmp_path: Path) -> None:
    shown = Shown(compiled("logreg"), window, tmp_path)
    line = shown.at(0, "dot")
    window.point(shown.element(0, line))
    for stage in range(1, len(shown.f.stages)):
        assert shown.lines(".line.below")[stage] or shown.lines(".line.self")[stage]
    inputs = {text.partition(":")[0] for _, text in shown.lines(".line.above")[0]}
    assert inputs >= {"x", "w"}
    window.point("#title")  # the pointer leaves the stages
    assert not any(shown.lines(".line.self"))
    assert shown.text("#details") == ""
    window.point(shown.element(0, line), click=True)
    window.point("#title")
    assert shown.lines(".line.self")[0], "a node that was clicked is kept"
    window.press("Escape")
    assert not any(shown.lines(".line.self"))
    shown.quiet()


def test_searching(shown: Shown) -> None:
    window = shown.window
    window.press("/", *"mul")
    lines, nodes = shown.data["lines"], shown.data["nodes"]
    count = sum(
        "mul" in "  ".join([x[0] + x[1], *(lines[nodes[x[2]][5]] if x[2] >= 0 else ())]).lower()
        for stage in shown.data["stages"]
        for x in stage["lines"]
    )
    assert shown.text("#found") == f"{count:,} lines"
    window.press("Enter")
    assert shown.text("#found") == f"1 of {count:,} lines"
    first = shown.text(".line.cursor.hit.self .text")
    assert window.run("return document.activeElement.className") == "lines"
    window.press("n", "n", "N")
    assert shown.text("#found") == f"2 of {count:,} lines"
    assert shown.text(".line.cursor.hit.self .text") or first
    window.press("/")
    window.press("Escape")
    assert shown.text("#found") == ""
    assert not any(shown.lines(".line.hit"))
    shown.quiet()


def test_folding(window: Browser, tmp_path: Path) -> None:
    shown = Shown(compiled("lstm"), window, tmp_path)
    rows = shown.data["stages"][0]["lines"]
    loop = next(at for at, line in enumerate(rows) if line[4])
    window.point(f"#line-0-{loop} .fold", click=True)
    hidden = set(range(loop + 1, loop + 1 + rows[loop][4]))
    assert {at for at, _ in shown.all_lines()[0]} == set(range(len(rows))) - hidden
    assert window.run(f"return {shown_attr(loop)}") == "false"
    window.point("#line-0-0", click=True)
    for _ in range(loop):
        window.press("ArrowDown")
    window.press(" ")
    assert window.run(f"return {shown_attr(loop)}") == "true"
    window.press("F")
    for stage, drawn in zip(shown.data["stages"], shown.all_lines(), strict=True):
        assert not any(stage["lines"][at][3] for at, _ in drawn)
    window.press("/", *"= tanh(", "Enter")  # what is found is unfolded
    assert "= tanh(" in shown.text(".line.cursor.hit.self .text")
    shown.quiet()


def shown_attr(line: int) -> str:
    return f"document.querySelector('#line-0-{line}').getAttribute('aria-expanded')"


def test_keyboard(shown: Shown) -> None:
    window = shown.window
    window.point(shown.element(0, 0), click=True)
    window.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert shown.lines(".line.cursor.self")[0] == shown.lines("#line-0-1")[0]
    window.press("ArrowRight")
    assert window.run("return document.activeElement.dataset.stage") == "1"
    assert "self" in shown.text("#details") or shown.lines(".line.cursor")[1]
    window.press("Enter")
    assert shown.text("#details").startswith("lowered")
    window.press("End")
    rows = shown.data["stages"][1]["lines"]
    assert shown.lines(".line.cursor")[1][0][0] == len(rows) - 1
    window.press("ArrowUp", "[", "]", "PageDown", "Home", "ArrowLeft")
    assert window.run("return document.activeElement.dataset.stage") == "0"
    window.press("Escape")
    assert shown.text("#details") == ""
    shown.quiet()


def test_cost_is_a_colour(shown: Shown) -> None:
    dear = shown.lines(".line.cost4, .line.cost3, .line.cost2, .line.cost1")
    assert any(dear)
    shown.window.run(
        "const x = document.getElementById('cost'); x.value = 'none';"
        "x.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    assert not any(shown.lines(".line.cost4, .line.cost3, .line.cost2, .line.cost1"))
    shown.quiet()


def test_light_dark_and_paper(shown: Shown) -> None:
    window = shown.window
    ground = "return getComputedStyle(document.body).backgroundColor"
    colours = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        window.chrome("Emulation.setEmulatedMedia", features=[feature])
        colours.append(window.run(ground))
    window.chrome("Emulation.setEmulatedMedia", features=[])
    assert len(set(colours)) == 2
    pdf = base64.b64decode(window.post("/print", background=False))
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 1
    assert all(shown.lines()), "after printing, the lines that are seen are drawn"
    shown.quiet()


def test_no_string_becomes_markup(window: Browser, tmp_path: Path) -> None:
    shown = Shown(hostile(), window, tmp_path)
    window.point(shown.element(0, 0), click=True)
    window.press("/", *"<script>", "Enter")
    window.run(PRINT, "beforeprint")
    assert window.run("return typeof window.hacked") == "undefined"
    assert (
        window.run("return document.querySelectorAll('img, .line script, aside script').length")
        == 0
    )
    assert window.run("return document.scripts.length") == 2
    texts = [text for stage in shown.lines() for _, text in stage]
    assert any(text.startswith("'<!--': f64") for text in texts)
    assert any("</script>" in text for text in texts)
    shown.quiet()


@pytest.mark.slow
def test_ten_thousand_nodes(window: Browser, tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    y = x
    for at in range(3_333):
        y = gc.sin(y) * x + at
    window.chrome("Performance.setTimeDomain", timeDomain="threadTicks")  # others may be busy
    window.chrome("Performance.enable")
    shown = Shown(gc.compile([x], [y.sum()], native=False), window, tmp_path)
    assert all(len(graph) > 9_999 for graph in shown.f.stages.values())
    metrics = {x["name"]: x["value"] for x in window.chrome("Performance.getMetrics")["metrics"]}
    assert 0 < metrics["TaskDuration"] < 2, "seconds of the processor to load the page"
    assert window.run("return document.querySelectorAll('.line').length") < 1_000
    window.point(shown.element(0, 5))
    assert all(drawn for drawn in shown.lines(".line.below, .line.self"))
    window.press("/", *"%6000:", "Enter")
    assert shown.text(".line.cursor.self .name") == "%6000"
    window.press("ArrowDown")
    assert shown.text(".line.cursor.self .name") == "%6001"
    window.press("End")
    assert shown.lines(".line.cursor")[0][0][0] == len(shown.data["stages"][0]["lines"]) - 1
    window.press("F", "Escape")
    assert shown.text("#details") == ""
    assert {len(drawn) for drawn in shown.all_lines()} == {2_000}
    shown.quiet()
