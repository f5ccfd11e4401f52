"""Lazy results have the labels that results in memory have."""

from __future__ import annotations

import numpy as np
import pytest
import xarray

import graphcore as gc
from tests.interop.blocks.programs import require_equal

x = gc.tensor("x", {"time": None, "lat": None})
y = gc.tensor("y", {"time": None})
at = gc.tensor("at", {"place": None}, dtype="int64")
X = xarray.DataArray(
    np.arange(24.0).reshape(6, 4),
    dims=("time", "lat"),
    coords={
        "time": np.arange("2000-01", "2000-07", dtype="datetime64[M]").astype("datetime64[ns]"),
        "lat": [-30, -10, 10, 30],
        "month": ("time", np.arange(1, 7)),
        "height": 2.0,
        "area": (("time", "lat"), np.ones((6, 4))),
    },
    attrs={"units": "K"},
)
Y = X[:, 0].drop_vars(["lat", "area"])
OUTPUTS = [
    x * y,
    x.mean("time"),
    x.isel(lat=1),
    x.isel(lat=slice(1, 3)),
    x.isel(lat=at),
    x.T.rename({"lat": "south"}),
    gc.sort(x, "lat"),
    x.sum(),
    x.coarsen(lat=2).mean(),
    x.stack(place=("time", "lat")),
]


def test_coordinates_come_through() -> None:
    given = np.array([0, 2])
    for chunks in ({"time": 4}, {"time": 2, "lat": 3}):
        keep = OUTPUTS if "lat" not in chunks else [OUTPUTS[i] for i in (0, 1, 5, 7)]
        f = gc.compile([x, y, at], keep, returns="xarray", native=False)
        require_equal(f(X.chunk(chunks), Y, given), f(X, Y, given))


def test_programs_that_return_arrays_have_lazy_results_with_labels() -> None:
    f = gc.compile([x, y], {"y": x * y}, native=False)
    found = f(X.chunk(time=4), Y)["y"]
    assert found.chunks == ((4, 2), (4,))
    xarray.testing.assert_identical(found.compute(), (X * Y).drop_attrs().transpose("time", "lat"))


def test_arguments_in_other_chunks_and_orders_of_dims() -> None:
    f = gc.compile([x, y], [x * y, x.sum("time")], returns="xarray", native=False)
    found = f(X.T.chunk(time=4, lat=3), Y.chunk(time=5))
    require_equal(found, f(X.T, Y))
    assert found[0].chunks == ((4, 1, 1), (3, 1))


def test_joins_of_labels() -> None:
    early, late = X[:4].chunk(time=3), Y[2:].chunk(time=1)
    for join in ("inner", "override"):
        f = gc.compile([x, y], [x * y, (x * y).sum()], returns="xarray", join=join, native=False)
        require_equal(f(early, late), f(early.compute(), late.compute()))


def test_constants_with_labels() -> None:
    weights = X.lat.astype(float) ** 2
    k = gc.constant(weights)
    for join in ("exact", "inner"):
        f = gc.compile([x], [x * k, (x * k).sum("lat")], returns="xarray", join=join, native=False)
        require_equal(f(X.chunk(lat=3, time=2)), f(X))
        if join == "exact":
            with pytest.raises(gc.GraphValueError, match="labels of dim 'lat' differ"):
                f(X.assign_coords(lat=[1, 2, 3, 4]).chunk(lat=2))
            with pytest.raises(gc.GraphValueError, match=r"lat.* 4"):
                f(X[:, :3].chunk(lat=2))


def test_labels_that_follow_from_values_in_chunks_are_left_out() -> None:
    f = gc.compile([y, at], y.isel(time=at), returns="xarray", native=False)
    places = xarray.DataArray([0, 2, 4], dims="place")
    assert "month" in f(Y, places).coords
    found = f(Y, places.chunk(place=2))
    assert set(found.coords) == {"height"}
    assert found.values.tolist() == Y.values[[0, 2, 4]].tolist()


def test_integers_in_floats_are_converted_by_blocks() -> None:
    f = gc.compile([y], y / 2, native=False)
    given = xarray.DataArray(np.arange(5, dtype="int32"), dims="time").chunk(time=2)
    assert f(given).values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
