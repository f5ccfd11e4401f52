"""The sentences of pages and docstrings, without code, tables and markup."""

from __future__ import annotations

import inspect
import re

FENCED = re.compile(r"^[ ]*(```|~~~|:::).*?^[ ]*\1", re.DOTALL | re.MULTILINE)
"""Blocks of code, and directives."""
LEFT_OUT = (
    FENCED,
    re.compile(r"^\s*\|.*$", re.MULTILINE),  # tables
    re.compile(r"^\s*(>>>|\.\.\.).*(\n\s*\S.*)*", re.MULTILINE),  # examples of docstrings
    re.compile(r"^#.*$|^\([\w-]+\)=$|^[=~-]{3,}$", re.MULTILINE),  # headings, labels
    re.compile(r"<[^>\n]+>"),
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),
)
LINK = re.compile(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])")
CODE = re.compile(r"(``?)[^`]+\1")
END = re.compile(r"(?<=[.!?:])[\"')*_]*\s+(?=[\"'(*_]*[A-Z0-9`])|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")

SECTION = re.compile(r"\n(?=(\w+)\n-{3,}\n)")
ENTRIES = ("Parameters", "Attributes", "Returns", "Raises")
"""Sections of docstrings that have entries: a line of names, and text that is indented."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line; a piece of code is one word, `Code`."""
    for pattern in LEFT_OUT:
        text = pattern.sub("\n\n", text)
    text = LINK.sub(r"\1", CODE.sub("Code", text)).replace("**", "")
    parts = (" ".join(part.split()) for part in END.split(f"\n{text}\n"))
    return [part for part in parts if part and words(part)]


def sentences_of_docstring(text: str) -> list[str]:
    """The sentences of a docstring; the text of each entry of a section is by itself."""
    first, *parts = SECTION.split(inspect.cleandoc(text))
    found = sentences(first)
    for title, part in zip(parts[::2], parts[1::2], strict=True):
        body = part.split("\n", 2)[2]
        found += sentences(re.sub(r"^\S.*$", "\n", body, flags=re.M) if title in ENTRIES else body)
    return found


def words(sentence: str) -> list[str]:
    """The words of a sentence."""
    return re.findall(r"[^\W\d_][\w'-]*", sentence)
