"""Groups against pandas: few and no elements, missing ones, integers, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

import graphcore as gc


def by_pandas(values: Any, ids: Any, size: int, skipna: bool) -> dict[str, Any]:
    """The same of each group, by pandas or NumPy; pandas alone always leaves out nan."""
    found: dict[str, list[Any]] = {}
    for group in range(size):
        mask = (ids == group) & ~(skipna & np.isnan(values))
        v, at = pandas.Series(values[mask]), np.flatnonzero(mask)
        none = v.empty
        row = {
            "median": v.median(skipna=skipna),
            "quantile": np.nan if none else np.quantile(v, 0.3),
            "lower": np.nan if none else np.quantile(v, 0.3, method="lower"),
            "first": np.nan if none else v.iloc[0],
            "last": np.nan if none else v.iloc[-1],
            "argmax": -1 if none else at[np.argmax(v.values)],
            "argmin": -1 if none else at[np.argmin(v.values)],
            "range": np.nan if none else np.max(v.values) - np.min(v.values),
        }
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return found


def ours(x: gc.Tensor, ids: gc.Tensor, size: int, most: int, skipna: bool) -> dict[str, gc.Tensor]:
    groups, options = x.groupby(ids, size, "t", name="g"), {"skipna": skipna}
    same = ("median", "first", "last", "argmax", "argmin", "cumsum")
    return {
        **{name: getattr(groups, name)(**options) for name in same},
        "quantile": groups.quantile(0.3, **options),
        "lower": groups.quantile(0.3, method="lower", **options),
        "range": groups.map(lambda v, w: gc.ptp(v, "t", where=w, **options), most),
        "centred": groups.map(lambda v, w: v - v.mean("t", where=w), most),
    }


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("skipna", [False, True])
@pytest.mark.parametrize("native", [False, True])
def test_as_pandas(native: bool, skipna: bool) -> None:
    x, ids = gc.tensor("x", {"t": None}), gc.tensor("ids", {"t": None}, dtype="int32")
    f = gc.compile([x, ids], ours(x, ids, 5, 9, skipna), native=native)
    random = np.random.default_rng(0)
    for n, missing in ((0, 0), (1, 0), (1, 1), (9, 0.3), (25, 0.2), (25, 0)):
        values, numbers = random.normal(size=n).round(1), random.permutation(np.arange(n) % 4)
        values[random.random(n) < missing] = np.nan
        found = f(values, numbers.astype("int32"))
        for name, right in by_pandas(values, numbers, 5, skipna).items():
            np.testing.assert_allclose(found[name], right, rtol=1e-12, err_msg=name)
        series = pandas.Series(np.nan_to_num(values) if skipna else values)
        groups = series.groupby(numbers)
        sums = groups.transform(lambda v: np.cumsum(v.values))
        np.testing.assert_allclose(found["cumsum"], sums, rtol=1e-12, atol=1e-14)
        centred = series - groups.transform(lambda v: v.mean(skipna=False))
        if not missing:
            np.testing.assert_allclose(found["centred"], centred, atol=1e-14)


def test_integers() -> None:
    """Their running sums are wide; what a group may lack is a float, as nan stands for it."""
    x = gc.tensor("x", {"t": None}, dtype="int8")
    groups = x.groupby([1, 0, 1, 1], 3, "t", name="g")
    found = gc.compile([x], [groups.cumsum(), groups.first(), groups.median(), groups.argmax()])(
        np.array([100, 3, 100, 7], "int8")
    )
    assert [y.dtype.name for y in found] == ["int64", "float32", "float64", "int64"]
    for y, right in zip(
        found, ([100, 3, 200, 207], [3, 100, np.nan], [3, 100, np.nan], [1, 0, -1])
    ):
        np.testing.assert_array_equal(y, right)


def test_several_dims_and_batches_of_numbers() -> None:
    x = gc.tensor("x", {"b": 2, "row": 3, "col": 4})
    ids = gc.tensor("ids", {"row": 3, "col": 4}, dtype="int64")
    many = gc.tensor("many", {"b": 2, "col": 4}, dtype="int64")
    both = x.groupby(ids, 3, ("row", "col"), name="g")
    along = x.groupby(many, 2, "col", name="g")
    results = [both.median(), both.argmin(), both.cumsum(), along.quantile([0.25, 0.5])]
    random = np.random.default_rng(1)
    v, i, m = random.normal(size=(2, 3, 4)), random.integers(0, 3, (3, 4)), np.tile([0, 1], (2, 2))
    median, at, sums, quantiles = gc.compile([x, ids, many], results)(v, i, m)
    assert [y.dims for y in results] == [("b", "g"), ("b", "g"), ("b", "row", "col"),
                                         ("quantile", "b", "row", "g")]  # fmt: skip
    for b in range(2):
        for g in range(3):
            mask = i == g
            np.testing.assert_allclose(median[b, g], np.median(v[b][mask]))
            assert v[b].ravel()[at[b, g]] == v[b][mask].min()
            np.testing.assert_allclose(sums[b][mask], np.cumsum(v[b][mask]))
        right = np.quantile(v[b][:, ::2], [0.25, 0.5], axis=1)
        np.testing.assert_allclose(quantiles[:, b, :, 0], right)


@pytest.mark.parametrize("native", [False, True])
def test_slopes_of_groups_are_those_of_their_elements(native: bool) -> None:
    x = gc.tensor("x", {"t": 7})
    numbers = [2, 0, 2, 2, 0, 0, 2]
    groups = x.groupby(numbers, 3, "t", name="g")
    weights = gc.constant([1.0, 5.0, 2.0], "g")
    every = gc.constant(np.arange(7.0), "t")
    ys = [(y.fillna(0) * weights).sum() for y in (groups.median(), groups.quantile(0.4),
          groups.first(), groups.map(lambda v, w: gc.std(v, "t", where=w), 4))]  # fmt: skip
    ys.append((groups.cumsum() * every).sum())
    apart = [x.isel(t=[n for n, g in enumerate(numbers) if g == k]) for k in (0, 2)]
    at = [every.isel(t=[n for n, g in enumerate(numbers) if g == k]) for k in (0, 2)]
    zs = [f(apart[0]) + 2 * f(apart[1]) for f in (gc.median, lambda v: gc.quantile(v, 0.4),
          lambda v: v.isel(t=0), gc.std)]  # fmt: skip
    zs.append(sum((v.cumsum("t") * w).sum() for v, w in zip(apart, at, strict=True)))
    slopes = [[gc.grad(y, x) for y in some] for some in (ys, zs)]
    curved = [gc.hvp(some[3], x, every) for some in (ys, zs)]
    ours, theirs = gc.compile([x], [[*slopes[0], curved[0]], [*slopes[1], curved[1]]],
                              native=native)(np.array([3.0, 1, 4, 1.5, 5, 9, 2]))  # fmt: skip
    for found, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-14)


def test_running_sums_keep_to_their_group() -> None:
    """Neither an infinity nor the rounding of a large number reaches another group."""
    x = gc.constant([1e300, 1.0, np.inf, 2.0, -np.inf, 1e-30], "t")
    found = x.groupby([0, 1, 0, 1, 2, 3], 4, "t", name="g").cumsum().eval()
    np.testing.assert_array_equal(found, [1e300, 1, np.inf, 3, -np.inf, 1e-30])


def test_no_value_for_every_element_and_group() -> None:
    """The largest intermediate result grows with the elements alone."""
    x = gc.tensor("x", {"t": 100})
    ids = gc.tensor("ids", {"t": 100}, dtype="int64")
    groups = x.groupby(ids, 50, "t", name="g")
    outputs = [groups.median(), groups.first(), groups.argmax(), groups.cumsum()]
    f = gc.compile([x, ids], outputs, native=False)
    types = [node.type for node in f.stages["lowered"].nodes()]
    assert max(t.count for type in types for t in getattr(type, "items", (type,))) <= 202
