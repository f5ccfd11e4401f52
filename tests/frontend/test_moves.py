"""Moves along dims: dtypes as xarray has them, what is refused, and what they cost."""

import numpy as np
import pytest
import xarray

import graphcore as gc

DTYPES = ["int8", "uint16", "int32", "uint64", "float32", "float64", "complex64"]


def both(function, array):
    """The value here, with unknown sizes, and xarray's."""
    theirs = xarray.DataArray(array, dims=["a", "b"][: array.ndim])
    x = gc.tensor("x", theirs.dims, dtype=array.dtype)
    y, wanted = function(x), function(theirs)
    assert (y.dims, y.dtype) == (wanted.dims, wanted.dtype)
    return gc.compile([x], y)(array), wanted.values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (0, 2)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.shift(a=1),
        lambda x: x.shift(a=-5, b=2),
        lambda x: x.shift(a=0),
        lambda x: x.shift(),
        lambda x: x.shift(b=1, fill_value=7),
    ],
)
def test_shift_as_xarray(dtype, shape, function):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    found, wanted = both(function, array)
    np.testing.assert_array_equal(found, wanted, strict=True)


def test_dims_may_have_the_names_of_parameters():
    x = gc.tensor("x", {"x": 4, "names": 3, "copies": 2})
    assert x.pad(x=(1, 2), mode="edge").sizes == {"x": 7, "names": 3, "copies": 2}
    assert x.roll(x=1) is x.roll(shifts={"x": 1})
    assert x.shift(x=1) is x.shift(shifts={"x": 1})
    assert x.pad(x=1) is x.pad(pad_width={"x": 1})
    assert gc.tile(x, copies=2, x=3).sizes == {"x": 12, "names": 3, "copies": 4}
    assert x.head(x=1).tail(x=1).thin(x=1).sizes["x"] == 1
    assert x.swap_dims(x="y").expand_dims(x=2).dims == ("x", "y", "names", "copies")


def test_parts_are_lists():
    x = gc.tensor("x", {"a": 6, "b": None})
    parts = gc.split(x, 3, "a"), gc.split(x, {"b": [1, None, 2]}), gc.unbind(x, "a")
    assert [[type(part) for part in each] for each in parts] == [[gc.Tensor] * n for n in (3, 3, 6)]
    assert gc.concat(gc.split(x, 3, "a"), "a").sizes == x.sizes


def test_what_moves_nothing_is_the_same():
    x = gc.tensor("x", {"a": 6, "b": None})
    same = x.roll(a=12, b=0), x.shift(a=0), x.shift(), gc.tile(x, a=1), gc.repeat(x, 1, "b")
    assert all(y is x for y in (*same, *gc.split(x, 1, "a"), x.head(a=6), x.thin(b=1)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.roll(a=1, b=2),
        lambda x: x.shift(a=1, b=-2, fill_value=0),
        gc.flip,
        lambda x: gc.tile(x, a=2, b=3),
        lambda x: gc.repeat(x, 2, "a"),
        lambda x: gc.split(x, 3, "a")[1],
        lambda x: x.tail(a=2, b=3).thin(2),
    ],
)
def test_no_place_is_looked_up(function):
    """Values and derivatives are slices and what slices transpose to, never gathers."""
    x = gc.tensor("x", {"a": 6, "b": None})
    loss = (function(x) ** 3).sum()
    g = gc.grad(loss, x)
    f = gc.compile([x], [loss, g, gc.grad((g**2).sum(), x)])
    ops = {node.op.name for node in f.stages["optimized"].nodes()}
    assert not ops & {"gather", "scatter", "iota"}


@pytest.mark.parametrize("dtype", ["bool", *DTYPES])
def test_where_as_xarray(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    for function in (lambda x: x.where(x > 2), lambda x: x.where(x > 2, 3)):
        if dtype != "complex64":
            found, wanted = both(function, array)
            np.testing.assert_array_equal(found, wanted, strict=True)
    found, wanted = both(lambda x: x.where(x.real > 2), array)
    np.testing.assert_array_equal(found.imag, wanted.imag)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.roll(a=1, b=2),
        lambda x: gc.concat([gc.exp(part) for part in gc.split(x, 3, "a")], "a"),
        lambda x: gc.concat([gc.exp(part) for part in gc.unbind(x, "a")], "new"),
    ],
)
def test_cotangents_of_parts_are_put_together(function):
    """Not added up as arrays of the whole size each."""
    x = gc.tensor("x", {"a": 6, "b": None})
    y = function(x)
    f = gc.compile([x], gc.grad((y * y).sum(), x))
    ops = [node.op.name for node in f.stages["optimized"].nodes()]
    assert "concat" in ops
    assert "embed" not in ops


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint16", "float32"])
@pytest.mark.parametrize("fill", [np.nan, np.float64(1.5), np.float32(np.nan), np.float64(2)])
def test_floats_fill_integers(dtype, fill):
    """nan makes floats, as it does by default; a float of NumPy the common dtype, as in `where`."""
    x = gc.tensor("x", {"t": 3}, dtype=dtype)
    moved = [
        x.shift(t=1, fill_value=fill),
        x.pad(t=(1, 0), constant_values=fill)[:3],
        x.pad(t=(1, 0), constant_values={"t": (fill, 0)})[:3],
        x.rolling(t=2).construct("lag", fill_value=fill).isel(lag=0),
    ]
    wanted = np.result_type(x.dtype, fill)
    if type(fill) is float and x.dtype.kind in "iu":
        wanted = x.shift(t=1).dtype
    elif x.dtype.kind == "f":
        wanted = x.dtype
    assert {y.dtype for y in moved} == {wanted}
    for found in gc.compile([x], moved)(np.array([1, 0, 1], dtype)):
        np.testing.assert_array_equal(found, [fill, 1, 0])
