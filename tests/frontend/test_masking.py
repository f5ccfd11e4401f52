"""What takes no part in a reduction leaves no trace in values and derivatives of any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc

NAN, INF = np.nan, np.inf
HOLES = np.array([[1.0, NAN, 2.0], [NAN, NAN, NAN], [3.0, 4.0, 4.0]])
FLOATS = ("sum", "prod", "mean", "var", "std", "max", "min", "cumsum", "cumprod")
ROUGH = np.array([[1.0, NAN, -0.5], [INF, -INF, NAN], [3.0, 4.0, INF]])
KEPT = np.array([[True, False, True], [False, False, False], [True, True, False]])


def grid(values: np.ndarray = HOLES, name: str = "x") -> gc.Tensor:
    return gc.tensor(name, {"row": None, "col": None}, dtype=values.dtype)


def run(y: Any, *given: Any) -> Any:
    xs = [grid(np.asarray(v), f"x{i}") for i, v in enumerate(given)]
    return gc.compile(xs, y(*xs))(*given)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("skipna", [False, True])
@pytest.mark.parametrize("dim", ["row", "col", None])
@pytest.mark.parametrize("name", [*FLOATS, "count"])
def test_as_xarray(name: str, dim: str | None, skipna: bool) -> None:
    """Nan of whole rows and of some places; all skipped gives what it gives in xarray."""
    array = xarray.DataArray(HOLES, dims=("row", "col"))
    options = {} if name == "count" else {"skipna": skipna}
    x = grid()
    f = gc.compile([x], getattr(x, name)(dim, **options))
    np.testing.assert_allclose(f(HOLES), getattr(array, name)(dim, **options), rtol=1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("ddof", [0, 1, 2, 3])
def test_var_counts_what_takes_part(ddof: int) -> None:
    wanted = xarray.DataArray(HOLES, dims=("row", "col")).var("col", skipna=True, ddof=ddof)
    found = run(lambda x: x.var("col", skipna=True, ddof=ddof), HOLES)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    wanted = np.var(HOLES[::2], axis=1, where=KEPT[::2], ddof=1)
    found = run(lambda x, m: x.var("col", where=m, ddof=1), HOLES[::2], KEPT[::2])
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("min_count", [0, 1, 2, 3, 4])
def test_min_count(name: str, min_count: int) -> None:
    options = {"skipna": True, "min_count": min_count}
    array = xarray.DataArray(HOLES, dims=("row", "col"))
    found = run(lambda x: getattr(x, name)("col", **options), HOLES)
    np.testing.assert_array_equal(found, getattr(array, name)("col", **options))
    whole = run(lambda x: getattr(x, name)("col", **options), np.ones((2, 3), "int32"))
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(whole), min_count > 3)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("how", ["where", "skipna"])
def test_no_derivative_of_what_takes_no_part(name: str, how: str) -> None:
    """Exactly 0, whatever stands there, in both modes and to the second order."""
    x, m, v = grid(), grid(KEPT, "m"), grid(name="v")
    options = {"where": m} if how == "where" else {"skipna": True}
    values = ROUGH if how == "where" else np.where(KEPT, ROUGH, NAN)
    y = getattr(x, name)("col", **options)
    loss = gc.where(y.isnull(), 0.0, y * y).sum()
    slope = gc.grad(loss, x)
    outputs = [
        slope,
        gc.pushforward(loss, x, v),
        gc.grad((slope * slope).sum(), x),
        gc.pushforward(slope, x, v),
        gc.grad(gc.pushforward(loss, x, v), x),
    ]
    f = gc.compile([x, m, v], outputs)
    moved = np.random.default_rng(0).normal(size=KEPT.shape)
    d, t, dd, dt, td = f(values, KEPT, moved)
    for gone in (d, dd, dt, td):
        assert np.isfinite(gone).all()
        assert (gone[~KEPT] == 0).all()
    np.testing.assert_allclose(t, (d * moved).sum(), rtol=1e-12)
    np.testing.assert_allclose(dt, td, rtol=1e-12, atol=1e-12)
    # the same values with a hole of plain zeros
    tame = f(np.where(KEPT, ROUGH, 0.0), KEPT, moved) if how == "where" else (d, t, dd, dt, td)
    for one, other in zip((d, t, dd, dt, td), tame, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
def test_softmaxes(name: str) -> None:
    function = getattr(gc.special, name)
    x, m = grid(), grid(KEPT, "m")
    y = function(x, "col", where=m)
    loss = gc.where(gc.isfinite(y), y * y, 0.0).sum()
    slope = gc.grad(loss, x)
    f = gc.compile([x, m], [y, slope, gc.grad((slope * slope).sum(), x)])
    value, d, dd = f(ROUGH, KEPT)
    for row, kept, found, first, second in zip(ROUGH, KEPT, value, d, dd, strict=True):
        alone = gc.tensor("x", {"col": int(kept.sum())})
        z = function(alone, "col")
        slope = gc.grad((z * z).sum(), alone)
        outputs = gc.compile([alone], [z, slope, gc.grad((slope * slope).sum(), alone)])
        want = outputs(row[kept])
        if name == "logsumexp":
            np.testing.assert_allclose(found, want[0], rtol=1e-14)
        else:
            np.testing.assert_allclose(found[kept], want[0], rtol=1e-14)
            assert (found[~kept] == (0 if name == "softmax" else -INF)).all()
        if kept.any():
            np.testing.assert_allclose(first[kept], want[1], rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(second[kept], want[2], rtol=1e-12, atol=1e-15)
        assert (first[~kept] == 0).all()
        assert (second[~kept] == 0).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "float32", "complex64"])
def test_dtypes_stay(dtype: str) -> None:
    """A mask changes no dtype, and integers have nothing to skip."""
    x, m = grid(np.zeros(1, dtype)), grid(KEPT, "m")
    for name in (*FLOATS, "argmax", "any", "all", "ptp"):
        if name == "ptp" and dtype == "bool":
            continue
        function = getattr(gc, name)
        plain = function(x) if name in ("argmax", "ptp") else function(x, "row")
        dim = None if name in ("argmax", "ptp") else "row"
        if name not in ("any", "all"):
            assert function(x, dim, skipna=True).dtype == plain.dtype
        if name not in ("max", "min", "ptp") or dtype not in ("int8", "uint8", "bool"):
            assert function(x, dim, where=m).dtype == plain.dtype, name


def test_positions_are_of_values_that_take_part() -> None:
    """Not of a hole that is filled with the same infinity, nor of one that holds more."""
    values = np.array([[9.0, -INF, -INF], [NAN, NAN, 1.0], [INF, 2.0, 2.0]])
    kept = np.array([[False, False, True], [False, True, True], [False, False, False]])
    found = run(lambda x, m: x.argmax("col", where=m), values, kept)
    np.testing.assert_array_equal(found, [2, 1, -1])
    found = run(lambda x, m: x.argmin("col", where=m), -values, kept)
    np.testing.assert_array_equal(found, [2, 1, -1])
    np.testing.assert_array_equal(run(lambda x: x.argmax("col", skipna=True), values), [0, 2, 0])
    small = np.array([[5, -128, -128]], "int8")
    assert run(lambda x, m: x.argmax("col", where=m), small, np.array([[0, 0, 1]], bool)) == 2
    assert run(lambda x, m: x.argmax(where=m), values, kept) == 4


def test_a_mask_brings_dims_and_lacks_some() -> None:
    """It aligns by name: dims of `x` come first, new ones are batch, missing ones count."""
    x = gc.tensor("x", {"row": 2, "col": 3})
    m = gc.tensor("m", {"copy": 2, "row": 2}, dtype="bool")
    y = gc.mean(x, "col", where=m)
    assert y.dims == ("row", "copy")
    values, mask = np.arange(6.0).reshape(2, 3), np.array([[True, False], [True, True]])
    found = gc.compile([x, m], [y, gc.mean(x, ["row", "col"], where=m), x.sum(where=True)])
    one, two, three = found(values, mask)
    np.testing.assert_array_equal(one, [[1, 1], [NAN, 4]])
    np.testing.assert_array_equal(two, [1, 2.5])
    assert three == 15


def test_ties_share_among_those_that_take_part() -> None:
    x, m = grid(), grid(KEPT, "m")
    slope = gc.grad(x.max("col", where=m).sum(), x)
    found = gc.compile([x, m], slope)(np.full((3, 3), 7.0), KEPT)
    np.testing.assert_array_equal(found, [[0.5, 0, 0.5], [0, 0, 0], [0.5, 0.5, 0]])


@pytest.mark.parametrize("name", ["max", "min"])
def test_an_initial_value_takes_part(name: str) -> None:
    """As in NumPy: also for integers, over empty dims, and as one of those that tie."""
    function = getattr(gc, name)
    values = np.array([[3, 5, 4], [1, 1, 1], [2, 9, 2]], "int8")
    x, m = grid(values), grid(KEPT, "m")
    f = gc.compile([x, m], function(x, "col", where=m, initial=4))
    wanted = getattr(np, name)(values, axis=1, where=KEPT, initial=4)
    assert f(values, KEPT).dtype == np.int8
    np.testing.assert_array_equal(f(values, KEPT), wanted)
    np.testing.assert_array_equal(f(np.zeros((2, 0), "int8"), np.zeros((2, 0), bool)), [4, 4])
    y = grid()
    for dim in ("col", ()):
        slope = gc.grad(function(y, dim, initial=7.0).sum(), y)
        found = gc.compile([y], slope)(np.array([[7.0, 7.0]]))
        np.testing.assert_allclose(found, [[1 / 3, 1 / 3]] if dim else [[0.5, 0.5]])


@pytest.mark.parametrize("sign", [1, -1])
def test_infinite_extremes_share_nothing_with_what_is_masked(sign: int) -> None:
    x, mask = gc.tensor("x", {"row": 2, "col": None}), gc.tensor("m", {"col": None}, dtype="bool")
    low = -np.inf
    values = sign * np.array([[low, 3.0, low, np.inf], [low, low, 1.0, low]])
    extreme = gc.max if sign > 0 else gc.min
    chosen = np.array([True, False, True, False])
    y, hidden = extreme(x, "col", where=mask), extreme(x, "col", where=~mask)
    grads = [gc.grad(y.sum(), x), gc.grad(hidden.sum(), x)]
    seen, unseen, rest = gc.compile([x, mask], [y, *grads])(values, chosen)
    np.testing.assert_array_equal(seen, sign * np.array([low, 1.0]))
    np.testing.assert_array_equal(unseen, [[0.5, 0, 0.5, 0], [0, 0, 1, 0]])
    np.testing.assert_array_equal(rest, [[0, 0, 0, 1], [0, 0.5, 0, 0.5]])
    missing = extreme(x.where(mask), "col", skipna=True)
    found = gc.compile([x, mask], gc.grad(missing.sum(), x))(values, chosen)
    np.testing.assert_array_equal(found, [[0.5, 0, 0.5, 0], [0, 0, 1, 0]])
