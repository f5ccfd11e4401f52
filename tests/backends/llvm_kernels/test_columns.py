"""Sums and extremes over axes in front are computed tile by tile, with the same bits."""

from __future__ import annotations

import numpy as np

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
