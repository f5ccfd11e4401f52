"""Results in arrays that a call is given: `f(..., out=y)`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels

TARGETS = [False] if llvm_kernels.unavailable() else [True, False]
ROW = gc.tensor("x", {"row": None, "col": 3})
X = np.arange(12.0).reshape(4, 3)


@pytest.fixture(params=TARGETS, ids=lambda native: "native" if native else "numpy")
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


@dataclass
class Pair:
    first: Any
    second: Any


def test_what_is_given_is_filled_and_returned(native: bool) -> None:
    outputs = {"a": gc.exp(ROW), "b": [ROW.sum("col"), (ROW.sum(), ROW.argmax("row"))], "c": ROW}
    f = gc.compile([ROW], outputs, native=native)
    wanted = f(X)
    out = gc.tree.map(lambda y: np.full_like(y, 7), wanted)
    arrays = gc.tree.leaves(out)
    assert f(X, out=out) is out
    assert f(x=X, out=out) is out
    for y, x, z in zip(gc.tree.leaves(wanted), arrays, gc.tree.leaves(out), strict=True):
        assert x is z
        assert x.tobytes() == y.tobytes()
    if native:  # no other results are made
        f._given_results._make = None
    with_list = {**out, "b": (out["b"][0], [*out["b"][1]])}  # lists and tuples are alike
    assert f(2 * X, out=with_list) is with_list
    np.testing.assert_array_equal(arrays[-1], 2 * X)
    g = gc.compile([ROW], Pair(ROW + 1, ROW.sum()), native=native)
    pair = Pair(np.zeros((4, 3)), np.zeros(()))
    assert g(X, out=pair) is pair
    np.testing.assert_array_equal(pair.first, X + 1)


@pytest.mark.parametrize(
    "where",
    [
        lambda m: m[:16].view(np.float64).reshape(1, 2),
        lambda m: m[:40].view(np.float64)[::-2][:2].reshape(1, 2),
        lambda m: m[1:17].view(np.float64).reshape(1, 2),
        lambda m: m[:16].view(np.float64).reshape(2, 1).T,
    ],
    ids=["row-major", "backward", "misaligned", "transposed"],
)
def test_memory_of_any_order(where: Any, native: bool) -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    memory = np.zeros(64, np.uint8)
    y = where(memory)
    gc.compile([x], 2 * x + 1, native=native)([[1.0, 2.0]], out=y)
    np.testing.assert_array_equal(y, [[3.0, 5.0]])
    assert np.count_nonzero(memory) == np.count_nonzero(np.array([3.0, 5.0]).view(np.uint8))


def test_memory_that_arguments_share(native: bool) -> None:
    reverse = slice(None, None, -1)
    for y in (ROW.cumsum("row").isel(row=reverse), 2 * ROW - ROW.isel(row=reverse)):
        f = gc.compile([ROW], y, native=native)
        x, first, later = np.arange(120.0).reshape(40, 3), slice(40), slice(1, 41)
        wanted, whole = f(x), np.zeros((41, 3))
        for given, out in ((first, first), (first, later), (later, first)):
            whole[given] = x
            f(whole[given], out=whole[out])
            np.testing.assert_array_equal(whole[out], wanted)
    apart = np.zeros((8, 3))
    two = gc.compile([ROW], [ROW, -ROW], native=native)
    two(X, out=[apart[::2], apart[1::2]])  # which lie between each other
    np.testing.assert_array_equal(apart[1::2], -apart[::2])


def test_constants_stay_as_they_are(native: bool) -> None:
    array = np.ones((4, 3))
    constant = gc.constant(array, ("row", "col"))
    f = gc.compile([ROW], [ROW + constant, constant], native=native)
    f(X, out=[array, np.empty((4, 3))])
    np.testing.assert_array_equal(f(X)[0], X + 1)


def test_sizes_that_are_found_in_the_call(native: bool) -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], x[x > 0] * 2, native=native)
    y = np.zeros(2)
    assert f(np.array([-1.0, 1.0, 2.0]), out=y) is y
    np.testing.assert_array_equal(y, [2.0, 4.0])
    with pytest.raises(
        gc.GraphValueError, match=r"out has shape \(2,\), but its result has \(1,\)"
    ):
        f(np.array([-1.0, 1.0, -2.0]), out=y)
    np.testing.assert_array_equal(y, [2.0, 4.0])


def test_errors_of_a_call_are_the_same(native: bool) -> None:
    at = gc.tensor("at", {"to": None}, dtype="int64")
    f = gc.compile([ROW, at], ROW.isel(row=at), native=native)
    said = []
    for out in ({}, {"out": np.zeros((2, 3))}):
        with pytest.raises(gc.GraphIndexError) as caught:
            f(X, np.array([0, 9]), **out)
        said.append(str(caught.value).partition("called at")[0])
    assert said[0] == said[1]


def test_an_input_named_out_takes_its_value() -> None:
    out = gc.tensor("out", {"row": None})
    f = gc.compile([ROW, out], ROW.sum("col") + out)
    np.testing.assert_array_equal(f(X, out=np.ones(4)), X.sum(1) + 1)

    @gc.function(x=("row", "col"), out=("row",))
    def g(x: Any, out: Any, k: int = 1) -> Any:
        return x.sum("col") + out * k

    np.testing.assert_array_equal(g(X, out=np.ones(4), k=2), X.sum(1) + 2)


def test_functions_take_it() -> None:
    @gc.function(x=("row", "col"))
    def f(x: Any, k: int = 1) -> Any:
        return x * k

    y = np.zeros((4, 3))
    assert f(X, out=y) is y
    assert f(X, 3, out=y) is y
    np.testing.assert_array_equal(y, 3 * X)
    with pytest.raises(gc.GraphTypeError, match="f: x is a tensor, for which there are no results"):
        f(ROW, out=y)


def test_dataarrays_hold_what_is_given(native: bool) -> None:
    xarray = pytest.importorskip("xarray")
    f = gc.compile([ROW], ROW * 2, returns="xarray", native=native)
    y = np.zeros((4, 3))
    found = f(xarray.DataArray(X, dims=("row", "col"), coords={"row": [*"abcd"]}), out=y)
    assert np.shares_memory(found.values, y)
    assert found.row.values.tolist() == [*"abcd"]
    np.testing.assert_array_equal(y, 2 * X)
    with pytest.raises(gc.GraphTypeError, match="out must be an array of NumPy") as caught:
        f(X, out=found)
    assert "np.asarray(value)" in str(caught.value)


def test_files_in_memory(tmp_path: Path, native: bool) -> None:
    y = np.memmap(tmp_path / "y", np.float64, "w+", shape=(4, 3))
    assert gc.compile([ROW], ROW * 2, native=native)(X, out=y) is y
    y.flush()
    np.testing.assert_array_equal(np.fromfile(tmp_path / "y").reshape(4, 3), 2 * X)


def test_empty_and_other_dtypes(native: bool) -> None:
    for dtype in ("float32", "int32", "bool", "complex128"):
        x = gc.tensor("x", {"row": None}, dtype=dtype)
        f = gc.compile([x], x, native=native)
        for n in (0, 1, 3):
            given, y = np.ones(n, dtype), np.zeros(n, dtype)
            np.testing.assert_array_equal(f(given, out=y), given)
