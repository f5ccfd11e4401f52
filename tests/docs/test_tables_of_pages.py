"""What stands in the right columns of the pages for users of other libraries can be evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc
from tests.docs.pages import ROOT, name

PAGES = sorted((ROOT / "docs" / "coming_from").glob("*.md"))
CELL = re.compile(r"^\|.*?(?<!\\)\|(.*)\|$", re.MULTILINE)
FIRST = re.compile(r"[-(]*([A-Za-z]\w*)")


def of_all_pages() -> dict[str, Any]:
    """What the snippets of all pages speak of."""
    x, w = gc.tensor("x", {"row": 2, "col": None}), gc.tensor("w", {"row": 2})
    return {
        **{"gc": gc, "np": np, "x": x, "w": w, "loss": (x * w).sum(), "array": np.ones(2)},
        "xs": gc.tensor("xs", {"batch": None, "row": 2, "col": None}),
        "ids": gc.constant([0, 1], "row"),
        "positions": [1, 0],
        "month": xarray.DataArray([1, 2], dims="row", name="month"),
    }


def of_networks() -> dict[str, Any]:
    """What the snippets for users of PyTorch speak of besides."""
    return {
        "bias": gc.tensor("bias", {}),
        "y": gc.tensor("y", {"row": 2, "col": None}),
        "mask": gc.tensor("mask", {"row": 2, "col": None}, dtype="bool"),
        "words": gc.constant([0, 1, 1], "position"),
    }


def of_models() -> dict[str, Any]:
    """What the snippets for users of Stan and PyMC speak of."""
    names = ("value", "mean", "z", "eta", "k", "n")
    theta = gc.tensor("theta", {"parameter": 3})
    return {
        "gc": gc,
        "np": np,
        **{each: gc.tensor(each, {"sample": 3}) for each in names},
        **{each: gc.tensor(each, {}) for each in ("scale", "nu", "a", "b", "rho")},
        "cov": gc.tensor("cov", {"i": 2, "j": 2}),
        "y": gc.tensor("y", {"i": 2}),
        "alpha": gc.tensor("alpha", {"group": 2}),
        "group": np.array([0, 1, 1]),
        "theta": theta,
        "many": gc.tensor("many", {"chain": None, "parameter": 3}),
        "logp": -(theta**2).sum(),
    }


MORE = {"pytorch": lambda: {**of_all_pages(), **of_networks()}, "stan_pymc": of_models}


def snippets(page: Path, known: dict[str, Any]) -> Iterator[str]:
    """The code of right columns that begins with a name that the page speaks of."""
    for row in CELL.findall(page.read_text(encoding="utf-8")):
        for snippet in re.findall("`([^`]+)`", row):
            first = FIRST.match(snippet)
            if first and first[1] in known:
                yield snippet


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_snippets_of_the_tables_run(page: Path) -> None:
    scope = MORE.get(page.stem, of_all_pages)
    found = list(snippets(page, scope()))
    assert len(found) >= (0 if page.stem == "index" else 10)
    for snippet in found:
        assert eval(snippet, scope()) is not None, snippet
