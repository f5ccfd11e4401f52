"""The pages that show code: their snippets, what these print and draw, and their tables."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in str(page)),
    ]
)

BLOCK = re.compile(
    r"^```(python|py)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
"""Code, and what it prints. `py` is code that needs libraries which tests do not ask for."""
FIGURE = re.compile(
    r"!\[[^\]]*\]\((figures/[\w.]+)\)|^```\{(?:image|figure)\} (figures/[\w.]+)", re.M
)
OF_PROGRAMS = {"stages.svg", "speed.svg"}
"""Figures that `python -m benchmarks.figures` draws, not a snippet of the page that shows them."""

PLACE = re.compile(r"(  (?!model)[\w/]+\.py):\d+(?=  )")
"""A place of the library in an answer of `f.why`: its line changes with the library."""


def name(page: Path) -> str:
    """The page's path from the root of the checkout, which names its test."""
    return page.relative_to(ROOT).as_posix()


def figures(page: Path) -> set[str]:
    """The names of the pictures that a page shows from the folder `figures` beside it."""
    found = FIGURE.findall(page.read_text(encoding="utf-8"))
    return {Path(a or b).name for a, b in found}


class Snippet(NamedTuple):
    """A block of code, the output that stands below it, if any, and the output that it has."""

    language: str
    code: str
    shown: str | None
    printed: str

    @property
    def right(self) -> bool:
        """Whether what is shown is printed; `...` stands for anything."""
        if self.shown is None:
            return True
        shown, printed = self.shown.rstrip() + "\n", self.printed.rstrip() + "\n"
        return doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)

    def corrected(self, text: str) -> str:
        """The text of the page with the output that this snippet has."""
        if self.right:
            return text
        block = f"```{self.language}\n{self.code}```\n\n```text\n"
        return text.replace(f"{block}{self.shown}```\n", f"{block}{self.printed.rstrip()}\n```\n")


def run(text: str, *languages: str) -> Iterator[Snippet]:
    """Run the blocks of a page in order, in one scope; an error is output, where one is shown."""
    scope: dict[str, Any] = {"__name__": "model"}
    blocks = [block.groups() for block in BLOCK.finditer(text) if block[1] in languages]
    for language, code, shown in blocks:
        out = io.StringIO()
        linecache.cache["model.py"] = len(code), None, code.splitlines(keepends=True), "model.py"
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(code, "model.py", "exec", dont_inherit=True), scope)
            except Exception as error:
                if shown is None:
                    raise
                out.write(f"{type(error).__name__}: {error}")
        yield Snippet(language, code, shown, PLACE.sub(r"\1:…", out.getvalue()))
