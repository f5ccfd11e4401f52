"""Sums and extremes over axes in front are computed tile by tile, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc

from .native import needs_machine_code

pytestmark = needs_machine_code


def test_a_sum_over_rows_is_as_accurate_as_one_of_columns() -> None:
    """Equal values, whose plain sum would lose more with each block."""
    x = gc.tensor("x", {"a": None, "c": None})
    f = gc.compile([x], x.sum("a"), native=True)
    found = f(np.full((100_000, 3), 0.1))
    assert (abs(found - 10_000) <= 5 * np.finfo(float).eps * 10_000).all()


def test_not_a_number_and_infinities_in_tiles() -> None:
    x = gc.tensor("x", {"a": None, "c": None})
    f = gc.compile([x], (x.sum("a"), x.max("a")), native=True)
    values = np.ones((500, 40))
    values[3, 0], values[400, 1], values[450, 2], values[70, 3] = np.nan, np.inf, -np.inf, np.nan
    values[90, 3] = np.inf
    sums, largest = f(values)
    np.testing.assert_array_equal(sums, values.sum(axis=0))
    np.testing.assert_array_equal(largest, values.max(axis=0))


@pytest.mark.parametrize("shape", [(100, 2500), (3, 77, 1100), (5, 45, 1030)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_many_columns_have_the_bits_of_few(shape: tuple[int, ...], dtype: str) -> None:
    """Few columns are one tile each; many are added up a few rows at a time, strip by strip."""
    dims = ["lead", "a", "c"][-len(shape) :]
    over = [("a",), ("lead", "a")][: len(shape) - 1]
    rng = np.random.default_rng(3)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9, shape)
    values[..., 7, :], values[..., 3, 2000 % shape[-1]] = 1.5, np.inf  # equal ones, and not finite
    x = gc.tensor("x", dict.fromkeys(dims), dtype=dtype)
    ops = ["sum", "prod", *(["max", "argmax"] if dtype != "complex128" else [])]
    results = [getattr(x, op)(dim) for op in ops for dim in over if op != "argmax" or len(dim) == 1]
    f = gc.compile([x], results, native=True)
    with np.errstate(invalid="ignore", over="ignore"):
        given = (
            np.clip(values, -1e6, 1e6).astype(dtype) if dtype == "int64" else values.astype(dtype)
        )
    few = [slice(i, i + 24) for i in range(0, shape[-1], 24)]
    parts = zip(*[f(np.ascontiguousarray(given[..., some])) for some in few], strict=True)
    for found, some in zip(f(given), parts, strict=True):
        np.testing.assert_array_equal(found, np.concatenate(some, axis=-1))
