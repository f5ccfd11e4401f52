"""Order, ranks and searches: nan, ties, sizes, and where derivatives go."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import scipy.stats

import graphcore as gc

NAN, INF = np.nan, np.inf


def run(function: Any, *arrays: Any) -> Any:
    """A function of tensors with dims `t`, `u, t` or none, at arrays."""
    names = ((), ("t",), ("u", "t"))
    xs = [
        gc.tensor(
            f"x{i}", {dim: f"{dim}{i}" for dim in names[np.ndim(a)]}, dtype=np.asarray(a).dtype
        )
        for i, a in enumerate(arrays)
    ]
    return gc.compile(xs, function(*xs))(*map(np.asarray, arrays))


def slope(function: Any, array: Any) -> Any:
    return run(lambda x: gc.grad(function(x).sum(), x), array)


def messy(random: np.random.Generator, shape: Any, dtype: str = "float64") -> np.ndarray:
    """Few values, many ties; with nan and infinities if floats."""
    x = random.integers(0, 5, size=shape).astype(dtype)
    if x.dtype.kind == "f":
        x[random.random(shape) < 0.2] = NAN
        x[random.random(shape) < 0.1] = -INF
        x[random.random(shape) < 0.1] = -0.0
    return x


def position_in_order(row: np.ndarray, descending: bool) -> list[int]:
    """Python's own sort, which keeps ties as they are in either direction; nan is the largest."""
    keys = [(bool(np.isnan(v)), 0 if np.isnan(v) else v) for v in row]
    return sorted(range(len(row)), key=keys.__getitem__, reverse=descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "bool"])
def test_order_is_stable_with_nan_as_the_largest(dtype: str, descending: bool) -> None:
    random = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 300):
        x = messy(random, (3, n), dtype)
        order, ordered = run(lambda x: [x.argsort("t", descending), x.sort("t", descending)], x)
        wanted = np.array([position_in_order(row, descending) for row in x], int).reshape(3, n)
        np.testing.assert_array_equal(order, wanted)
        np.testing.assert_array_equal(ordered, np.take_along_axis(x, wanted, 1))
        assert ordered.dtype == x.dtype


def test_top_k() -> None:
    values, indices = run(lambda x: list(x.top_k(3, "t")), [1.0, NAN, 3.0, 3.0, 2.0])
    np.testing.assert_array_equal(values, [NAN, 3, 3])
    np.testing.assert_array_equal(indices, [1, 2, 3])
    f = gc.compile([x := gc.tensor("x", {"t": None})], x.top_k(3, "t").indices)
    assert f(np.zeros(3)).tolist() == [0, 1, 2]


def test_derivatives_go_to_where_values_came_from() -> None:
    """Of ties to the first, in either direction."""
    x = [2.0, 1.0, 2.0, 2.0]
    assert slope(lambda x: x.sort("t").isel(t=1), x).tolist() == [1, 0, 0, 0]
    assert slope(lambda x: x.sort("t", descending=True).isel(t=0), x).tolist() == [1, 0, 0, 0]
    assert slope(lambda x: x.top_k(2, "t").values, x).tolist() == [1, 0, 1, 0]


def test_values_left_out_have_no_slope() -> None:
    """sqrt has an infinite slope at 0, which does not count where 0 is not chosen."""
    wanted = [0, 0.25]
    for chosen in (
        lambda x: gc.sqrt(x).sort("t").isel(t=1),
        lambda x: gc.sqrt(x).sort("t", descending=True).isel(t=0),
        lambda x: gc.sqrt(x).top_k(1, "t").values,
    ):
        assert slope(chosen, [0.0, 4.0]).tolist() == wanted


def test_rank_leaves_nan_out() -> None:
    random = np.random.default_rng(3)
    x = messy(random, (4, 9))
    wanted = scipy.stats.rankdata(x, axis=1, nan_policy="omit")
    count = (~np.isnan(x)).sum(1, keepdims=True)
    ranks, shares = run(lambda x: [x.rank("t"), x.rank("t", pct=True)], x)
    np.testing.assert_allclose(ranks, wanted)
    np.testing.assert_allclose(shares, wanted / count)
    assert run(lambda x: x.rank("t", pct=True), np.float32([1, NAN])).dtype == np.float32


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_of_nan_and_infinities(side: Any) -> None:
    x = np.sort([1.0, 2.0, NAN, INF, -INF, 2.0, NAN])
    values = np.array([[-INF, 1.5, 2.0], [INF, NAN, 9.0]])
    found = run(lambda x, v: gc.searchsorted(x, v, "t", side), x, values)
    np.testing.assert_array_equal(found, np.searchsorted(x, values, side))


def test_searchsorted_of_mixed_dtypes() -> None:
    x, v = np.array([1, 2, 3]), np.array([1.5, 2.0])
    assert run(lambda x, v: gc.searchsorted(x, v, "t"), x, v).tolist() == [1, 1]
    assert run(lambda x: gc.searchsorted(x, 2.5, "t"), x) == 2


def test_sorting_reads_well() -> None:
    x = gc.tensor("x", {"row": None, "col": 4})
    found = gc.searchsorted(x.sort("row"), 0.0, "row")
    f = gc.compile([x], [x.sort("row"), x.top_k(2, "col").indices, found])
    out = io.StringIO()
    f.debug_print("lowered", file=out)
    for words in (
        "= sort(x; axis 0: row)",
        "= argsort(x; axis 1: col; first 2; descending)",
        "= searchsorted(%2, 0; left)",
    ):
        assert words in out.getvalue()
