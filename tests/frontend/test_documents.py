"""Docstrings of public functions: one line that says what it is, each parameter, an example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import graphcore as gc

MODULES = (gc, gc.fft, gc.linalg, gc.optimize, gc.signal, gc.special, gc.tree)
FUNCTIONS = {
    f"{module.__name__}.{name}": function
    for module in MODULES
    for name in dir(module)
    if inspect.isfunction(function := getattr(module, name))
}


def described(doc: str) -> set[str]:
    """The names that a Parameters section lists."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n[A-Z]|\Z)", doc, flags=re.S)
    lines = section[1].splitlines() if section else []
    listed = [line for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for line in listed for name in line.split(",")}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_parameters_are_described(function: Callable[..., Any]) -> None:
    """All of them, where there are more than three, and no others."""
    doc = inspect.getdoc(function) or ""
    names = set(inspect.signature(function).parameters)
    assert described(doc) <= names
    operands = names <= set("xyzw")  # which the summary names
    if described(doc) or (len(names) > 3 and not operands):
        left_out = names - described(doc) - {"wrong"}  # which takes what is refused
        assert all(name.endswith("_kwargs") for name in left_out)  # in place of a dict


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_first_line_is_a_sentence_and_an_example_follows(function: Callable[..., Any]) -> None:
    summary, *rest = (inspect.getdoc(function) or "").splitlines()
    assert summary.endswith((".", ")", "`", "|", "0", "1"))
    assert rest[0] == ""
    assert any(line.startswith(">>> ") for line in rest)
