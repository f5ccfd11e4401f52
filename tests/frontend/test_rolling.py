"""Rolling windows and blocks against xarray where values are missing or few, and refusals."""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc

REDUCTIONS = ("sum", "prod", "mean", "median", "var", "std", "max", "min", "count")
SIZES = [(7, 4), (3, 2), (1, 1), (2, 5)]
ignoring = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning")


def same(found: np.ndarray, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    rtol = 1e-5 if wanted.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, wanted.values, rtol=rtol, atol=rtol)


def values(shape: tuple[int, int], dtype: str) -> np.ndarray:
    random = np.random.default_rng(0)
    drawn = random.normal(size=shape) * 5
    if dtype.startswith("f"):
        drawn[random.random(shape) < 0.25] = np.nan
    return drawn.astype(dtype)


@ignoring
@pytest.mark.parametrize(
    "dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow), "int64"]
)
@pytest.mark.parametrize(
    ("windows", "center"), [({"a": 3}, False), ({"a": 4}, True), ({"b": 2, "a": 2}, True)]
)
@pytest.mark.parametrize("min_periods", [None, 1, 2])
def test_rolling_is_that_of_xarray(
    dtype: str, windows: Any, center: bool, min_periods: int | None
) -> None:
    options = {"dim": windows, "center": center, "min_periods": min_periods}
    x = gc.tensor("x", {"a": None, "b": None}, dtype=dtype)
    rolling = x.rolling(**options)
    named = {dim: f"{dim} lag" for dim in windows}
    f = gc.compile(
        [x],
        [*(getattr(rolling, name)() for name in REDUCTIONS), rolling.construct(named, stride=2)],
    )
    for shape in SIZES:
        array = xarray.DataArray(values(shape, dtype), dims=("a", "b"))
        theirs = array.rolling(**options)
        *reduced, seen = f(array.values)
        for name, found in zip(REDUCTIONS, reduced, strict=True):
            same(found, getattr(theirs, name)())
        same(seen, theirs.construct(named, stride=2))


@ignoring
@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("windows", [{"a": 3}, {"b": 2, "a": 2}], ids=str)
@pytest.mark.parametrize("side", ["left", "right"])
def test_coarsen_is_that_of_xarray(dtype: str, windows: Any, side: Any) -> None:
    reduced = [name for name in REDUCTIONS if name != "median"]  # NumPy's refuses empty arrays
    pairs = {dim: (dim, f"{dim} place") for dim in windows}
    x = gc.tensor("x", {"a": None, "b": None}, dtype=dtype)
    for boundary in ("trim", "pad"):
        blocks = x.coarsen(windows, boundary=boundary, side=side)
        skipping = {"skipna": True} if dtype == "float64" else {}
        made = [getattr(blocks, name)(**skipping if name != "count" else {}) for name in reduced]
        f = gc.compile([x], [*made, blocks.construct(pairs)])
        for shape in SIZES:
            array = xarray.DataArray(values(shape, dtype), dims=("a", "b"))
            theirs = array.coarsen(windows, boundary=boundary, side=side)
            *found_all, seen = f(array.values)
            for name, found in zip(reduced, found_all, strict=True):
                same(found, getattr(theirs, name)().astype(found.dtype))
            same(seen, theirs.construct(pairs).astype(seen.dtype))


def test_a_nan_makes_its_block_nan() -> None:
    x = gc.constant([1.0, np.nan, 3.0, 4.0, 5.0], "t")
    for boundary, wanted in (("trim", [np.nan, 7.0]), ("pad", [np.nan, 7.0, 5.0])):
        found = gc.compile([], x.coarsen(t=2, boundary=boundary).sum())()
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("name", "min_periods"), list(product(REDUCTIONS[:-1], [None, 1])))
def test_a_window_without_a_value_has_no_derivative(name: str, min_periods: int | None) -> None:
    """Where the result is nan for want of values, its derivative is 0, and no nan leaks from it."""
    x = gc.tensor("x", {"t": None})
    reduced = getattr(x.rolling(t=2, min_periods=min_periods), name)()
    slope = gc.grad(gc.where(gc.isnan(reduced), 0.0, reduced).sum(), x)
    f = gc.compile([x], [slope, gc.pullback(reduced, x, gc.ones_like(reduced))])
    missing = [] if min_periods is None else [np.nan, np.nan]
    for given in ([0.5, 2.0, 1.0, *missing, 3.0, 4.0], [2.0], missing):
        masked, whole = f(np.array(given))
        assert np.isfinite(masked).all()
        assert not masked[np.isnan(given)].any()
        np.testing.assert_array_equal(masked, whole)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("min_periods", [None, 1])
def test_reduce_takes_functions_that_give_integers_or_bools(
    native: bool, min_periods: int | None
) -> None:
    """Their results become floats, as there is no nan of integers."""
    x = gc.tensor("x", {"t": None})
    windows = x.rolling(t=3, min_periods=min_periods)
    reduced = [
        windows.reduce(lambda w, dims: gc.argmax(w.fillna(-9), dims[0])),
        windows.reduce(lambda w, dims: gc.any(w > 4, dims)),
        windows.reduce(gc.count),
    ]
    assert {y.dtype for y in reduced} == {np.dtype("float64")}
    array = np.array([3.0, 1, 2, 5, 4])
    rows = xarray.DataArray(array, dims="t").rolling(t=3, min_periods=min_periods).construct("w")
    enough = (~np.isnan(rows.values)).sum(1) >= (min_periods or 3)
    filled = np.nan_to_num(rows.values, nan=-9)
    wanted = [filled.argmax(1), (filled > 4).any(1), (~np.isnan(rows.values)).sum(1)]
    for found, right in zip(gc.compile([x], reduced, native=native)(array), wanted, strict=True):
        np.testing.assert_array_equal(found, np.where(enough, right, np.nan))
    assert not gc.compile([x], reduced)(np.array([]))[0].size


def test_dims_may_have_the_name_of_an_operand() -> None:
    """No function that takes dims as keywords has an operand in their way."""
    for name, function in {**vars(gc), **vars(gc.Tensor)}.items():
        if inspect.isfunction(function) and not name.startswith("_") and name != "function":
            first, *others = inspect.signature(function).parameters.values()
            keywords = [p for p in others if p.kind is p.VAR_KEYWORD and p.name != "options"]
            assert not keywords or first.kind is first.POSITIONAL_ONLY, name
    x = gc.tensor("t", {"x": 6})
    assert x.rolling(x=3).mean() is x.rolling({"x": 3}).mean()
    assert gc.coarsen(x, x=2).sum() is x.coarsen({"x": 2}).sum()
