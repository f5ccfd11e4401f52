"""An index without a name that pairs all with all: said once, silent where it is on purpose."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc

ALPHA, WIDE = gc.tensor("alpha", {"county": 3}), gc.tensor("wide", {"county": None, "run": None})
Y, INDEX = gc.tensor("y", {"obs": 4}), np.array([0, 2, 2, 1])

MISTAKES: list[Callable[[], Any]] = [
    lambda: Y - ALPHA[INDEX],
    lambda: ALPHA.isel(county=INDEX) * Y,
    lambda: gc.take(ALPHA, INDEX.tolist(), "county") < Y,
    lambda: Y - 2 * gc.exp(WIDE[{"county": INDEX}]),
    lambda: gc.where(Y > 0, Y, WIDE[{"county": INDEX}].sum("run")),
    lambda: gc.clip(Y, ALPHA[INDEX]),
    lambda: Y - (ALPHA[INDEX] + WIDE[{"county": INDEX}]),
    lambda: ALPHA[INDEX] + xarray.DataArray(np.ones(4), dims="obs"),
]
ON_PURPOSE: list[Callable[[], Any]] = [
    lambda: Y - ALPHA[{"county": ("county", INDEX)}],
    lambda: Y - ALPHA[{"county": ("obs", INDEX)}],
    lambda: Y - ALPHA[gc.constant(INDEX, "county")],
    lambda: Y - ALPHA[xarray.DataArray(INDEX, dims="county")],
    lambda: Y - ALPHA[INDEX].rename(county="pick"),
    lambda: Y - ALPHA[INDEX[:3]],
    lambda: Y - ALPHA[INDEX] * gc.tensor("own", {"county": 4}),
    lambda: Y - gc.tensor("many", {"county": 6})[[True, True, False, True, True, False]],
    lambda: Y.isel(obs=[0]) - ALPHA[[1]],
    lambda: (Y * gc.tensor("b", {"obs": 4, "county": 4})) - ALPHA[INDEX],
    lambda: (ALPHA[INDEX], gc.linalg.eigh(gc.eye({"row": 3, "col": 3})).values * ALPHA),
]


@pytest.mark.parametrize("build", MISTAKES)
def test_it_is_said_with_the_line_and_the_cure(build: Callable[[], Any]) -> None:
    line = build.__code__.co_firstlineno
    with pytest.warns(gc.GraphWarning) as said:
        found = build()
    assert set(found.dims) >= {"obs", "county"}
    text = str(said[0].message)
    assert f"without a name at test_unnamed.py:{line} (from " in text
    assert 'name the index, {"county": ("obs", index)}' in text
    assert (said[0].filename, said[0].lineno, len(said)) == (__file__, line, 1)


@pytest.mark.parametrize("build", ON_PURPOSE)
def test_it_is_silent_where_it_is_on_purpose(build: Callable[[], Any]) -> None:
    build()
    with pytest.warns(gc.GraphWarning):
        MISTAKES[0]()  # which may make the same nodes
    build()


def test_it_is_said_once_or_refused_by_a_filter() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            Y / ALPHA[INDEX]
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", gc.GraphWarning)
        with pytest.raises(gc.GraphWarning, match="cure: name the index"):
            Y / ALPHA[INDEX]
