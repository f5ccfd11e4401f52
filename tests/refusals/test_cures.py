"""What a message says to write can be written: every piece of code in the library's messages."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.frontend.core.other_names import ELSEWHERE, INSTEAD
from tests.refusals.cures import check, faults, general, pieces, strings

PACKAGE = Path(gc.__file__).parent
UNREAD = {"llvm_kernels", "demo", *["pytensor"] * (find_spec("pytensor") is None)}
FILES = [
    file
    for file in sorted(PACKAGE.rglob("*.py"))
    if UNREAD.isdisjoint(file.relative_to(PACKAGE).parts)
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_the_code_in_messages_is_code(file: Path) -> None:
    """Of all strings, so that no message is forgotten."""
    texts = strings(ast.parse(file.read_text("utf-8")))
    ours = [p for text in texts for p in pieces(text) if p.startswith(("gc.", "np.", "x.", "@gc"))]
    assert [fault for piece in ours for fault in faults(piece)] == []


def said(call: Callable[[], object]) -> str:
    """The cure of the refusal of a call."""
    with pytest.raises(gc.GraphError) as caught:
        call()
    return str(caught.value).partition("\n  cure: ")[2]


@pytest.mark.parametrize("name", sorted(INSTEAD | ELSEWHERE))
def test_what_stands_for_names_of_other_libraries_runs(name: str) -> None:
    if not hasattr(gc, name):
        check(said(lambda: getattr(gc, name)), general())
    if not hasattr(gc.Tensor, name):
        check(said(lambda: getattr(general()[0]["x"], name)), general())
