"""Pages are in plain English: short sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages, prose

LONGEST = 30


@pytest.mark.parametrize("page", [p for p in pages.PAGES if p.name != "README.md"], ids=pages.name)
def test_sentences_are_short(page: Path) -> None:
    found = prose.sentences(page.read_text(encoding="utf-8"))
    assert [s for s in found if len(prose.words(s)) > LONGEST] == []
