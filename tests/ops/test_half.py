"""Means of float16 by float32, as NumPy's: sums and numbers of elements soon exceed float16."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc

X = gc.tensor("x", {"row": None}, dtype="float16")
IDS = gc.arange(X.sizes["row"], dim="row") % 2
MEANS: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "mean": gc.mean,
    "where": lambda x: gc.mean(x, where=x > -1),
    "skipna": lambda x: gc.mean(x, skipna=True),
    "groups": lambda x: x.groupby(IDS, 2, "row", name="kind").mean()[0],
    "weighted": lambda x: x.weighted(gc.ones_like(x)).mean(),
}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", MEANS)
def test_means(name: str, native: bool) -> None:
    y = MEANS[name](X)
    f = gc.compile([X], [y, gc.grad(y, X)], native=native)
    for given in (np.full(3000, 30.0, np.float16), np.ones(70_000, np.float16)):
        mean, slope = f(given)
        assert mean.dtype == slope.dtype == np.float16
        assert mean == given[0]
        number = len(given) / 2 if name == "groups" else len(given)
        assert slope[0] == np.float16(1 / number) > 0


@pytest.mark.parametrize("native", [False, True])
def test_spreads(native: bool) -> None:
    given = np.tile(np.array([-200.0, 200.0], np.float16), 400)
    groups = X.groupby(IDS * 0, 1, "row", name="kind")
    found = [gc.std(X), gc.std(X, skipna=True), gc.var(X / 100), groups.std()[0]]
    values = gc.compile([X], found, native=native)(given)
    assert [float(v) for v in values] == [200.0, 200.0, 4.0, 200.0]
    assert all(v.dtype == np.float16 for v in values)
