"""Edges of slopes, integrals and running values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc

NAN, INF = np.nan, np.inf


def line(dtype: str = "float64", size: int | None = None) -> gc.Tensor:
    return gc.tensor("x", {"t": size}, dtype=dtype)


def run(y: Any, values: Any) -> Any:
    values = np.asarray(values)
    x = line(values.dtype.name)
    return gc.compile([x], y(x))(values)


@pytest.mark.parametrize("order", [1, 2])
def test_gradient_of_unknown_sizes(order: int) -> None:
    """One compilation serves all sizes, and says so where there are too few points."""
    x = line()
    y = gc.gradient(x, "t", edge_order=order)
    assert y.shape == x.shape
    f = gc.compile([x], y)
    for size in range(order + 1, 7):
        values = np.random.default_rng(size).normal(size=size)
        np.testing.assert_allclose(f(values), np.gradient(values, edge_order=order), rtol=1e-12)


def test_gradient_leaves_out_the_middle() -> None:
    """As in NumPy, an even slope is that of the neighbours alone."""
    found = run(lambda x: gc.gradient(x, "t", 2), [1.0, NAN, 3.0, 5.0])
    np.testing.assert_array_equal(found, [NAN, 0.5, NAN, 1.0])
    assert run(lambda x: gc.gradient(x, "t"), np.float32([1, 2])).dtype == np.float32
    assert run(lambda x: gc.gradient(x, "t"), np.uint8([3, 1])).tolist() == [-2, -2]


def test_gradient_by_its_points() -> None:
    """The derivative passes to the points, too."""
    x, t = line(), gc.tensor("p", {"t": 4})
    y = gc.gradient(x, "t", t, edge_order=2)
    slope = gc.grad((y * y).sum(), t)
    f = gc.compile([x, t], [y, slope])
    values, points = np.array([1.0, 2.0, 5.0, 4.0]), np.array([0.0, 1.0, 3.0, 4.5])
    np.testing.assert_allclose(
        f(values, points)[0], np.gradient(values, points, edge_order=2), rtol=1e-13
    )
    for i in range(4):
        h = np.eye(4)[i] * 1e-6
        ends = [np.sum(np.gradient(values, points + s * h, edge_order=2) ** 2) for s in (1, -1)]
        np.testing.assert_allclose(f(values, points)[1][i], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_trapezoid_of_few_points() -> None:
    for values in ([], [3.0]):
        assert run(lambda x: gc.trapezoid(x, dim="t"), np.array(values)) == 0
    assert run(lambda x: gc.trapezoid(x, dim="t"), np.array([True, True, True])) == 2
    assert run(lambda x: gc.trapezoid(x, dx=np.float32(2), dim="t"), np.float32([1, 2])) == 3


def test_diff() -> None:
    np.testing.assert_array_equal(run(lambda x: x.diff("t"), [3, 1, 1]), [-2, 0])
    np.testing.assert_array_equal(run(lambda x: x.diff("t"), [True, False, False]), [True, False])
    assert run(lambda x: x.diff("t", n=5), np.zeros(3)).shape == (0,)
    assert line().diff("t", 0) is line()


def test_running_extremes_share_among_ties() -> None:
    x, ct = line(), gc.tensor("ct", {"t": None})
    values = np.array([1.0, 3.0, 3.0, 2.0, 3.0, 5.0, 5.0])
    weights = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    back = gc.pullback(gc.cummax(x, "t"), x, ct)
    found = gc.compile([x, ct], back)(values, weights)
    third = 16 / 3
    wanted = [1, 2 + 2 + 4 + third, 2 + 4 + third, 0, third, 32 + 32, 32]
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    found = gc.compile([x, ct], gc.pullback(gc.cummin(-x, "t"), x, ct))(values, weights)
    np.testing.assert_allclose(found, np.negative(wanted), rtol=1e-15)
    # the last one is the largest, and so is its derivative
    last, whole = gc.grad(gc.cummax(x, "t").isel(t=-1), x), gc.grad(x.max("t"), x)
    np.testing.assert_array_equal(*gc.compile([x], [last, whole])(values))


def test_running_extremes_of_nan_and_infinity() -> None:
    x, ct = line(), gc.tensor("ct", {"t": None})
    values, weights = np.array([-INF, 2.0, NAN, 7.0]), np.array([1.0, 2.0, 4.0, 8.0])
    y = gc.cummax(x, "t")
    found, back = gc.compile([x, ct], [y, gc.pullback(y, x, ct)])(values, weights)
    np.testing.assert_array_equal(found, [-INF, 2, NAN, NAN])
    np.testing.assert_array_equal(back, [1, 2, 0, 0])
    y = gc.cummax(x, "t", skipna=True)
    found, back = gc.compile([x, ct], [y, gc.pullback(y, x, ct)])(
        np.array([NAN, 2.0, NAN, 7.0]), weights
    )
    np.testing.assert_array_equal(found, [NAN, 2, 2, 7])
    np.testing.assert_array_equal(back, [0, 6, 0, 8])
    for dtype in ("int8", "uint16", "bool"):
        found = run(lambda x: gc.cummin(x, "t"), np.array([1, 0, 1], dtype))
        assert found.dtype == dtype
        assert found.tolist() == [1, 0, 0]


def test_running_logsumexp() -> None:
    """No overflow, and -inf without nan, to the second order."""
    x = line()
    y = gc.special.logcumsumexp(x, "t")
    np.testing.assert_allclose(
        gc.compile([x], y)(np.array([-INF, -1e4, 1000.0, 1000.0])),
        [-INF, -1e4, 1000, 1000 + np.log(2)],
    )
    loss = (gc.where(gc.isfinite(y), y, 0.0) ** 2).sum()
    slope = gc.grad(loss, x)
    f = gc.compile([x], [slope, gc.grad((slope * slope).sum(), x)])
    for hole in ([-INF], [-INF, -INF]):
        values = np.array([0.5, -1.0, 2.0, -900.0])
        whole = f(values)
        for part, holed in zip(whole, f(np.concatenate([hole, values])), strict=True):
            np.testing.assert_array_equal(holed[: len(hole)], 0)
            np.testing.assert_allclose(holed[len(hole) :], part, rtol=1e-12, atol=1e-12)
    inside = f(np.array([0.5, -INF, -1.0]))
    for part, holed in zip(f(np.array([0.5, 0.0, -1.0])), inside, strict=True):
        assert holed[1] == 0
        assert np.isfinite([part, holed]).all()


def test_running_sums_from_their_start() -> None:
    x = line("int8")
    y = gc.cumulative_sum(x, "t", include_initial=True)
    assert y.dtype == np.int64
    assert str(y.shape) == "(t + 1,)"
    assert run(lambda x: gc.cumulative_prod(x, "t", include_initial=True), [2, 3]).tolist() == [
        *(1, 2, 6)
    ]
    assert run(lambda x: gc.cumulative_sum(x, "t", include_initial=True), np.zeros(0)) == [0]


@pytest.mark.parametrize(
    ("values", "slopes"),
    [
        ([1.0, INF, 2.0], [1, 2, 0]),
        ([1.0, INF, INF, 0.0], [1, 2, 1, 0]),
        ([-INF, 1.0, INF], [0, 1, 1]),
        ([-INF, -INF], [0, 0]),
        ([INF], [1]),
    ],
)
def test_logcumsumexp_of_infinities(values: Any, slopes: Any) -> None:
    """What is infinite shares the derivative evenly, as the largest values do."""

    def slope(x: gc.Tensor) -> gc.Tensor:
        return gc.grad(gc.special.logcumsumexp(x, "t").sum(), x)

    np.testing.assert_array_equal(run(slope, values), slopes)
    again = run(lambda x: gc.grad(slope(x).sum(), x), values)
    np.testing.assert_allclose(again, np.zeros(len(values)), atol=1e-15)
