"""What a message says to write can be written: every piece of code in the library's messages."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.frontend.core.contents import SPACES
from graphcore.frontend.core.other_names import ELSEWHERE, INSTEAD
from graphcore.frontend.core.public_calls import public, public_path
from tests.refusals.bad_calls import CASES, refusal
from tests.refusals.cures import faults, pieces, run, strings

PACKAGE = Path(gc.__file__).parent
FILES = [
    file
    for file in sorted(PACKAGE.rglob("*.py"))
    if not {"llvm_kernels", "demo"} & set(file.relative_to(PACKAGE).parts)
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


GENERAL = """
import numpy as np
import graphcore as gc
x = gc.tensor("x", {"row": 4, "col": 4})
y, f = x * 2, lambda x: x.sum()
xs, dims, array = [x, y], ("row", "col"), np.ones((4, 4))
size, k, n, parts, mask, keep = 4, 2, 3, 2, y, 0.5
w, b, label = x.rename(col="out"), gc.tensor("b", {"out": 4}), gc.constant([0, 1, 2, 3], "col")
index = gc.constant([3, 2, 1, 0], "row")
"""
"""Operands for cures that show a general form; then `x` and `y` as vectors and as numbers."""


@pytest.fixture(scope="module")
def general() -> list[dict[str, Any]]:
    scope: dict[str, Any] = {}
    exec(GENERAL, scope)
    vector = gc.tensor("v", {"row": 4})
    number = gc.tensor("number", {})
    return [
        scope,
        {**scope, "x": vector, "y": vector, "array": np.ones(4)},
        {**scope, "x": number, "y": number * 2},
    ]


def check(cure: str, scopes: list[dict[str, Any]]) -> None:
    """All code in a cure is code, and what can run does."""
    found = list(pieces(cure))
    assert [fault for piece in found for fault in faults(piece)] == []
    assert [why for piece in found if (why := run(piece, scopes))] == []


@pytest.mark.parametrize(("setup", "group", "code", "says"), CASES, ids=[case[2] for case in CASES])
def test_cures_run_on_the_operands_of_their_message(
    setup: str, group: str, code: str, says: list[str], general: list[dict[str, Any]]
) -> None:
    scope: dict[str, Any] = {}
    exec(setup, scope)
    cure = str(refusal(setup, code)).partition("\n  cure: ")[2]
    check(cure, [{**general[0], **scope, "index": scope["n"]}, *general])


@pytest.mark.parametrize("name", sorted(INSTEAD | ELSEWHERE))
def test_what_stands_for_names_of_other_libraries_runs(
    name: str, general: list[dict[str, Any]]
) -> None:
    if not hasattr(gc, name):
        check(said(lambda: getattr(gc, name)), general)
    if not hasattr(gc.Tensor, name):
        check(said(lambda: getattr(general[0]["x"], name)), general)


FUNCTIONS = {
    public_path(space, name): function
    for space in ("", *SPACES)
    for name, function in public(space).items()
}


@pytest.mark.parametrize("path", FUNCTIONS)
def test_a_function_says_how_it_is_called(path: str) -> None:
    cure = said(lambda: FUNCTIONS[path](no_such_argument=1))
    assert [fault for piece in pieces(cure) for fault in faults(piece)] == []
    if shown := re.match(r"write ([\w.]+)\(", cure):
        assert inspect.unwrap(eval(shown[1], {"gc": gc})) is inspect.unwrap(FUNCTIONS[path])
