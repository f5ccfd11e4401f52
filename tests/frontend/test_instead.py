"""Names that there are not: what is said of them, and that what is said to be written is there."""

from __future__ import annotations

import re

import pytest

import graphcore as gc
from graphcore.frontend.core.instead import INSTEAD, instead

MODULES = [gc, gc.fft, gc.linalg, gc.optimize, gc.signal, gc.special, gc.tree]


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_a_cure_names_functions_that_are_there(name: str) -> None:
    cure = instead(name, "", ("row",))
    assert cure.startswith("use ")
    for path in re.findall(r"gc\.([\w.]+)", cure):
        found: object = gc
        for part in path.split("."):
            found = getattr(found, part)
    for method in re.findall(r"\bx\.(\w+)", cure):
        assert hasattr(gc.tensor("x", {"row": 3}), method)


def test_names_that_are_nearly_ours() -> None:
    assert instead("sofmax") == "did you mean gc.special.softmax?"
    assert instead("solv", "linalg") == "did you mean gc.linalg.solve?"
    assert instead("compille") == "did you mean gc.compile?"
    assert instead("zzz") == ""


def test_what_comes_between_shows_no_address() -> None:
    x = gc.tensor("x", {"row": 3})
    shown = [
        *(repr(x.at), repr(x.at[1:]), repr(x.rolling(row=2)), repr(x.coarsen(row=3))),
        *(repr(x.weighted(x)), repr(gc.compile([x], x))),
    ]
    assert not any("0x" in text for text in shown), shown
