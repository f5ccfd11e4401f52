"""The error of a sum is at most BOUND eps times the sum of magnitudes, wherever a program adds."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import routines, sums
from graphcore.backends.rounding import BOUND

from .sums import ORDERS, errors


def too_large(worst: dict[str, float]) -> dict[str, float]:
    return {name: error for name, error in worst.items() if not error <= BOUND}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_numbers(dtype: str, native: bool) -> None:
    assert not too_large(errors(dtype, native, 3000, ["C", "F"]))


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_very_many_numbers(dtype: str, native: bool) -> None:
    for n, orders in ((65, ORDERS), (1_025, ORDERS), (30_001, ORDERS), (500_000, ["C"])):
        assert not too_large(errors(dtype, native, n, orders)), n


def test_infinities_stay_and_nan_stays_where_it_is() -> None:
    x, i = gc.tensor("x", ("a", "b")), gc.tensor("i", "a", dtype="int64")
    y = {
        "sum": x.sum("a"),
        "cumsum": gc.cumsum(x, "a"),
        "dot": gc.dot(x, gc.ones_like(x), dim="a"),
        "product": gc.dot(x, gc.ones_like(x).rename(b="c"), dim="a"),
        "group": gc.segment_sum(x, i, 2, dim="a"),
        "logcumsumexp": gc.special.logcumsumexp(x, "a"),
    }
    given = np.full((500, 4), 0.1)
    given[100, 0], given[200, 1], given[300, 2] = np.inf, -np.inf, np.nan
    for native in (False, True):
        found = gc.compile([x, i], y, native=native)(given, np.arange(500) % 2)
        ends = [np.inf, -np.inf, np.nan, 50.0]
        for name in ("sum", "dot"):
            np.testing.assert_allclose(found[name], ends)
        np.testing.assert_allclose(found["product"], np.repeat(np.array(ends)[:, None], 4, 1))
        np.testing.assert_allclose(found["cumsum"], np.cumsum(given, 0))
        np.testing.assert_allclose(found["group"][0], [np.inf, -np.inf, np.nan, 25.0])
        np.testing.assert_allclose(found["group"][1], 25.0)
        with np.errstate(invalid="ignore"):
            wanted = np.logaddexp.accumulate(given, 0)
        np.testing.assert_allclose(found["logcumsumexp"], wanted)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (65, 1), (1, 65), (70, 5, 66), (1000, 1, 3)])
def test_sums_over_any_axes_in_any_order_of_memory(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    x = rng.standard_normal(shape).astype(np.float32)
    every = range(x.ndim)
    for order in permutations(every):
        lying = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
        for axes in [axes for n in every for axes in combinations(every, n + 1)]:
            wanted = np.sum(x, axes, dtype=np.float64)
            found = sums.sum_in_blocks(lying, axes, np.empty(wanted.shape, x.dtype))
            np.testing.assert_allclose(found, wanted, 1e-5, 1e-3)


def test_products_of_any_sizes_and_strides() -> None:
    rng = np.random.default_rng(5)
    for batch, rows, inner, columns in [((), 1, 65, 1), ((2,), 3, 1000, 4), ((), 600, 500, 300)]:
        x, y = (
            rng.standard_normal((*batch, rows, inner)),
            rng.standard_normal((*batch, inner, columns)),
        )
        turned = [np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2) for a in (x, y)]
        for a, b in ((x, y), turned, (x[..., ::-1], y[..., ::-1, :])):
            found = sums.matmul_in_blocks(a, b, np.empty((*batch, rows, columns)))
            np.testing.assert_allclose(found, x @ y, 1e-10, 1e-10)
            found = sums.matvec_in_blocks(a, b[..., 0], np.empty((*batch, rows)))
            np.testing.assert_allclose(found, (x @ y)[..., 0], 1e-10, 1e-10)
            found = sums.vecdot_in_blocks(a[..., 0, :], b[..., 0], np.empty(batch))
            np.testing.assert_allclose(found, (x @ y)[..., 0, 0], 1e-10, 1e-10)


@pytest.mark.parametrize("shape", [(1000, 200), (200, 1000), (1000, 1)])
def test_windows_that_overlap_many_times(shape: tuple[int, int]) -> None:
    part, eps = np.float32(0.1), np.finfo(np.float32).eps
    size = shape[0] + shape[1] - 1
    x, out = np.full(shape, part), np.empty(size, np.float32)
    routines.overlap_add(x, (0,), (1,), (1,), out)
    ends = np.minimum(np.arange(1, size + 1), np.arange(size, 0, -1))
    exact = np.minimum(ends, min(shape)) * np.float64(part)
    assert (np.abs(out - exact) <= BOUND * eps * exact).all()


@pytest.mark.parametrize("native", [False, True])
def test_long_products_of_complex_matrices(native: bool) -> None:
    n, eps = 1000, np.finfo(np.float64).eps
    x = gc.tensor("x", ("a", "b"), dtype="complex128")
    given = np.full((n, 3), 0.49 * eps, complex)
    given[0] = 1
    f = gc.compile([x], gc.dot(x, gc.ones_like(x).rename(b="c"), dim="a"), native=native)
    exact = 1 + (n - 1) * 0.49 * eps
    assert (np.abs(f(given) - exact) <= BOUND * eps * exact).all()


@pytest.mark.parametrize("native", [False, True])
def test_many_rows_without_elements(native: bool) -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    ids = gc.arange(x.sizes["row"], dim="row") % 2
    total = gc.segment_sum(x, ids, 2, dim="row", name="kind")
    assert gc.compile([x], total, native=native)(np.ones((500, 0))).shape == (2, 0)
