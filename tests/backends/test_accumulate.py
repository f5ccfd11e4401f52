"""Values are added where they belong, not to zeros that are then added."""

from __future__ import annotations

from collections import Counter

import numpy as np

import graphcore as gc

X, Y = gc.tensor("x", {"a": 6}), gc.tensor("y", {"b": 3})
AT = gc.tensor("i", {"b": 3}, dtype="int64")
VALUES = np.arange(6.0), np.array([1.0, 2.0, 3.0]), np.array([5, 0, 5])
SPREAD = np.array([2.0, 0, 0, 0, 0, 4])


def compiled(outputs):
    """The function, and how often each op is in its last stage."""
    f = gc.compile([X, Y, AT], outputs)
    return f, Counter(node.op.name for node in f.stages["scheduled"].nodes())


def test_a_range_is_added_in_place():
    f, ops = compiled(X.at[1:4].add(Y.rename(b="a")))
    assert ops["overwrite"] == 1
    assert ops["embed"] == 0
    np.testing.assert_array_equal(f(*VALUES), [0, 2, 4, 6, 4, 5])


def test_positions_are_added_in_place():
    f, ops = compiled(gc.exp(X).at[{"a": AT}].add(Y))
    assert ops["scatter_add"] == 1
    assert ops["scatter"] == 0
    np.testing.assert_allclose(f(*VALUES), np.exp(VALUES[0]) + SPREAD)


def test_gradients_of_several_parts_share_one_array():
    loss = (X[:3] ** 2).sum() + (X[2:] ** 3).sum() + (X.isel(a=AT) * Y).sum()
    f, ops = compiled(gc.grad(loss, X))
    assert ops["embed"] + ops["scatter"] == 1
    assert ops["overwrite"] + ops["scatter_add"] == 2
    x = VALUES[0]
    wanted = np.where(x < 3, 2 * x, 0) + np.where(x > 1, 3 * x * x, 0) + SPREAD
    np.testing.assert_allclose(f(*VALUES), wanted)
    np.testing.assert_array_equal(VALUES[0], np.arange(6.0))


def test_zeros_that_are_needed_elsewhere_stay():
    slope = gc.grad((X.isel(a=AT) * Y).sum(), X)
    f, ops = compiled([X + slope, slope])
    assert ops["scatter"] == 1
    assert ops["scatter_add"] == 0
    np.testing.assert_array_equal(f(*VALUES)[0], VALUES[0] + SPREAD)
