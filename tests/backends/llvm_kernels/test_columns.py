"""Sums and extremes over axes in front are computed tile by tile, with the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import columns

from .native import needs_machine_code

pytestmark = needs_machine_code

SIZES = {"a": None, "b": None, "c": None}
SHAPES = (
    *((0, 3, 5), (3, 0, 5), (3, 5, 0), (1, 1, 1), (2, 31, 9), (2, 32, 8), (3, 33, 70)),
    *((1, 67, 40), (33, 2, 33), (65, 3, 130), (2, 300, 3), (40, 3, 260)),
)
"""With rows of fewer and more than a block, and columns of fewer and more than a tile."""


def totals(dtype: str) -> gc.Compiled:
    x = gc.tensor("x", SIZES, dtype=dtype)
    each = [x.sum(dims) for dims in ("a", "b", ("a", "b"))]
    if dtype != "complex128":
        each += [x.any("b"), (x * x).sum("a"), (x.max("b", initial=-1), x.min("b", initial=1))]
    return gc.compile([x], each, native=True)


OTHERS = [pytest.param(x, marks=pytest.mark.slow) for x in ("float32", "int64", "complex128")]


@pytest.mark.parametrize("dtype", ["float64", *OTHERS])
def test_tiles_have_the_bits_of_columns(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`IN_CACHE` says how many values are one tile: none, or all."""
    monkeypatch.setattr(columns, "IN_CACHE", 0)
    tiles = totals(dtype)
    monkeypatch.setattr(columns, "IN_CACHE", 2**40)
    whole = totals(dtype)
    rng = np.random.default_rng(5)
    for shape in SHAPES:
        x = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, shape)
        x = x.astype(dtype) if dtype != "complex128" else x + 1j * x[::-1]
        for found, wanted in zip(gc.tree.leaves(tiles(x)), gc.tree.leaves(whole(x)), strict=True):
            np.testing.assert_array_equal(found, wanted)
        with np.errstate(over="ignore"):
            scale = np.abs(x).sum(axis=0) if dtype[0] in "fc" else 0
            assert (np.abs(tiles(x)[0] - x.sum(axis=0)) <= 1e-5 * scale).all()


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
