"""Quantiles of every method and length, with nan, infinities and ties; where derivatives go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.operations.quantiles import METHODS

NAN, INF = np.nan, np.inf
SHARES = [0.0, 0.05, 0.1, 0.25, 0.3, 0.5, 2 / 3, 0.75, 0.9, 0.99, 1.0]


def run(function: Any, *arrays: Any) -> Any:
    """A function of tensors with dims `t`, or `u, t`, at arrays."""
    dims = (), ("t",), ("u", "t")
    xs = [
        gc.tensor(f"x{i}", dict.fromkeys(dims[np.ndim(a)]), dtype=np.asarray(a).dtype)
        for i, a in enumerate(arrays)
    ]
    return gc.compile(xs, function(*xs))(*map(np.asarray, arrays))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_agrees_with_numpy(method: Any) -> None:
    """One compilation for all lengths; with and without ties, with nan left out or not."""
    x = gc.tensor("x", {"u": 3, "t": None})
    f = gc.compile([x], [x.quantile(SHARES, "t", method=method, skipna=s) for s in (False, True)])
    random = np.random.default_rng(0)
    for n in (*range(1, 13), 20, 101):
        for values in (
            random.normal(size=(3, n)),
            random.integers(0, 3, size=(3, n)) * 1.0,
            np.where(random.random((3, n)) < 0.3, NAN, random.normal(size=(3, n))),
        ):
            plain, skipping = f(values)
            wanted = np.quantile(values, SHARES, axis=1, method=method)
            np.testing.assert_allclose(plain, wanted, rtol=1e-12, atol=1e-12)
            for row, found in zip(values, skipping.T, strict=True):
                some = row[~np.isnan(row)]
                wanted = np.quantile(some, SHARES, method=method) if some.size else NAN
                np.testing.assert_allclose(found, np.broadcast_to(wanted, 11), 1e-12, 1e-12)


def test_median_agrees_with_numpy() -> None:
    x = gc.tensor("x", {"u": 3, "t": None})
    f = gc.compile([x], [x.median("t"), x.median("t", skipna=True), x.median(skipna=True)])
    random = np.random.default_rng(1)
    for n in (*range(1, 9), 100):
        for holes in (0, 0.3, 1):
            values = np.where(random.random((3, n)) < holes, NAN, random.normal(size=(3, n)))
            plain, skipping, whole = f(values)
            np.testing.assert_array_equal(plain, np.median(values, 1))
            for row, found in zip([*values, values], [*skipping, whole], strict=True):
                some = row[~np.isnan(row)]
                np.testing.assert_array_equal(found, np.median(some) if some.size else NAN)


def test_nan_that_takes_no_part_spoils_nothing() -> None:
    x, part = [1.0, NAN, 5.0, 3.0], [True, False, True, False]
    assert run(lambda x, w: x.median("t", where=w), x, part) == 3
    assert np.isnan(run(lambda x, w: x.median("t", where=~w), x, part))
    assert run(lambda x, w: x.median("t", where=~w, skipna=True), x, part) == 3
    assert np.isnan(run(lambda x, w: x.median("t", where=w & ~w), x, part))
    assert run(lambda x, w: x.quantile(0.5, where=w), [1, 2, 5, 3], part) == 3


def test_infinities_are_values() -> None:
    assert run(lambda x: x.median("t"), [INF, 1.0, INF]) == INF
    assert run(lambda x: x.median("t"), [INF, 1.0]) == INF
    assert run(lambda x: x.median("t"), [-INF, -INF]) == -INF
    assert run(lambda x: x.quantile(0.5), [1.0, 2.0, INF]) == 2
    assert run(lambda x: x.quantile(0.9), [1.0, INF, INF, INF]) == INF
    assert run(lambda x: x.quantile(0.1), [-INF, 1.0]) == -INF
    assert np.isnan(run(lambda x: x.quantile(0.1), [-INF, INF]))


def test_nothing_overflows_or_is_rounded() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        high = np.finfo(dtype).max
        for x in ([high, high], [high]):
            found = run(lambda x: [x.median(), x.quantile(0.3)], np.array(x, dtype))
            assert [*found] == [high, high]
            assert found[0].dtype == found[1].dtype == dtype
    assert run(lambda x: x.quantile(0.3), [0.1, 0.1, 0.1]) == 0.1
    assert run(lambda x: x.quantile(0.1), np.arange(11.0)) == 1
    assert run(lambda x: x.median(), np.array([True, False])) == 0.5


def test_derivatives_of_medians() -> None:
    def slope(x: Any) -> Any:
        return run(lambda x: gc.grad(x.median(), x), x).tolist()

    assert slope([3.0, 1.0, 2.0]) == [0, 0, 1]
    assert slope([4.0, 3.0, 1.0, 2.0]) == [0, 0.5, 0, 0.5]
    assert slope([1.0, 1.0]) == [0.5, 0.5]
    assert slope([2.0, 2.0, 2.0, 1.0]) == [0.5, 0.5, 0, 0]
    assert slope([2.0, 2.0, 2.0]) == [0, 1, 0]
    assert slope([7.0]) == [1]
    assert slope([0.0, INF, INF]) == [0, 1, 0]
    assert run(lambda x: gc.grad(gc.sqrt(x).median(), x), [0.0, 4.0, 9.0]).tolist() == [0, 0.25, 0]


def test_derivatives_of_quantiles_by_their_share() -> None:
    """Between two values the slope is their difference times n - 1; also where one is met."""
    q = gc.tensor("q", {"q": None})
    x = gc.constant([1.0, 2.0, 5.0], "t")
    f = gc.compile([q], [y := gc.quantile(x, q, "t"), gc.grad(y.sum(), q)])
    values, slopes = f(np.array([0.25, 0.5, 0.75, 1.5, -0.5, NAN]))
    np.testing.assert_array_equal(values, [1.5, 2, 3.5, NAN, NAN, NAN])
    np.testing.assert_array_equal(slopes, [2, 6, 6, 0, 0, 0])


def test_dims_of_quantiles() -> None:
    x = gc.tensor("x", {"u": 2, "t": None, "quantile": 3})
    share = gc.tensor("q", {"w": 5, "u": 2}, dtype="float32")
    assert x.quantile(0.5, "t").dims == ("u", "quantile")
    assert x.quantile([0.5], ["t", "quantile"]).dims == ("quantile", "u")
    assert x.quantile(share, "t").dims == ("w", "u", "quantile")
    assert x.quantile(share, ...).dims == ("w", "u")
    assert x.median(()).dims == x.dims


def test_the_middle_of_nothing_is_nan() -> None:
    n = gc.tensor("n", {"t": None}, dtype="int64")
    for y in (n.median(), n.quantile(0.5, method="lower"), gc.quantile(n * 1.0, 0.5, skipna=True)):
        f = gc.compile([n], y)
        assert np.isnan(f(np.zeros(0, int)))
        assert f(np.array([3, 9, 4])) == 4
    assert np.isnan(gc.compile([], gc.constant([1.0], "t").isel(t=slice(0)).median())())
