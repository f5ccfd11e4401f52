"""The page of a compiled program: its data is complete, and strings of users are no markup."""

from __future__ import annotations

import json
import linecache
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

import graphcore as gc
from benchmarks.programs import Program
from graphcore.inspection.ancestry import Ancestry
from graphcore.inspection.page import page
from graphcore.inspection.page_data import Data
from graphcore.inspection.printed import PrintedNodes
from graphcore.ir.provenance import described_by
from tests.inspection.test_golden import logistic_regression

HOSTILE = (
    *("</script><script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 1'>"),
    *("<!--", "]]>", "&lt;b&gt;", "\u2028\u2029", "'\"`${1}", "/*SCRIPT*/", "/*DATA*/", "\x00"),
)
SHOWN = ("logreg", "lstm", "gp")


def compiled(name: str) -> gc.Compiled:
    f = Program(name).make("graphcore")
    assert isinstance(f, gc.Compiled)
    return f


def hostile() -> gc.Compiled:
    xs = [gc.tensor(name, {name: None}) for name in HOSTILE]
    return gc.compile(xs, {name: gc.exp(x).sum() for name, x in zip(HOSTILE, xs, strict=True)})


class Parts(HTMLParser):
    """The tags of a page, and the text of each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.held: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.held.append(data)


def test_the_page_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "program.html"
    logistic_regression().to_html(file)
    logistic_regression().to_html(str(file))  # it is replaced
    parts = Parts(file.read_text("utf-8"))
    assert {"src", "href", "srcset", "action"}.isdisjoint(key for _, x in parts.tags for key in x)
    assert "default-src 'none'" in str(parts.tags)
    assert "http" not in file.read_text("utf-8").replace("http-equiv", "")


def test_a_path_is_asked_for() -> None:
    for wrong in (None, 3, "", b"x.html"):
        with pytest.raises(gc.GraphError, match=r"to_html: path=.*names no file"):
            logistic_regression().to_html(wrong)


@pytest.mark.parametrize("name", SHOWN)
def test_every_node_and_every_link_is_there(name: str) -> None:
    f = compiled(name)
    found = Data(f)
    data = json.loads(json.dumps(found.document()))
    assert [stage["name"] for stage in data["stages"]] == list(f.stages)
    for stage, graph in zip(data["stages"], f.stages.values(), strict=True):
        assert set(found.numbers) >= set(graph.every_node())
        lines = {x.line for x in PrintedNodes(graph).of.values() if x.node in x.view.lines}
        with described_by(graph.trace):
            last = {line.split(": ", 1)[1] for line in lines}
        shown = [text[2:] for _, text, node, *_ in stage["lines"] if node >= 0]
        assert set(shown) >= {x for x in last if "#" not in x}
    ancestry: Ancestry = found.found.ancestry
    numbers, rows = found.numbers, data["nodes"]
    for node, at in numbers.items():
        above, stack = set(), [at]
        while stack:
            new = [x for x in rows[stack.pop()][2] if x not in above]
            above.update(new)
            stack += new
        history = ancestry.history(node)
        wanted = {numbers[x] for x in (*history.written, *history.asked)}
        assert wanted - {at} <= above
        assert rows[at][1] == [numbers[x] for x in dict.fromkeys(node.inputs)]
        steps = {step for x in {at, *above} for step in rows[x][3]}
        said = {data["steps"][step][1] for step in steps}
        telling = [link for link in history.links if link.rule is not None]
        assert not telling or said, node
        line, _ = data["lines"][rows[at][5]]
        assert line == str(found.found.trace.origin(node))
    for node in ancestry.written:
        images = ancestry.images(node, 0, len(f.passes) - 1).found
        gone = rows[numbers[node]][4]
        assert bool(gone) == (not images)
        for image in images:
            assert image is node or reaches(rows, numbers[image], numbers[node])


def reaches(rows: list[list[list[int]]], start: int, end: int) -> bool:
    seen, stack = {start}, [start]
    while stack:
        new = [x for x in rows[stack.pop()][2] if x not in seen]
        seen.update(new)
        stack += new
    return end in seen


def test_loops_hold_their_lines() -> None:
    stage = Data(compiled("lstm")).document()["stages"][-1]
    lines = stage["lines"]
    holding = [at for at, line in enumerate(lines) if line[4]]
    assert holding
    for at in holding:
        name, _, _, depth, held, times = lines[at]
        inside = lines[at + 1 : at + 1 + held]
        assert name.startswith("%")
        assert all(line[3] > depth for line in inside)
        assert lines[at + 1 + held][3] <= depth
        assert max(line[5] for line in inside) > times


def test_no_string_becomes_markup() -> None:
    text = page(hostile())
    usual = Parts(page(logistic_regression()))
    parts = Parts(text)
    assert [tag for tag, _ in parts.tags] == [tag for tag, _ in usual.tags]
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(data)
    assert data.isascii()
    names = {line[0] for stage in json.loads(data)["stages"] for line in stage["lines"]}
    assert "'<!--'" in names
    assert any(name.startswith("'<img src") for name in names), names


def test_strings_are_text_in_notebooks() -> None:
    f = hostile()
    x = gc.tensor(HOSTILE[0], {HOSTILE[1]: 2})
    for shown in (f._repr_html_(), x._repr_html_(), (2 * x)._repr_html_()):
        tags = [tag for tag, _ in Parts(shown).tags]
        assert set(tags) == {"details", "summary", "code", "pre"}
        assert tags[0] == "details"


def test_notebooks_show_programs_folded() -> None:
    f = logistic_regression()
    shown = f._repr_html_()
    assert "open" not in shown.partition("<pre>")[0]
    assert all(f"<summary>{name}: " in shown for name in f.stages)
    x = gc.tensor("x", {"row": 3})
    assert "&lt;Tensor: f64[]&gt;" in gc.exp(x).sum()._repr_html_()
    assert "sum(%0; over row)" in gc.exp(x).sum()._repr_html_()
    assert "<pre>" in f.stages["named"]._repr_html_()
    long = x
    for _ in range(1000):
        long = gc.sin(long)
    assert len(long._repr_html_().splitlines()) < 60


CELL = """\
import graphcore as gc
x = gc.tensor("x", {"row": 3})

y = gc.exp(x)
f = gc.compile([x], y.sum())
"""


def test_lines_of_cells_have_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "/tmp/ipykernel_1/123.py"
    ran = {file: 3}
    named = SimpleNamespace(
        format_code_name=lambda name: ("Cell", f"In[{ran[name]}]") if name in ran else None
    )
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=named))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    lines = [f"{line}\n" for line in CELL.splitlines()]
    monkeypatch.setitem(linecache.cache, file, (len(CELL), None, lines, file))
    scope: dict[str, object] = {}
    exec(compile(CELL, file, "exec"), scope)
    f = scope["f"]
    assert isinstance(f, gc.Compiled)
    assert "In [3]:4" in str(f.stages["named"])
    assert ("In [3]:4", "y = gc.exp(x)") in Data(f).document()["lines"]
    assert [each.node.node.op.name for each in f.why("In [3]:4").answers] == ["exp"]
    ran[file] = 5  # the same cell, run again
    assert "In [5]:4" in str(f.stages["named"])
    with pytest.raises(gc.GraphError, match=r"built at In \[5\]:4"):
        scope["y"].sum("col")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert "123.py:4" in str(f.stages["named"])
