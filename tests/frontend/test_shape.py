"""Dims as xarray has them; values are compared in the tests of whole programs."""

import numpy as np
import pytest
import xarray

import graphcore as gc

A, B, C = {"a": 2, "b": 3, "c": 4}, {"c": 4, "d": 5}, {"b": 1, "e": 1, "a": 2}


def both(sizes: dict[str, int]):
    array = xarray.DataArray(np.ones(tuple(sizes.values())), dims=tuple(sizes))
    return gc.tensor(f"x{sizes}", sizes), array


def unstacked(x, dims):
    """xarray splits only what has an index."""
    for dim, sizes in dims.items():
        count = np.prod(list(sizes.values()))
        names, shape = list(sizes), tuple(sizes.values())
        index = xarray.DataArray(np.ones(shape), dims=names).stack({dim: names})
        assert x.sizes[dim] == count
        x = x.assign_coords(xarray.Coordinates.from_pandas_multiindex(index.indexes[dim], dim))
        x = x.unstack(dim)
    return x


CASES = {
    "transpose reversed": (A, lambda x: x.transpose()),
    "transpose all": (A, lambda x: x.transpose("c", "a", "b")),
    "transpose ...": (A, lambda x: x.transpose("c", ...)),
    "transpose ... first": (A, lambda x: x.transpose(..., "a")),
    "transpose ... inside": (A, lambda x: x.transpose("b", ..., "a")),
    "transpose missing": (A, lambda x: x.transpose("q", "c", ..., missing_dims="ignore")),
    "rename": (A, lambda x: x.rename(a="z")),
    "rename swap": (A, lambda x: x.rename({"a": "b", "b": "a"})),
    "swap_dims": (A, lambda x: x.swap_dims(a="z")),
    "swap_dims both": (A, lambda x: x.swap_dims({"a": "b", "b": "a"})),
    "pipe": (A, lambda x: x.pipe(lambda y, dim: y.sum(dim), "b")),
    "pipe keyword": (A, lambda x: x.pipe((lambda dim, y: y.sum(dim), "y"), dim="b")),
    "expand_dims none": (A, lambda x: x.expand_dims()),
    "expand_dims zero": (A, lambda x: x.expand_dims(z=0)),
    "stack all": (A, lambda x: x.stack(z=[...])),
    "expand_dims": (A, lambda x: x.expand_dims("z")),
    "expand_dims list": (A, lambda x: x.expand_dims(["z", "y"])),
    "expand_dims sizes": (A, lambda x: x.expand_dims({"z": 3, "y": 2})),
    "expand_dims keywords": (A, lambda x: x.expand_dims(z=3, y=2)),
    "squeeze": (C, lambda x: x.squeeze()),
    "squeeze one": (C, lambda x: x.squeeze("e")),
    "squeeze two": (C, lambda x: x.squeeze(["e", "b"])),
    "squeeze twice": (C, lambda x: x.squeeze(["e", "e"])),
    "stack": (A, lambda x: x.stack(z=("a", "c"))),
    "stack order": (A, lambda x: x.stack(z=("c", "a"))),
    "stack two": (A, lambda x: x.stack({"z": ("a",), "y": ("c", "b")})),
    "stack ...": (A, lambda x: x.stack(z=("b", ...))),
    "sum": (A, lambda x: x.sum("b")),
    "mean two": (A, lambda x: x.mean(["b", "a"])),
    "std ...": (A, lambda x: x.std(...)),
    "argmax": (A, lambda x: x.argmax("b")),
    "cumsum": (A, lambda x: x.cumsum()),
    "astype": (A, lambda x: x.astype("float32")),
    "where": (A, lambda x: x.where(x > 1)),
    "where other": (A, lambda x: x.where(x.isel(b=0) > 1, 0)),
}
PAIRS = {
    "add": lambda x, y: x + y,
    "dot": lambda x, y: x.dot(y),
    "broadcast_like": lambda x, y: x.broadcast_like(y),
    "broadcast_like but a": lambda x, y: x.broadcast_like(y, exclude="a"),
    "broadcast_like but c": lambda x, y: x.broadcast_like(y, exclude=["c", "q"]),
    "where condition": lambda x, y: x.where(y > 0, 0.0),
    "where other": lambda x, y: x.where(x > 0, y),
}


@pytest.mark.parametrize("name", CASES)
def test_as_xarray(name):
    sizes, function = CASES[name]
    ours, theirs = map(function, both(sizes))
    assert (ours.dims, ours.shape, ours.dtype) == (theirs.dims, theirs.shape, theirs.dtype)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("pair", [(A, B), (B, A), (A, A), (A, {}), (A, {"c": 4, "a": 2})])
def test_pairs_as_xarray(name, pair):
    (x, x_theirs), (y, y_theirs) = map(both, pair)
    ours, theirs = PAIRS[name](x, y), PAIRS[name](x_theirs, y_theirs)
    assert (ours.dims, ours.shape, ours.dtype) == (theirs.dims, theirs.shape, theirs.dtype)


def test_functions_of_several_as_xarray():
    (x, x_theirs), (y, y_theirs) = both(A), both(B)
    assert gc.where(y > 0, x, y).dims == xarray.where(y_theirs > 0, x_theirs, y_theirs).dims
    assert [t.dims for t in gc.broadcast(x, y)] == [
        t.dims for t in xarray.broadcast(x_theirs, y_theirs)
    ]
    for exclude in ("c", ["a"], ["d", "b", "q"]):
        ours = gc.broadcast(x, y, exclude=exclude)
        theirs = xarray.broadcast(x_theirs, y_theirs, exclude=exclude)
        assert [t.sizes for t in ours] == [dict(t.sizes) for t in theirs]
        assert [t.dims for t in ours] == [t.dims for t in theirs]
    assert gc.broadcast() == xarray.broadcast() == ()
    assert gc.dot(x, y, dim=...).dims == xarray.dot(x_theirs, y_theirs, dim=...).dims
    assert gc.dot(x, y, dim="a").dims == xarray.dot(x_theirs, y_theirs, dim="a").dims
    assert gc.dot(x, y, x, dim=["a", "d"]).dims == (
        xarray.dot(x_theirs, y_theirs, x_theirs, dim=["a", "d"]).dims
    )


@pytest.mark.parametrize("dim", ["a", "c", "new"])
@pytest.mark.parametrize(
    "sizes",
    [
        [A, {"c": 4, "a": 2, "b": 3}, A],
        [{"a": 2}, {"a": 2, "c": 3}],
        [{"a": 2, "c": 3}, {"a": 2}],
        [{"c": 3}, {"a": 2}],
        [{"b": 3}, {"a": 2}],
        [{"a": 2, "c": 3}, {"c": 3}, {"a": 2, "c": 3}],
        [{}, {}],
        [{}, {"a": 2}],
        [{"a": 2}],
        [{}],
        [{"a": 0}, {"a": 2}],
    ],
)
def test_concat_as_xarray(dim, sizes):
    """Values too, whatever dims each has; where xarray refuses, so do we."""
    xs = [both(each) for each in sizes]
    given = [
        x.copy(data=np.random.default_rng(i).normal(size=x.shape)) for i, (_, x) in enumerate(xs)
    ]
    try:
        theirs = xarray.concat(given, dim)
    except ValueError:
        with pytest.raises(gc.GraphError):
            gc.concat([x for x, _ in xs], dim)
        return
    inputs = [gc.tensor(f"x{i}", each) for i, each in enumerate(sizes)]
    ours = gc.concat(inputs, dim)
    assert (ours.dims, ours.shape) == (theirs.dims, theirs.shape)
    found = gc.compile(inputs, ours)(*[x.values for x in given])
    np.testing.assert_array_equal(found, theirs.values)


@pytest.mark.parametrize("first", ["bool", "int8", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("second", ["bool", "int16", "int64", "float64"])
def test_concat_promotes(first, second):
    x, y = gc.tensor("x", {"a": 2}, dtype=first), gc.tensor("y", {"a": 2}, dtype=second)
    for dim in ("a", "new"):
        assert gc.concat([x, y], dim).dtype == np.result_type(first, second)
    assert gc.concat([x, True], "a").dtype == np.result_type(first, True)


def test_concat_of_what_lacks_the_dim():
    x, y = gc.tensor("x", A), gc.tensor("y", {"a": 2, "c": 4}, dtype="complex64")
    both_ways = gc.concat([x, y, x], "b"), gc.concat([y, x], "b")
    assert [t.sizes for t in both_ways] == [{"a": 2, "b": 7, "c": 4}, {"a": 2, "c": 4, "b": 4}]
    assert both_ways[0].dtype == np.complex128
    assert gc.concat([x, 0.0], "b").shape == (2, 4, 4)
    assert gc.concat([gc.constant([1], "t"), gc.constant([2], "t"), 3], "t").dtype == np.int64


def test_unstack_sizes():
    x = gc.tensor("x", {"a": 12, "b": None})
    for split in ({"p": 3, "q": 4}, {"p": 3, "q": None}, {"p": -1, "q": 4}):
        assert x.unstack(a=split).sizes == {"b": x.sizes["b"], "p": 3, "q": 4}
        assert x.unstack({"a": split}) is x.unstack(a=split)
    n = x.sizes["b"]
    assert str(x.unstack(b={"p": None, "q": 2})) == "<Tensor: f64[a=12, p=b//2, q=2]>"
    assert x.unstack(b={"p": 1, "q": n}).sizes == {"a": 12, "p": 1, "q": n}
    theirs = unstacked(both({"a": 12, "b": 2})[1], {"a": {"p": 3, "q": 4}})
    assert theirs.sizes == gc.tensor("x", {"a": 12, "b": 2}).unstack(a={"p": 3, "q": 4}).sizes


def test_what_changes_nothing_makes_no_node():
    x = gc.tensor("x", {"a": 2, "b": None})
    same = x.transpose("a", "b"), x.rename(a="a"), x.squeeze(), x.broadcast_like(x), x[...], x[{}]
    assert all(t is x for t in (*same, x.astype("f8"), x.isel(a=slice(None)), gc.constant(x)))


def test_equal_programs_are_one():
    x = gc.tensor("x", {"a": 2, "b": 3, "c": 4})
    assert x.sum(["a", "c"]) is x.sum(("c", "a"))
    assert gc.dot(x, x, dim=["a", "b"]) is gc.dot(x, x, dim=["b", "a"])
    assert x.rename(a="p", b="q") is x.rename(b="q", a="p")
    assert x.isel(a=0, c=slice(2)) is x.isel(c=slice(2), a=0)


def test_einsum():
    x = gc.tensor("x", {"batch": None, "row": 3, "inner": 4})
    y = gc.tensor("y", {"inner": 4, "col": 5})
    product = gc.einsum("row inner, inner col -> row col", x, y)
    assert product is gc.dot(x, y, dim="inner")
    assert gc.einsum("row   inner ,inner  col->col", x, y).dims == ("batch", "col")
    assert gc.einsum("row inner, col -> col ... row inner", x, y).dims == (
        *("col", "batch", "row", "inner"),
    )
    assert gc.einsum("batch row inner ->", x).dims == ()
    assert gc.einsum("-> ", x).dims == x.dims


def test_stack_joins_a_list_along_a_new_dim() -> None:
    x, y = gc.tensor("x", {"row": None}), gc.tensor("y", {"col": 2})
    both = gc.stack([x, y, 1], "new")
    assert both.dims == ("new", "row", "col")
    found = gc.compile([x, y], both)([1.0, 2.0, 3.0], [4.0, 5.0])
    np.testing.assert_array_equal(found[0], [[1, 1], [2, 2], [3, 3]])
    np.testing.assert_array_equal(found[1], [[4, 5]] * 3)
    np.testing.assert_array_equal(found[2], 1)
    assert gc.stack((x, x), "new") is gc.concat([x, x], "new")
