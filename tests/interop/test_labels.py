"""Coordinates of results, compared with those that xarray gives: names, dims, dtypes and values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray

import graphcore as gc
from tests.operations import CASES
from tests.operations.case import DEFAULT

DATA = xarray.DataArray(
    np.random.default_rng(0).normal(size=(6, 4)),
    {
        "time": pd.date_range("2000-01-01", periods=6),
        "lat": [10, 20, 30, 40],
        "height": ("lat", [5.0, 250.0, 1200.0, 1300.0]),
        "name": ("lat", list("abcd")),
        "month": ("time", [1, 1, 2, 2, 3, 3]),
        "area": (("time", "lat"), np.arange(24.0).reshape(6, 4)),
        "run": 7,
    },
    ("time", "lat"),
)
ROW = DATA[0].drop_vars(["time", "month", "area", "run"])
AT = {"time": xarray.DataArray([0, 1, 2], dims="p"), "lat": xarray.DataArray([3, 2, 1], dims="p")}

SAME: dict[str, Callable[[Any], Any]] = {
    "2 * x": lambda x: 2 * x,
    "exp": lambda x: np.exp(x),
    "where": lambda x: x.where(x > 0),
    "fillna": lambda x: x.fillna(0),
    "clip": lambda x: x.clip(0, 1),
    "isnull": lambda x: x.isnull(),
    "sum": lambda x: x.sum("time"),
    "sum of all": lambda x: x.sum(),
    "std": lambda x: x.std("lat"),
    "max": lambda x: x.max("time"),
    "argmax": lambda x: x.argmax("time"),
    "median": lambda x: x.median("time"),
    "anomaly": lambda x: x - x.mean("time"),
    "cumsum": lambda x: x.cumsum("time"),
    "cumprod": lambda x: x.cumprod("lat"),
    "roll": lambda x: x.roll(time=1),
    "shift": lambda x: x.shift(time=1),
    "shift back": lambda x: x.shift(time=-2, lat=1),
    "change": lambda x: (x - x.shift(time=1)).isel(time=slice(1, None)),
    "pad": lambda x: x.pad(lat=1),
    "pad dates": lambda x: x.pad(time=(1, 2)),
    "pad with 0": lambda x: x.pad(lat=1, constant_values=0),
    "pad, part": lambda x: x.pad(lat=1).isel(lat=slice(1, -1)),
    "pad, reflect": lambda x: x.pad(lat=2, mode="reflect"),
    "pad, symmetric": lambda x: x.pad(time=2, mode="symmetric"),
    "pad, wrap": lambda x: x.pad(lat=2, mode="wrap"),
    "pad, edge": lambda x: x.pad(lat=2, mode="edge"),
    "pad, mean": lambda x: x.pad(lat=2, mode="mean"),
    "pad, maximum": lambda x: x.pad(lat=2, mode="maximum"),
    "pad, ramp": lambda x: x.pad(lat=2, mode="linear_ramp"),
    "diff": lambda x: x.diff("time"),
    "diff twice": lambda x: x.diff("lat", n=2),
    "coarsen": lambda x: x.coarsen(lat=2).mean(),
    "coarsen dates": lambda x: x.coarsen(time=3).sum(),
    "coarsen, count": lambda x: x.coarsen(time=2).count(),
    "coarsen, trim": lambda x: x.coarsen(time=4, boundary="trim").max(),
    "coarsen, right": lambda x: x.coarsen(time=4, boundary="trim", side="right").mean(),
    "coarsen, pad": lambda x: x.coarsen(time=4, boundary="pad").mean(),
    "coarsen two": lambda x: x.coarsen(time=2, lat=2).mean(),
    "coarsen twice": lambda x: x.coarsen(time=2).mean().coarsen(time=3).mean(),
    "rolling": lambda x: x.rolling(time=3).mean(),
    "rolling, center": lambda x: x.rolling(time=3, center=True).mean(),
    "rolling, min_periods": lambda x: x.rolling(time=3, min_periods=1).max(),
    "rolling, count": lambda x: x.rolling(time=2).count(),
    "construct": lambda x: x.rolling(time=3).construct("lag"),
    "construct, stride": lambda x: x.rolling(time=3).construct("lag", stride=2),
    "construct, center": lambda x: x.rolling(time=3, center=True).construct("lag", stride=2),
    "rolling and coarsen": lambda x: x.rolling(lat=2).mean().coarsen(time=2).mean().diff("lat"),
    "quantile": lambda x: x.quantile([0.1, 0.9], "time"),
    "one quantile": lambda x: x.quantile(0.5, "lat"),
    "stack": lambda x: x.stack(z=("time", "lat")),
    "stack and double": lambda x: 2 * x.stack(z=("lat", "time")),
    "stack, positions": lambda x: x.stack(z=("time", "lat")).isel(z=[3, 1]),
    "stack, slice": lambda x: x.stack(z=("time", "lat")).isel(z=slice(2, 9, 3)),
    "stack and rename": lambda x: x.stack(z=("time", "lat")).rename(z="w"),
    "stack and sum": lambda x: x.stack(z=("time", "lat")).sum("z"),
    "rename": lambda x: x.rename(time="t"),
    "rename twice": lambda x: x.rename(time="t").rename(t="u"),
    "swap_dims": lambda x: x.swap_dims(lat="height"),
    "swap_dims to strings": lambda x: x.swap_dims(lat="name"),
    "swap_dims to a new name": lambda x: x.swap_dims(lat="place"),
    "swap_dims and rename": lambda x: x.swap_dims(lat="name").rename(name="n"),
    "rename and swap_dims": lambda x: x.rename(lat="y").swap_dims(y="name"),
    "swap_dims, positions": lambda x: x.swap_dims(lat="name").isel(name=[2, 1]),
    "swap_dims, one": lambda x: x.swap_dims(lat="name").isel(name=1),
    "swap_dims to months": lambda x: x.swap_dims(time="month"),
    "isel": lambda x: x.isel(time=slice(1, 5, 2)),
    "reversed": lambda x: x.isel(time=slice(None, None, -1)),
    "positions": lambda x: x.isel(lat=[3, 0, 0]),
    "one position": lambda x: x.isel(time=2),
    "one of each": lambda x: x.isel(time=2, lat=1),
    "pointwise": lambda x: x.isel(AT),
    "head": lambda x: x.head(time=2),
    "tail": lambda x: x.tail(lat=2),
    "thin": lambda x: x.thin(time=2),
    "transpose": lambda x: x.transpose("lat", "time"),
    "expand_dims": lambda x: x.expand_dims(copy=2),
    "squeeze": lambda x: x.isel(time=[1]).squeeze("time"),
    "times a DataArray": lambda x: x * ROW,
    "times one row": lambda x: x * DATA.isel(time=0, drop=True),
    "times a number with a coordinate": lambda x: x.mean() + ROW.isel(lat=1),
}
OTHERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "ffill": (lambda x: x.ffill("time"), lambda x: x),
    "bfill": (lambda x: x.bfill("time"), lambda x: x),
    "rank": (lambda x: x.rank("time"), lambda x: x),
    "concat": (lambda x: gc.concat([x, x], "time"), lambda x: xarray.concat([x, x], "time")),
    "concat parts": (
        lambda x: gc.concat([x.isel(lat=slice(2)), x.isel(lat=[3])], "lat"),
        lambda x: xarray.concat([x.isel(lat=slice(2)), x.isel(lat=[3])], "lat"),
    ),
    "concat single ones": (
        lambda x: gc.concat([x.isel(time=2), x.isel(time=0)], "time"),
        lambda x: xarray.concat([x.isel(time=2), x.isel(time=0)], "time"),
    ),
    "concat along a new dim": (
        lambda x: gc.concat([x, x], "copy"),
        lambda x: xarray.concat([x, x], "copy"),
    ),
    "a constant": (lambda x: x.mean() + gc.constant(DATA), lambda x: x.mean() + DATA),
    "dot": (lambda x: gc.dot(x, ROW, dim="lat"), lambda x: xarray.dot(x, ROW, dim="lat")),
    "weighted": (
        lambda x: x.weighted(gc.constant(ROW)).mean("lat"),
        lambda x: x.weighted(ROW).mean("lat"),
    ),
    "cov": (lambda x: gc.cov(x, x, "time"), lambda x: xarray.cov(x, x, dim="time")),
    "corr": (lambda x: gc.corr(x, x, "time"), lambda x: xarray.corr(x, x, dim="time")),
    "gradient": (lambda x: gc.gradient(x, "lat"), lambda x: x.differentiate("lat")),
    "cumulative_trapezoid": (
        lambda x: gc.cumulative_trapezoid(x, dim="lat", initial=0),
        lambda x: x.cumulative_integrate("lat"),
    ),
    "unstack": (
        lambda x: x.stack(z=("time", "lat")).unstack(z={"time": 6, "lat": 4}),
        lambda x: x.stack(z=("time", "lat")).unstack("z"),
    ),
    "broadcast_like": (
        lambda x: gc.broadcast_like(x.mean("lat"), x),
        lambda x: x.mean("lat").broadcast_like(x),
    ),
}
TABLE = {name: (f, f) for name, f in SAME.items()} | OTHERS
LEFT_OUT = {
    **dict.fromkeys(("coarsen", "coarsen two"), "name"),  # xarray refuses a mean of strings
    **dict.fromkeys(("quantile", "one quantile"), "run"),  # xarray drops scalars there
}
"""Coordinates that the data for a function lack."""
KEPT_MORE = {
    "unstack": "a coordinate of one of the dims that were merged stays along that dim alone",
    "broadcast_like": "coordinates along a dim that comes from the other tensor come with it",
}
"""Results with coordinates that xarray does not have, or has repeated along more dims."""
VALUES_DIFFER = {"gradient", "cumulative_trapezoid", "rank", "ffill", "bfill"}
"""Functions that do something else with values: their points are not the coordinate."""


def described(x: xarray.DataArray, names: Any) -> dict[str, tuple[Any, ...]]:
    """The coordinates of an array: dims, in the order of the array's, dtypes and values."""
    found = {}
    for name in names:
        coord = x.coords[name].transpose(*[dim for dim in x.dims if dim in x.coords[name].dims])
        dtype = "dates" if coord.dtype.kind == "M" else coord.dtype  # NaT alone has another unit
        found[name] = coord.dims, dtype, str(coord.values.tolist())
    return found


def compare(ours: xarray.DataArray, theirs: xarray.DataArray, more: bool = False) -> None:
    assert ours.dims == theirs.dims
    names = set(theirs.dims) & set(theirs.coords) if more else set(theirs.coords)
    assert more or set(ours.coords) == names
    assert described(ours, names) == described(theirs, names)
    for dim in theirs.indexes:
        assert ours.indexes[dim].nlevels == theirs.indexes[dim].nlevels


@pytest.mark.parametrize("name", TABLE)
def test_results_have_the_coordinates_that_xarray_gives_them(name: str) -> None:
    ours, theirs = TABLE[name]
    data = DATA.drop_vars(LEFT_OUT.get(name, ()))
    x = gc.tensor("x", {"time": None, "lat": None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        wanted = theirs(data)
    found = gc.compile([x], ours(x), returns="xarray")(data)
    compare(found, wanted, name in KEPT_MORE)
    if name not in VALUES_DIFFER:
        np.testing.assert_allclose(found.values, wanted.values)


def test_an_index_of_several_levels_stays() -> None:
    merged = DATA.drop_vars(["area", "month", "height", "name", "run"]).stack(z=("time", "lat"))
    z = gc.tensor("z", {"z": None})
    for function in (
        lambda z: 2 * z,
        lambda z: z.isel(z=slice(2, 5)),
        lambda z: z.isel(z=[4, 1]),
        lambda z: z.isel(z=3),
        lambda z: z.rename(z="w"),
        lambda z: z.roll(z=1),
        lambda z: z.cumsum("z"),
    ):
        found = gc.compile([z], function(z), returns="xarray")(merged)
        xarray.testing.assert_allclose(found, function(merged))
        assert [*found.xindexes] == [*function(merged).xindexes]
    back = gc.compile([z], z.unstack(z={"time": 6, "lat": 4}), returns="xarray")(merged)
    xarray.testing.assert_identical(back, merged.unstack("z").drop_attrs())
    for other in ({"time": 4, "lat": 6}, {"lat": 4, "time": 6}, {"a": 6, "b": 4}):
        assert not gc.compile([z], z.unstack(z=other), returns="xarray")(merged).coords


def test_a_dim_renamed_to_another_coordinate_has_no_labels() -> None:
    """xarray refuses it."""
    x = gc.tensor("x", {"time": None, "lat": None})
    f = gc.compile([x], 2 * x.rename(lat="height"), returns="xarray")
    assert set(f(DATA).coords) == {"time", "name", "month", "area", "run"}


def test_derivatives_have_the_coordinates_of_both() -> None:
    x = gc.tensor("x", {"time": None, "lat": None})
    data = DATA[:2].drop_vars(["area", "month", "run", "name", "height"])
    y = (x**2).sum("lat")
    for mode in ("forward", "reverse"):
        found = gc.compile([x], gc.jacobian(y, x, mode=mode), returns="xarray")(data)
        assert found.dims == ("time", "time'", "lat")
        for dim, of in (("time", "time"), ("time'", "time"), ("lat", "lat")):
            np.testing.assert_array_equal(found.coords[dim], data.coords[of])
    found = gc.compile([x], gc.hessian(y.sum(), x), returns="xarray")(data)
    assert set(found.coords) == {"time", "lat", "time'", "lat'"}
    loss = (x.rolling(time=2).mean().fillna(0) ** 2).sum()
    compare(gc.compile([x], gc.grad(loss, x), returns="xarray")(data), data)


def test_tensors_of_several_arguments_are_joined_with_their_labels() -> None:
    x, more = (
        gc.tensor("x", {"time": None, "lat": None}),
        gc.tensor("y", {"time": "m", "lat": None}),
    )
    joined = gc.concat([x, more], "time")
    data = DATA.drop_vars(["area", "run"])
    run = gc.compile([x, more], joined, returns="xarray")
    compare(run(data[:2], data[2:]), data)
    assert "time" not in run(data[:2].values, data[2:]).coords
    part = gc.compile([x, more], joined.isel(time=[3, 0]).pad(time=1), returns="xarray")
    compare(part(data[:2], data[2:]), data.isel(time=[3, 0]).pad(time=1))


def test_other_than_xarray_labels_of_no_elements_stay_empty() -> None:
    x = gc.tensor("x", {"time": None, "lat": None})
    f = gc.compile([x], x.coarsen(time=2).mean().pad(lat=1), returns="xarray")
    found = f(DATA[:0].drop_vars("name"))
    assert found.coords["time"].shape == (0,)
    assert found.coords["lat"].shape == (6,)


def test_blocks_of_labels_without_a_mean_have_none() -> None:
    """xarray refuses them."""
    x = gc.tensor("x", {"time": None, "lat": None})
    found = gc.compile([x], x.coarsen(lat=2).mean(), returns="xarray")(DATA)
    assert set(DATA.coords) - set(found.coords) == {"name"}


YEAR = xarray.DataArray(
    np.random.default_rng(2).normal(size=(400, 3)),
    {"time": pd.date_range("2000-01-01", periods=400), "lat": [1, 2, 3],
     "region": ("lat", ["sea", "land", "sea"])},
    ("time", "lat"),
)  # fmt: skip


@pytest.mark.parametrize("by", ["month", "season", "year", "region"])
def test_groups_are_named_by_their_labels(by: str) -> None:
    ids = YEAR.region if by == "region" else getattr(YEAR.time.dt, by)
    x = gc.tensor("x", {"time": None, "lat": None})
    ours, theirs = x.groupby(ids), YEAR.groupby(ids)
    for function in ("mean", "max", "count", "all", "median", "last", "cumsum"):
        found = gc.compile([x], getattr(ours, function)(), returns="xarray")(YEAR)
        wanted = getattr(theirs, function)().transpose(*found.dims)
        xarray.testing.assert_allclose(found, wanted)
        compare(found, wanted)
    anomaly = gc.compile([x], ours - ours.mean(), returns="xarray")(YEAR)
    wanted = (theirs - theirs.mean()).transpose(*anomaly.dims)
    xarray.testing.assert_allclose(anomaly, wanted)
    compare(anomaly, wanted)


def test_groups_of_another_year_are_refused() -> None:
    x = gc.tensor("x", {"time": None, "lat": None})
    f = gc.compile([x], x.groupby(YEAR.time.dt.month).mean())
    with pytest.raises(gc.GraphValueError, match="labels of dim 'time' differ"):
        f(YEAR.assign_coords(time=YEAR.time + pd.Timedelta("1D")))


def test_groups_by_a_list_of_labels() -> None:
    x = gc.tensor("x", {"day": 3})
    mean = x.groupby(["b", "a", "b"], dim="day", name="kind").mean()
    found = gc.compile([x], mean, returns="xarray")([1.0, 2.0, 5.0])
    assert found.coords["kind"].values.tolist() == ["a", "b"]
    assert found.values.tolist() == [2.0, 3.0]
    slope = gc.compile([x], gc.grad((mean**2).sum(), x))([1.0, 2.0, 5.0])
    assert slope.tolist() == [3.0, 4.0, 3.0]


def test_labels_that_a_function_gives_are_not_joined_with_others() -> None:
    """Two quantiles, and groups of two kinds, are different things of one name."""
    x = gc.tensor("x", {"time": None, "lat": None})
    halves = [x.quantile(q, "time") for q in ([0.1, 0.9], [0.25, 0.75])]
    found = gc.compile([x], [*halves, halves[1] - halves[0]], returns="xarray")(YEAR)
    assert found[0].coords["quantile"].values.tolist() == [0.1, 0.9]
    assert found[1].coords["quantile"].values.tolist() == [0.25, 0.75]
    assert "quantile" not in found[2].coords
    single = [x.quantile(q, "time") for q in (0.25, 0.5)]
    found = gc.compile([x], [*single, single[0].quantile(0.75)], returns="xarray")(YEAR)
    assert [float(y.coords["quantile"]) for y in found[:2]] == [0.25, 0.5]


# ---- random programs

Step = Callable[[Any], Any]


def steps(rng: np.random.Generator, x: xarray.DataArray) -> list[Step]:
    """Some steps that a value allows, each for tensors and DataArrays alike."""
    found: list[Step] = [lambda v: 2 * v, lambda v: v.where(v > 0)]
    for dim in x.dims:
        size, at = x.sizes[dim], int(rng.integers(x.sizes[dim]))
        few = [int(i) for i in rng.integers(size, size=3)]
        found += [
            lambda v, dim=dim: v.cumsum(dim),
            lambda v, dim=dim: v.roll({dim: 2}),
            lambda v, dim=dim: v.shift({dim: 1}),
            lambda v, dim=dim: v - v.mean(dim),
            lambda v, dim=dim: v.isel({dim: slice(None, None, -1)}),
            lambda v, dim=dim, few=few: v.isel({dim: few}),
            lambda v, dim=dim: v.pad({dim: 1}),
            lambda v, dim=dim: v.pad({dim: (2, 0)}, mode="edge"),
            lambda v, dim=dim: v.rename({dim: f"{dim}2"}),
            lambda v, dim=dim: v.rolling({dim: 2}).mean(),
            lambda v, dim=dim: v.coarsen({dim: 2}, boundary="pad", side="right").max(),
        ]
        if size > 2:  # xarray has no mean of no dates
            found += [
                lambda v, dim=dim: v.coarsen({dim: 2}, boundary="trim").mean(),
                lambda v, dim=dim: v.diff(dim),
                lambda v, dim=dim: v.pad({dim: 1}, mode="reflect"),
                lambda v, dim=dim: v.isel({dim: slice(1, None, 2)}),
                lambda v, dim=dim: v.rolling({dim: 2}).construct("w").sum("w"),
            ]
        if x.ndim > 1:
            found += [lambda v, dim=dim, at=at: v.isel({dim: at}), lambda v, dim=dim: v.sum(dim)]
        others = [c for c in x.coords if x.coords[c].dims == (dim,) and c != dim]
        found += [lambda v, dim=dim, to=to: v.swap_dims({dim: to}) for to in others]
    if x.ndim == 2:
        merged = tuple(x.dims)
        found += [lambda v: v.transpose(), lambda v: v.stack(z=merged).isel(z=slice(0, None, 2))]
    return found


def check_chain(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    theirs: Any = DATA.drop_vars(["name", "run"])
    data, x = theirs, gc.tensor("x", {"time": None, "lat": None})
    ours: Any = x
    for _ in range(most):
        some = steps(rng, theirs)
        step = some[rng.integers(len(some))]
        theirs, ours = step(theirs), step(ours)
        if 0 in theirs.shape or any(theirs.indexes[d].nlevels > 1 for d in theirs.indexes):
            break
    found = gc.compile([x], ours, returns="xarray")(data)
    compare(found, theirs)


@pytest.mark.parametrize("seed", range(8))
def test_chains_of_functions_keep_what_xarray_keeps(seed: int) -> None:
    check_chain(seed, 4)


@pytest.mark.slow
def test_more_chains_of_functions_keep_what_xarray_keeps() -> None:
    for seed in range(8, 300):
        check_chain(seed, 6)


# ---- every function of the table of public functions

LABELS: dict[str, list[Any]] = {
    **{"row": [10, 20, 30], "col": [*"pqrs"], "batch": [0.5, 1.5]},
    **{"one": [7], "six": [1, 2, 3, 4, 5, 6], "i": ["x", "y"]},
}
LOST = {
    **dict.fromkeys(("imag", "isreal", "iscomplex"), "of a real argument no element is read"),
    **dict.fromkeys(("callback", "callback with a rule"), "nothing is known of the function"),
    "grad per of a parameter": "the dim of instances is not one of the parameter",
    "solve_tridiagonal": "linear algebra has no labels",
    "ravel": "a vector in one dim has no labels, also when it is taken apart",
    "coarsen construct": "labels along two dims",
    "at set everything": "all elements are those of a number",
}
"""Functions whose results lack labels that the same formula has in xarray."""
CHOSEN = {"windows", "windows apart", "windows dilated", "windows of several"}
"""Functions that give one label to windows, of which xarray has no function."""


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = [*tree.values()]
    return [x for part in tree for x in leaves(part)] if isinstance(tree, list | tuple) else [tree]


@pytest.mark.slow
def test_no_function_gives_labels_that_its_formula_in_xarray_does_not() -> None:
    """Formulas that work on bare arrays have none, and some of ours keep more."""
    wrong, compared = [], 0
    for name, case in CASES.items():
        rng = np.random.default_rng(0)
        given, inputs = [], []
        for number, of in enumerate(case.inputs):
            values, dims = of.draw(rng, DEFAULT), of.dims.split()
            given.append(xarray.DataArray(values, {dim: LABELS[dim] for dim in dims}, dims))
            sizes = {dim: DEFAULT[dim] for dim in dims}
            inputs.append(gc.tensor(f"x{number}", sizes, dtype=str(values.dtype)))
        found = gc.compile(inputs, case.ours(*inputs), returns="xarray")(*given)
        try:
            wanted = case.theirs(*given)
        except Exception:  # of formulas that need bare arrays, or positions without labels
            continue
        compared += 1
        for ours, theirs in zip(leaves(found), leaves(wanted), strict=False):
            for dim in set(ours.dims) & set(getattr(theirs, "coords", ())):
                labels = theirs.coords[dim].values.tolist()
                own = ours.coords[dim].values.tolist() if dim in ours.coords else None
                if str(own) != str(labels) and name not in CHOSEN and (own or name not in LOST):
                    wrong.append((name, dim, own, labels))
    assert [x for x in wrong if x[0] != "pad ramp by tensor"] == []  # whose formula is a concat
    assert compared > 900


def test_elements_that_each_step_moves_have_no_labels() -> None:
    """What a carry stands for is another thing after each step: the search for it ends."""
    row = ROW.reset_coords(drop=True)
    x = gc.tensor("x", {"lat": 4})
    steps = (lambda i, c: gc.flip(c, "lat"), lambda i, c: c * 2)
    results = [gc.fori_loop(0, 3, step, x) for step in steps]
    flipped, kept = gc.compile([x], results, returns="xarray")(row)
    np.testing.assert_array_equal(flipped, row[::-1])
    assert "lat" not in flipped.coords
    np.testing.assert_array_equal(kept.lat, row.lat)
