import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import graphcore as gc
from graphcore.ir.sizes import evaluate

ENDS = st.one_of(st.none(), st.integers(-9, 9))
STEPS = st.sampled_from([None, 1, 2, 3, -1, -2, -3])


def places(node, sizes: dict[str, int]) -> list[int]:
    """The places that a slice picks, at actual sizes."""
    if node.op.name == "input":
        return list(range(evaluate(node.type.shape[0], sizes)))
    (start,), (size,), (step,) = (node.attrs[key] for key in ("starts", "sizes", "steps"))
    return [evaluate(start, sizes) + i * step for i in range(evaluate(size, sizes))]


@given(ENDS, ENDS, STEPS, st.integers(0, 7))
def test_slices_mean_what_python_means(start, stop, step, size):
    wanted = list(range(size))[start:stop:step]
    for declared in (None, size):
        made = gc.tensor("x", {"t": declared})[start:stop:step]
        assert places(made.node, {"t": size}) == wanted


@given(st.integers(0, 5), st.integers(0, 7))
def test_symbolic_ends_count_from_the_start(less, size):
    x = gc.tensor("x", {"t": None})
    n = x.sizes["t"]
    assert places(x[: n - less].node, {"t": size}) == list(range(max(size - less, 0)))
    assert places(x[n // 2 :].node, {"t": size}) == list(range(size // 2, size))
    assert places(x[n - 1 : None : -1].node, {"t": size}) == list(range(size))[::-1]


def test_sizes_of_slices_are_simple():
    x = gc.tensor("x", {"t": None})
    shown = {str(x[s].sizes["t"]) for s in (slice(1, -1), slice(2, None), slice(None, -2))}
    assert shown == {"max(t - 2, 0)"}
    assert x[::-1].sizes == x.sizes
    assert str(x[:3].sizes["t"]) == "min(t, 3)"


SIZES = {"a": 4, "b": 5, "c": 6}
INDEXERS = {
    "int": {"b": 2},
    "negative": {"a": -1, "c": np.int32(-6)},
    "0-d": {"a": np.array(1)},
    "slice": {"a": slice(1, None, 2), "c": slice(None, None, -2)},
    "list": {"b": [0, 2, 4]},
    "range": {"b": range(3)},
    "orthogonal": {"a": [0, 1], "c": np.array([1, 2, 3])},
    "mask": {"a": [True, False, True, True]},
    "no place": {"a": []},
    "pair": {"b": ("new", [0, 1])},
    "pointwise": {"a": ("new", [0, 1]), "c": ("new", [2, 3])},
    "pair of dims": {"b": (("p", "q"), np.zeros((2, 3), int))},
    "array": {"c": xarray.DataArray([1, 2], dims="z")},
    "shared dim": {"c": xarray.DataArray([1, 2, 3, 4], dims="a")},
    "shared and sliced": {"c": ("a", [1, 2]), "a": slice(2)},
    "own dim": {"a": xarray.DataArray([3, 3, 1], dims="a")},
    "mixed": {"a": 1, "b": slice(0, 2), "c": ("p", [5, 5, 5])},
    "two and two": {"a": ("p", [1, 2]), "b": ("q", [1, 2, 3]), "c": ("p", [0, 0])},
    "crossed": {"a": ("c", [1, 2, 0]), "c": ("b", [0, 1])},
}


@pytest.mark.parametrize("name", [name for name in INDEXERS if name != "crossed"])
def test_as_xarray(name):
    array = xarray.DataArray(np.ones(tuple(SIZES.values())), dims=tuple(SIZES))
    ours, theirs = gc.tensor("x", SIZES).isel(INDEXERS[name]), array.isel(INDEXERS[name])
    assert (ours.dims, ours.shape) == (theirs.dims, theirs.shape)
    unknown = gc.tensor("x", dict.fromkeys(SIZES))
    if name != "mask":
        assert unknown.isel(**INDEXERS[name]).dims == theirs.dims


@pytest.mark.parametrize(
    "key", [0, (0, 1), (..., 0), (slice(2), ..., [0, 1]), ([0, 1], [0, 2]), ..., (), {"b": 1}]
)
def test_brackets_as_xarray(key):
    array = xarray.DataArray(np.ones(tuple(SIZES.values())), dims=tuple(SIZES))
    ours, theirs = gc.tensor("x", SIZES)[key], array[key]
    assert (ours.dims, ours.shape) == (theirs.dims, theirs.shape)


def test_tensors_of_positions():
    x = gc.tensor("x", {"batch": None, "class": 3})
    label = gc.tensor("label", {"batch": None}, dtype="int64")
    assert gc.take_along(x, label, "class").dims == ("batch",)
    assert x.isel({"class": label}) is gc.take_along(x, label, "class")
    several = gc.tensor("several", {"k": 2, "batch": None}, dtype="uint8")
    assert gc.take_along(x, several, "class").dims == ("batch", "k")
    assert gc.take(x, several.rename(batch="new"), "class").dims == ("batch", "k", "new")
    assert gc.take(x, [0, 0], "class").sizes["class"] == 2
    assert gc.take_along(x, 1, "class").dims == ("batch",)


def test_static_positions_are_normalised():
    x = gc.tensor("x", {"t": 5})
    assert x[[-1, 0]] is x[[4, 0]]
    assert x[-1] is x[4]
    assert x[[True, False, False, True, False]] is x[[0, 3]]


def test_a_position_may_be_a_size():
    x = gc.tensor("x", {"t": None})
    n = x.sizes["t"]
    assert x[n - 1] is x[-1]


def test_missing_dims():
    x = gc.tensor("x", {"t": 5})
    assert x.isel({"t": 0, "q": 1}, missing_dims="ignore") is x[0]


REFUSED = {
    "int": (lambda x: x[5], IndexError, "position 5 is outside dim 'a', which has size 5"),
    "negative": (lambda x: x[-6], IndexError, "from -5 to 4"),
    "list": (lambda x: x[[0, 9]], IndexError, "position 9"),
    "array": (lambda x: x.isel(a=("z", [-6])), IndexError, "position -6"),
    "short mask": (lambda x: x[[True, False]], IndexError, "mask"),
    "long mask": (lambda x: x[[True] * 6], IndexError, "mask"),
    "unknown mask": (lambda x: x.isel(b=[True]), IndexError, "known size"),
    "symbolic mask": (lambda x: x.isel(a=gc.ones({"a": 5}) > 0), TypeError, "gc.where"),
    "float": (lambda x: x[1.5], TypeError, "cannot be indexed by 1.5"),
    "floats": (lambda x: x[[0.5]], TypeError, "integers"),
    "bool": (lambda x: x[True], TypeError, "cannot be indexed by True"),
    "float tensor": (lambda x: x.isel(a=gc.ones({})), TypeError, "integers"),
    "unnamed": (lambda x: x[np.zeros((2, 2), int)], TypeError, "several axes"),
    "name": (lambda x: x["a"], TypeError, "isel"),
    "None": (lambda x: x[None], TypeError, "expand_dims"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "3 indexers"),
    "...": (lambda x: x[..., ...], IndexError, "2 indexers"),
    "unknown": (lambda x: x.isel(aa=0), ValueError, "did you mean 'a'"),
    "step": (lambda x: x[::0], ValueError, "nonzero"),
    "slice of floats": (lambda x: x[0.5:], TypeError, "0.5"),
    "negative size": (lambda x: x.isel(b=slice(-x.sizes["b"] // 2, None)), ValueError, "start"),
    "negative unknown": (lambda x: x.isel(b=-1 - x.sizes["b"]), IndexError, "outside|size"),
    "take sizes": (
        lambda x: gc.take_along(x, gc.zeros({"a": 3}, "int64"), "b"), ValueError, "sizes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    wrong, kind, reason = REFUSED[name]
    with pytest.raises(gc.GraphError, match=reason) as caught:
        wrong(gc.tensor("x", {"a": 5, "b": None}))
    assert isinstance(caught.value, kind)
    assert "test_indexing.py:" in str(caught.value)


def test_unknown_sizes_leave_a_need():
    (need, *_) = gc.tensor("x", {"t": None})[3].node.needs
    assert (need.dim, need.left, need.relation, str(need.right)) == ("t", 3, "<", "t")
