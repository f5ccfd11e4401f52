"""Results by blocks are those of the whole."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import xarray

import graphcore as gc
from tests.interop.blocks.programs import (
    BATCH,
    DERIVED,
    INPUTS,
    REDUCED,
    arguments,
    chunked,
    require_equal,
)

CHUNKS = [
    {"time": 3, "lat": 2},
    {"time": (1, 6)},
    {"lat": (0, 4, 0, 2)},
    {},
    {"time": 1, "lat": 1},
]
ALL = {"batch": BATCH, "reduced": REDUCED, "derived": DERIVED}


def test_chunks_along_two_dims() -> None:
    given = arguments()
    some = [BATCH, REDUCED, {name: DERIVED[name] for name in ("loss", "dw", "dx")}]
    f = gc.compile(INPUTS, some, native=False, returns="xarray")
    require_equal(f(*chunked(given, CHUNKS[0])), f(*given))


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
def test_any_chunks(native: bool) -> None:
    given = arguments()
    f = gc.compile(INPUTS, ALL, native=native, returns="xarray")
    expected = f(*given)
    for chunks in CHUNKS:
        require_equal(f(*chunked(given, chunks)), expected)


def test_extremes_are_equal_to_the_bit_and_order_of_sums_is_fixed() -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], [x.max(), x.min(), x.sum(), (x > 0).any(), (x > 0).all()], native=False)
    rng = np.random.default_rng(0)
    values = rng.normal(size=1000)
    given = xarray.DataArray(values, dims="row").chunk(row=7)
    found = dask.compute(f(given), scheduler="sync")[0]
    again = dask.compute(f(given), scheduler="threads")[0]
    whole = f(values)
    assert [float(y) for y in found] == [float(y) for y in again]
    for place in (0, 1, 3, 4):
        assert found[place].values == whole[place]
    assert abs(float(found[2]) - whole[2]) <= 1000 * np.finfo(float).eps * np.abs(values).sum()
    holes = xarray.DataArray(np.where(np.arange(9) == 4, np.nan, 1.0), dims="row").chunk(row=2)
    assert np.isnan(dask.compute(f(holes)[:3], scheduler="sync")[0]).all()


def test_small_floats_and_integers_keep_their_dtypes() -> None:
    for dtype in ("float16", "float32", "int8", "complex64"):
        x = gc.tensor("x", {"row": None}, dtype=dtype)
        outputs = [x.sum(), x.mean(), x.var(), x.prod()]
        f = gc.compile([x], outputs, native=False, returns="xarray")
        given = xarray.DataArray(np.arange(5).astype(dtype), dims="row")
        (found,) = dask.compute(f(given.chunk(row=2)), scheduler="sync")
        for y, other in zip(found, f(given), strict=True):
            assert y.dtype == other.dtype
            xarray.testing.assert_allclose(y, other, rtol=2e-3 if dtype == "float16" else 1e-6)


def test_an_empty_dim() -> None:
    x = gc.tensor("x", {"row": None, "col": 2})
    f = gc.compile([x], [2 * x, x.sum()], native=False, returns="xarray")
    given = xarray.DataArray(np.zeros((0, 2)), dims=("row", "col"))
    require_equal(f(given.chunk(row=1)), f(given))


def test_results_together_take_one_task_for_each_block() -> None:
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {})
    loss = ((x * w - 1) ** 2).mean()
    slope = gc.grad(loss, w)
    f = gc.compile([x, w], [loss, slope, gc.grad(slope, w), x * w], native=False)
    calls = []

    def block(values: np.ndarray) -> np.ndarray:
        calls.append(len(values))
        return values

    data = da.ones(12, chunks=3).map_blocks(block, meta=np.empty(0))
    found = dask.compute(f(xarray.DataArray(data, dims="row"), 3.0), scheduler="sync")[0]
    assert [float(y) for y in found[:3]] == [4.0, 4.0, 2.0]
    assert calls == [3] * 4  # a mean loss and its derivatives are one pass

    away = gc.compile([x], x - x.mean(), native=False)
    calls.clear()
    lazy = away(xarray.DataArray(data, dims="row"))
    assert calls == []
    assert lazy.compute(scheduler="sync").values.tolist() == [0.0] * 12
    assert calls == [3] * 8  # two passes read the data twice


def test_a_gradient_descent_in_python() -> None:
    x, y = gc.tensor("x", {"row": None, "col": 2}), gc.tensor("y", {"row": None})
    w = gc.tensor("w", {"col": 2})
    step = gc.compile([w, x, y], w - 0.5 * gc.grad(((gc.dot(x, w) - y) ** 2).mean(), w))
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(50, 2)), np.array([1.0, -2.0])
    given = [
        xarray.DataArray(z, dims=d).chunk(row=8) for z, d in ((X, ("row", "col")), (X @ W, "row"))
    ]
    found = np.zeros(2)
    for _ in range(20):
        found = step(found, *given).compute(scheduler="sync").values
    np.testing.assert_allclose(found, W, rtol=1e-3)
    assert len(step._by_blocks._plans) == 1


def test_functions_of_a_script() -> None:
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {})
    f = gc.compile([x, w], (x * gc.callback(lambda w: w + 1, w)(w)).sum(), native=False)
    assert f(xarray.DataArray(np.ones(5), dims="row").chunk(row=2), 1.0).values == 10.0


def test_functions_and_trees_and_names() -> None:
    @gc.function(data={"x": ("row",), "y": ("row",)}, native=False)
    def f(data: dict[str, gc.Tensor], power: int = 1) -> dict[str, gc.Tensor]:
        return {"sum": ((data["x"] * data["y"]) ** power).sum(), "x": data["x"] + 1}

    data = xarray.Dataset({"x": ("row", np.arange(4.0)), "y": ("row", np.ones(4))})
    for given in (data.chunk(row=3), {"x": data.x.chunk(row=1), "y": np.ones(4)}):
        for found in (f(given, power=2), f(data=given, power=2), gc.over_blocks(f, given, power=2)):
            assert float(found["sum"]) == 14.0
            assert found["x"].values.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("target", ["numpy", "native"])
def test_questions_load_what_is_in_chunks(target: str) -> None:
    x = gc.tensor("x", {"time": None, "lat": None})
    f = gc.compile([x], gc.exp(x).sum("time"), target=target)
    whole = xarray.DataArray(np.arange(6.0).reshape(3, 2), dims=("time", "lat"))
    profile = f.profile(whole.chunk(time=2))
    assert sum(step.calls for step in profile.steps) > 0
    f.check(whole.chunk(time=2))
