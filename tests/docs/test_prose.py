"""Pages are in plain English: short sentences, and a README of one screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import pages, prose

LONGEST = 30
README = pages.ROOT / "README.md"
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_sentences_are_short(page: Path) -> None:
    found = prose.sentences(page.read_text(encoding="utf-8"))
    assert [s for s in found if len(prose.words(s)) > LONGEST] == []


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = prose.CODE.sub("", prose.FENCED.sub("", page.read_text(encoding="utf-8")))
    links = LINK.findall(text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_readme_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 130
    assert [line for line in lines if len(line) > 120] == []
