"""Pages are in plain English: short sentences, and a README of one screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import docstrings, pages, prose

LONGEST = 30
README = pages.ROOT / "README.md"
SHOWN = docstrings.shown()
SEVERAL = re.compile(r"^\w+, \w[\w, ]*$(?=\n    )", re.MULTILINE)
"""An entry of a section of a docstring for several names at once."""
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_sentences_are_short(page: Path) -> None:
    found = prose.sentences(page.read_text(encoding="utf-8"))
    assert [s for s in found if len(prose.words(s)) > LONGEST] == []


def test_sentences_of_docstrings_are_short() -> None:
    found = [(name, s) for name, text in SHOWN.items() for s in prose.sentences_of_docstring(text)]
    assert [(name, s) for name, s in found if len(prose.words(s)) > LONGEST] == []


def test_sentences_of_sections_are_by_themselves() -> None:
    text = """Twice `x`: a sum. Not a product.

    Parameters
    ----------
    x, y
        A number
    **more
        Others. None of them.

    Raises
    ------
    ValueError
        If it is not finite.

    Notes
    -----
    Some more.

    >>> twice(2)
    4
    """
    assert prose.sentences_of_docstring(text) == [
        *("Twice Code: a sum.", "Not a product.", "A number", "Others.", "None of them."),
        *("If it is not finite.", "Some more."),
    ]


def test_each_parameter_has_a_text_of_its_own() -> None:
    found = [(name, several) for name, text in SHOWN.items() for several in SEVERAL.findall(text)]
    assert found == []


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = prose.CODE.sub("", prose.FENCED.sub("", page.read_text(encoding="utf-8")))
    links = LINK.findall(text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_readme_is_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 130
    assert [line for line in lines if len(line) > 120] == []
