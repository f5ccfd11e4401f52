"""The developers' pages name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, name

PAGES = [
    *(ROOT / "docs" / "developers").glob("*.md"),
    ROOT / "CONTRIBUTING.md",
    ROOT / "tests" / "README.md",
    ROOT / "graphcore" / "backends" / "llvm_kernels" / "README.md",
]
NAMED = re.compile(r"`((?:[\w.]+/)*\w+\.(?:py|md)|(?:[\w.]+/)+[\w.]+)/?`")
IN_COMMANDS = re.compile(r" (tests/[a-z_/]+(?:\.py)?)")


def test_the_pages_name_files() -> None:
    assert sum(len(NAMED.findall(page.read_text(encoding="utf-8"))) for page in PAGES) > 150


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page: Path) -> None:
    """From the root, the package, the page, or a folder of the package, if no path is given."""
    text = page.read_text(encoding="utf-8")
    named = {*NAMED.findall(text), *IN_COMMANDS.findall(text)}
    folders = [ROOT / folder for folder in ("graphcore", "tests", "benchmarks", "docs", ".ci")]
    files = ["/" + f.relative_to(ROOT).as_posix() for top in folders for f in top.rglob("*")]
    near = [f.as_posix() for f in page.parent.rglob("*")]
    missing = [x for x in named if not any(f.endswith(f"/{x}") for f in [*files, *near])]
    assert missing == []
