import pickle
from collections import namedtuple

import numpy as np
import pytest
import xarray

import graphcore as gc
from graphcore.frontend.core.trees import flatten

Pair = namedtuple("Pair", "first second")
X, Y = gc.tensor("x", {"row": 2}), gc.tensor("y", {})


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (X, [X]),
        ([X, Y], [X, Y]),
        ((X, [Y, (X,)]), [X, Y, X]),
        ({"b": X, "a": {"c": Y}}, [X, Y]),
        (Pair(X, {1: Y}), [X, Y]),
        ([], []),
        ({}, []),
    ],
)
def test_round_trip(tree, leaves):
    found, rebuild = flatten(tree)
    assert len(found) == len(leaves)
    assert all(a is b for a, b in zip(found, leaves))
    again = rebuild(found)
    assert type(again) is type(tree)
    assert pickle.loads(pickle.dumps(rebuild))(range(9)) == rebuild(range(9))
    assert repr(again) == repr(tree)


def test_numbers_and_arrays_are_constants():
    leaves, _ = flatten([1, 1.5, np.float32(2), xarray.DataArray([1.0], dims="row")])
    assert [str(leaf.node.type) for leaf in leaves] == ["i64[]", "f64[]", "f32[]", "f64[row=1]"]


@pytest.mark.parametrize("wrong", [None, "x", np.ones(3), object()])
def test_anything_else_is_refused(wrong):
    with pytest.raises(gc.GraphTypeError, match=r"tree\['a'\]\[1\]"):
        flatten({"a": [X, wrong]})
