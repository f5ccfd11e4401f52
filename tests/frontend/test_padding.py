"""Padding: dtypes as xarray has them, sizes that only the call tells, refusals, and the cost."""

import numpy as np
import pytest
import xarray

import graphcore as gc
from graphcore.frontend.window.padding import MODES

DTYPES = ["int8", "uint16", "int32", "uint64", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (0, 2)])
def test_nan_by_default(dtype, shape):
    theirs = xarray.DataArray(np.ones(shape, dtype), dims=("a", "b"))
    x = gc.tensor("x", theirs.dims, dtype=dtype)
    for width in ({}, {"a": 0}, {"a": (1, 2), "b": 1}):
        y, wanted = x.pad(width), theirs.pad(width)
        assert (y.dims, y.dtype) == (wanted.dims, wanted.dtype)
        found = gc.compile([x], y)(theirs.values)
        np.testing.assert_array_equal(found, wanted.values, strict=True)


@pytest.mark.parametrize("mode", MODES)
def test_widths_known_at_the_call(mode):
    x, reach = gc.tensor("x", {"a": None}), gc.tensor("reach", {"r": None})
    option = {"constant_values": 2} if mode == "constant" else {}
    size, width = x.sizes["a"], reach.sizes["r"]
    y = x.pad(a=(width, 9 - size - width), mode=mode, **option)
    assert y.shape == (9,)
    f = gc.compile([x, reach], y)
    for size in range(1, 7):
        for before in range(9 - size + 1):
            array = np.arange(1.0, size + 1)
            wanted = np.pad(array, (before, 9 - size - before), mode, **option)
            np.testing.assert_allclose(f(array, np.ones(before)), wanted, rtol=1e-14)
    with pytest.raises(gc.GraphError, match=r"test_padding\.py"):
        f(np.ones(5), np.ones(6))
    with pytest.raises(gc.GraphError, match=r"test_padding\.py"):
        f(np.ones(10), np.ones(0))
    if mode != "constant":
        with pytest.raises(gc.GraphError, match=r"test_padding\.py"):
            f(np.ones(0), np.ones(2))


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_odd_reflection_of_small_sizes(mode, size):
    array = np.random.default_rng(size).normal(size=size)
    x = gc.tensor("x", {"a": None})
    for width in ((1, 0), (0, 1), (3, 11), (20, 2)):
        f = gc.compile([x], x.pad(a=width, mode=mode, reflect_type="odd"))
        wanted = np.pad(array, width, mode, reflect_type="odd")
        np.testing.assert_allclose(f(array), wanted, rtol=1e-12, atol=1e-12)


def test_infinities_stay_where_they_are():
    array = np.array([1.0, np.inf, -2.0, 3.0])
    x = gc.tensor("x", {"a": None})
    for mode in ("reflect", "symmetric"):
        for kind in ("even", "odd"):
            f = gc.compile([x], x.pad(a=2, mode=mode, reflect_type=kind))
            np.testing.assert_array_equal(f(array), np.pad(array, 2, mode, reflect_type=kind))


@pytest.mark.parametrize("mode", sorted(MODES.keys() - {"median"}))
@pytest.mark.parametrize("size", [7, None])
def test_no_place_is_looked_up(mode, size):
    """Values and derivatives are slices and what slices transpose to, never gathers."""
    x = gc.tensor("x", {"a": size, "b": None})
    option = {"constant_values": 2.0} if mode == "constant" else {}
    loss = (x.pad(a=(2, 3), mode=mode, **option) ** 3).sum()
    g = gc.grad(loss, x)
    f = gc.compile([x], [loss, g, gc.grad((g**2).sum(), x)])
    ops = {node.op.name for node in f.stages["optimized"].nodes()}
    assert not ops & {"gather", "scatter"}


def test_what_adds_nothing_is_the_same():
    x = gc.tensor("x", {"a": 6, "b": None})
    same = x.pad(), x.pad({}), x.pad(a=0, mode="edge"), x.pad(a=(0, 0), b=0, mode="wrap")
    assert all(y is x for y in same)
