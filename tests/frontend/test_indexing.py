import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.ir.sizes import evaluate
from tests.operations.updates import CHANGES, updated

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
    assert x.isel(t=0, drop=True) is x[0]
    with pytest.warns(UserWarning, match="isel: there is no dim 'q' in f64") as caught:
        assert x.isel({"t": 0, "q": 1}, missing_dims="warn") is x[0]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="transpose: there is no dim 'p', 'q'"):
        assert x.transpose("p", "t", "q", missing_dims="warn") is x


def test_unknown_sizes_leave_a_need():
    (need, *_) = gc.tensor("x", {"t": None})[3].node.needs
    assert (need.dim, need.left, need.relation, str(need.right)) == ("t", 3, "<", "t")


LENGTHS = SIZES | {"p": 2, "q": 3}


@st.composite
def indexers(draw):
    """Every form of indexer for some dims; tensors of one or two dims, new ones or those of x."""
    found = {}
    for dim in draw(st.permutations(list(SIZES)))[: draw(st.integers(1, 3))]:
        size = SIZES[dim]
        place = st.integers(-size, size - 1)
        form = draw(st.sampled_from(["int", "slice", "list", "mask", "array", "array", "array"]))
        if form == "int":
            found[dim] = draw(place)
        elif form == "slice":
            found[dim] = slice(draw(ENDS), draw(ENDS), draw(STEPS))
        elif form == "list":
            found[dim] = draw(st.lists(place, max_size=3))
        elif form == "mask":
            found[dim] = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        else:
            names = draw(st.lists(st.sampled_from([*LENGTHS]), max_size=2, unique=True))
            shape = [LENGTHS[name] for name in names]
            count = int(np.prod(shape))
            values = draw(st.lists(place, min_size=count, max_size=count))
            found[dim] = xarray.DataArray(np.reshape(values, shape).astype(int), dims=names)
    return found


def symbolic(array, chosen, at_the_call):
    """The tensor, its indexers, and the inputs with their values."""
    x = gc.tensor("x", array.sizes)
    inputs, ours = {x: array.values}, dict(chosen)
    for dim, indexer in chosen.items():
        if at_the_call and isinstance(indexer, xarray.DataArray):
            ours[dim] = gc.tensor(f"at {dim}", indexer.sizes, dtype="int64")
            inputs[ours[dim]] = indexer.values
    return x, ours, inputs


@settings(max_examples=150)
@given(indexers(), st.booleans())
def test_every_combination_is_that_of_xarray(chosen, at_the_call):
    """Dims, their order, and values, with positions known now or given at the call."""
    array = xarray.DataArray(np.arange(120.0).reshape(4, 5, 6), dims=tuple(SIZES))
    x, ours, inputs = symbolic(array, chosen, at_the_call)
    try:
        wanted = array.isel(chosen)
    except (IndexError, ValueError):
        with pytest.raises(gc.GraphError):
            x.isel(ours)
        return
    found = x.isel(ours)
    assert (found.dims, found.shape) == (wanted.dims, wanted.shape)
    result = gc.compile(list(inputs), found)(*inputs.values())
    np.testing.assert_array_equal(result, wanted.values)


@settings(max_examples=100)
@given(indexers(), st.booleans(), st.sampled_from([*CHANGES]), st.integers(0, 7))
def test_every_combination_is_updated(chosen, at_the_call, change, left_out):
    """The places that xarray picks, one after the other; values broadcast to their dims."""
    random = np.random.default_rng(left_out)
    array = xarray.DataArray(random.normal(size=(4, 5, 6)), dims=tuple(SIZES))
    x, ours, inputs = symbolic(array, chosen, at_the_call)
    try:
        region = array.isel(chosen)
    except (IndexError, ValueError):
        return
    sizes = {dim: size for i, (dim, size) in enumerate(region.sizes.items()) if i != left_out}
    new = xarray.DataArray(random.normal(size=tuple(sizes.values())), dims=tuple(sizes))
    y = gc.tensor("y", sizes)
    inputs[y] = new.values
    result = gc.compile(list(inputs), getattr(x.at[ours], change)(y))(*inputs.values())
    wanted = updated(array, chosen, new, CHANGES[change])
    np.testing.assert_allclose(result, wanted.values, rtol=1e-12)


ROW = gc.tensor("x", {"row": None, "class": None})
AT = gc.tensor("i", {"row": None}, dtype="int64")
OUTSIDE = {
    "take_along": gc.take_along(gc.exp(ROW), AT, "class"),
    "its gradient": gc.grad(gc.take_along(ROW, AT, "class").sum(), ROW),
    "its second derivative": gc.grad(
        (gc.grad((gc.take_along(ROW, AT, "class") ** 3).sum(), ROW) ** 2).sum(), ROW
    ),
    **{
        change: getattr(ROW.at[{"class": AT}], change)(1.0)
        for change in ("set", "add", "multiply", "max")
    },
    "gradient of set": gc.grad((ROW.at[{"class": AT}].set(1.0) ** 2).sum(), ROW),
}


@pytest.mark.parametrize("wrong", [3, -4])
@pytest.mark.parametrize("name", OUTSIDE)
def test_positions_outside_are_refused_at_the_call(name, wrong):
    """Neither clamped nor wrapped: the dim, its size, the position and the line are named."""
    f = gc.compile([ROW, AT], OUTSIDE[name])
    reason = f"position {wrong} is outside dim 'class', which has size 3"
    with pytest.raises(gc.GraphIndexError, match=reason) as caught:
        f(np.ones((2, 3)), [0, wrong])
    assert "test_indexing.py:" in str(caught.value)
    f(np.ones((2, 3)), [-3, 2])


def test_unsigned_positions_do_not_count_from_the_end():
    i = gc.tensor("i", {"row": None}, dtype="uint64")
    for y in (gc.take_along(ROW, i, "class"), ROW.at[{"class": i}].add(1)):
        f = gc.compile([ROW, i], y)
        f(np.ones((2, 3)), np.array([0, 2], np.uint64))
        with pytest.raises(gc.GraphIndexError, match="position -1 is outside dim 'class'"):
            f(np.ones((2, 3)), np.array([0, 2**64 - 1], np.uint64))


@pytest.mark.parametrize("wrong", [-1, 3])
@pytest.mark.parametrize("dtype", ["int64", "int8"])
def test_segments_outside_are_refused_at_the_call(wrong, dtype):
    ids = gc.tensor("i", {"class": None}, dtype=dtype)
    y = gc.segment_sum(ROW, ids, 3, name="group")
    for z in (y, gc.grad(y.sum(), ROW), gc.segment_max(ROW, ids, 3, name="group")):
        f = gc.compile([ROW, ids], z)
        f(np.ones((1, 2)), np.array([0, 2], dtype))
        with pytest.raises(gc.GraphIndexError, match=f"position {wrong} is outside dim 'group'"):
            f(np.ones((1, 2)), np.array([0, wrong], dtype))


def test_pointwise_of_different_lengths():
    x = gc.tensor("x", {"a": 5, "b": 5})
    i, j = (gc.tensor(name, {"p": size}, dtype="int64") for name, size in (("i", "m"), ("j", "n")))
    f = gc.compile([x, i, j], x.isel(a=i, b=j))
    f(np.ones((5, 5)), [1, 2], [3, 4])


def test_what_one_program_needs_of_sizes_is_asked_of_no_other():
    """Though the second compilation builds no node that the first has not built."""
    x = gc.tensor("x", {"a": 5, "b": 5})
    i, j = (gc.tensor(name, {"p": size}, dtype="int64") for name, size in (("i", "m"), ("j", "n")))
    kept = [gc.compile([x, i, j], x.isel(a=i, b=j), native=False) for _ in range(2)]
    u, v = gc.tensor("u", {"of u": "m"}), gc.tensor("v", {"of v": "n"})
    other = gc.compile([u, v], gc.cbrt(u).sum() + gc.cbrt(v).sum(), native=False)
    assert other([1.0, 8.0], [1.0, 8.0, 27.0]) == 9
    del kept


def test_a_constant_mask_is_known():
    x, mask = gc.tensor("x", {"a": None}), [True, False, True]
    assert x.isel(a=gc.constant(mask, "a")) is x.isel(a=("a", mask))


def test_a_mask_tells_an_unknown_size():
    x = gc.tensor("x", {"t": None})
    y = x[[True, False, True]]
    assert y.sizes == {"t": 2}
    f = gc.compile([x], [y, gc.grad((y * y).sum(), x), x.at[[True, False, True]].set(0)])
    for found, wanted in zip(f([1.0, 2, 3]), ([1, 3], [2, 0, 6], [0, 2, 0]), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", [0, 1])
def test_take_along_as_numpy(axis):
    random = np.random.default_rng(0)
    x, at = random.normal(size=(4, 5)), random.integers(0, 4, (4, 5))
    at = at[:2] if axis == 0 else at[:, :3]
    dims = ("a", "b")
    found = gc.take_along(gc.constant(x, dims), gc.constant(at, dims), dims[axis])
    wanted = np.take_along_axis(x, at, axis)
    np.testing.assert_array_equal(gc.compile([], found)(), wanted)
