"""The pages of the API name every public name once, and nothing that there is not."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.frontend.core import contents
from graphcore.frontend.core.contents import SPACES
from tests.docs import pages

API = pages.ROOT / "docs" / "api"
PAGES = sorted(API.glob("*.md"))
THEMES = {**contents.themes(), **{space: contents.themes(space)[space] for space in SPACES}}
del THEMES["Modules"]  # each has a page of its own
DIRECTIVE = re.compile(r"^```\{(names|entries|methods|members|result)\} (.+)\n```$", re.MULTILINE)


def directives(page: Path, kind: str) -> list[str]:
    """What the directives of a kind on a page are about."""
    found = DIRECTIVE.findall(page.read_text(encoding="utf-8"))
    return [what for name, what in found if name == kind]


def test_every_public_name_stands_on_one_page() -> None:
    sections = [title for parts in THEMES.values() for title in parts]
    described = [title for page in PAGES for title in directives(page, "entries")]
    assert sorted(described) == sorted(sections)
    assert max(Counter(sections).values()) == 1, "two sections of one title"
    listed = [theme for page in PAGES for theme in directives(page, "names")]
    assert sorted(listed) == sorted(THEMES)


@pytest.mark.parametrize("page", PAGES, ids=pages.name)
def test_a_table_has_the_names_that_the_page_describes(page: Path) -> None:
    listed = [title for theme in directives(page, "names") for title in THEMES[theme]]
    assert listed == directives(page, "entries")
    assert directives(page, "methods") == directives(page, "members")


def test_every_method_stands_on_one_page() -> None:
    assert [kind for page in PAGES for kind in directives(page, "members")] == [
        "Compiled",
        "Tensor",
    ]


@pytest.mark.parametrize("page", PAGES, ids=pages.name)
def test_a_page_begins_with_two_sentences_and_a_table(page: Path) -> None:
    title, text, table, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert title.startswith("# ")
    assert len(re.findall(r"[.](?:\s|$)", text)) == 2
    assert table.startswith(("```{names} ", "| "))


@pytest.mark.parametrize("page", PAGES, ids=pages.name)
def test_what_a_page_names_exists(page: Path) -> None:
    for place in directives(page, "result"):
        module, _, kind = place.rpartition(".")
        assert isinstance(getattr(importlib.import_module(f"graphcore.{module}"), kind), type)
    for path in re.findall(r"\bgc\.([a-z_.]*[a-z])", page.read_text(encoding="utf-8")):
        found: object = gc
        for part in path.split("."):
            found = getattr(found, part)


def test_the_index_lists_every_page() -> None:
    text = (API / "index.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((\w+)\.md\)", text)
    assert sorted(linked) == sorted(page.stem for page in PAGES if page.stem != "index")
    toctree = text.partition(":hidden:")[2].strip("`\n ").split()
    assert toctree == linked
