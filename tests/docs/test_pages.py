"""The snippets of README and of all pages run, in order, and print and draw what is shown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import pytest

from graphcore.ir.node import OPS
from tests.docs import pages
from tests.ops.tables import tables

pytestmark = pytest.mark.by_rule


@pytest.fixture
def forgotten_ops() -> Iterator[None]:
    """A page may declare an op of its own, which no other test should meet."""
    before = set(OPS)
    yield
    new = [OPS.pop(name) for name in OPS.keys() - before]
    for _, table in tables() if new else ():
        if isinstance(table, dict):
            for op in new:
                table.pop(op, None)


RUNNABLE = [page for page in pages.PAGES if "```python\n" in page.read_text(encoding="utf-8")]


NEEDS = {
    "docs/coming_from/jax.md": {"jax": "0.7"},
    "docs/howto/nutpie.md": {"nutpie": "0.16.8", "pymc": "6.0"},
    "docs/howto/pytensor.md": {"pytensor": "3.0", "pymc": "6.0"},
}
"""Libraries that the snippets of a page import, which tests do not ask for."""

FURTHER = {"docs/coming_from/stan_pymc.md": ("pymc", "nutpie")}
"""Libraries that the blocks `py` of a page import: these run where all of them are installed."""


@pytest.mark.usefixtures("forgotten_ops")
@pytest.mark.parametrize("page", RUNNABLE, ids=pages.name)
def test_snippets_print_what_is_shown(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library, version in NEEDS.get(pages.name(page), {}).items():
        pytest.importorskip(library, minversion=version)
    libraries = FURTHER.get(pages.name(page), ())
    further = bool(libraries) and all(map(find_spec, libraries))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    text = page.read_text(encoding="utf-8")
    with matplotlib.rc_context({"svg.hashsalt": "graphcore"}):  # names in a figure are no chance
        ran = list(pages.run(text, "python", *["py"] * further))
    drawn = {file.name for file in tmp_path.iterdir() if file.suffix in (".svg", ".png")}
    if request.config.getoption("--update-golden"):
        for snippet in ran:
            text = snippet.corrected(text)
        page.write_text(text, encoding="utf-8")
        for figure in drawn & pages.figures(page):
            (page.parent / "figures").mkdir(exist_ok=True)
            shutil.copy(figure, page.parent / "figures" / figure)
        return
    for snippet in ran:
        assert snippet.right, f"{snippet.code}\nprints\n\n{snippet.printed}"
    shown = pages.figures(page) - pages.OF_PROGRAMS
    assert drawn >= shown, "a figure of the page that no snippet draws"


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_figures_exist(page: Path) -> None:
    missing = [n for n in pages.figures(page) if not (page.parent / "figures" / n).exists()]
    assert missing == [], "pytest tests/docs --update-golden draws the figures"
