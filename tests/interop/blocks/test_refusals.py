"""Programs in which blocks mix are refused, with the line that mixes them and a cure."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest
import xarray

import graphcore as gc

x = gc.tensor("x", {"time": None, "col": 3})
n = gc.tensor("n", {"time": None}, dtype="int64")
w = gc.tensor("w", {"col": 3})
other = gc.tensor("other", {"time": "n_other", "col": 3})
X = xarray.DataArray(np.arange(12.0).reshape(4, 3), dims=("time", "col"))
GIVEN = {
    "x": X.chunk(time=2),
    "n": xarray.DataArray(np.arange(4), dims="time").chunk(time=2),
    "w": np.ones(3),
    "other": X,
}
MIXING: dict[str, Callable[[], gc.Tensor]] = {
    "works along dim 'time'": lambda: gc.cumsum(x, "time"),
    "isel": lambda: x.isel(time=slice(1, None)),
    "argmax": lambda: x.argmax("time"),
    "sort": lambda: gc.sort(n, "time"),
    "scan": lambda: gc.scan(lambda c, v: (c + v, None), w, x, dim="time")[0],
    "median": lambda: gc.median(x, "time"),
    "shift": lambda: gc.shift(x, time=1),
    "rolling": lambda: x.rolling(time=2).mean(),
    "unstack": lambda: x.unstack(time={"a": 2, "b": 2}),
    "cholesky": lambda: gc.linalg.svdvals(x, dims=("time", "col")),
    "uses the size 'time'": lambda: x / x.sizes["time"],
    "arange": lambda: x * gc.arange(x.sizes["time"], dim="time"),
    "logsumexp": lambda: gc.special.logsumexp(x, "time"),
    "brings it together": lambda: x + other,
    "fori_loop": lambda: gc.fori_loop(0, 3, lambda i, c: c + (x * c).sum("time"), w),
    "along both 'time' and 't'": lambda: x * x.rename({"time": "t"}),
    "take": lambda: x.isel(time=n),
    "softmax": lambda: gc.special.softmax(x, "time"),
    "any": lambda: gc.while_loop(lambda c: (c > 0).any(), lambda c: c - 1, x),
    "callback": lambda: gc.callback(np.sin, x)(x),
    "sums over it": lambda: gc.fori_loop(0, 3, lambda i, c: c - gc.pullback(x * c, c, x), w),
}


def call(y: gc.Tensor) -> None:
    inputs = [x, n, w, other]
    needed = {i.name for i in inputs}
    f = gc.compile(inputs, y, native=False)
    f(**{name: value for name, value in GIVEN.items() if name in needed})


@pytest.mark.parametrize("word", MIXING)
def test_programs_that_mix(word: str) -> None:
    build = MIXING[word]
    y = build()
    line = inspect.getsourcelines(build)[1]
    with pytest.raises(gc.GraphValueError, match="over_blocks: ") as caught:
        call(y)
    assert "cure: " in str(caught.value)
    assert f"test_refusals.py:{line}" in str(caught.value)
    if " " in word:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "y", [gc.cumsum(x, "col") * 2, x.argmax("col"), gc.fori_loop(0, 3, lambda i, c: c * x, x)]
)
def test_programs_that_do_not_mix(y: gc.Tensor) -> None:
    call(y)


def test_derivatives_through_extremes() -> None:
    y = gc.grad((x * w).max(), w)
    with pytest.raises(gc.GraphValueError, match=r"grad|pullback") as caught:
        call(y)
    assert "goes through max" in str(caught.value)


def test_declared_sizes() -> None:
    z = gc.tensor("z", {"time": 4, "col": 3})
    f = gc.compile([z], 2 * z)
    with pytest.raises(gc.GraphValueError, match=r"'time' of input 'z' has several chunks.*size 4"):
        f(X.chunk(time=2))
    assert f(X.chunk()).chunks == ((4,), (3,))
    z = gc.tensor("z", {"time": None, "col": None, "both": "time*col"})
    with pytest.raises(gc.GraphValueError, match="the size"):
        gc.compile([z], z)(xarray.DataArray(np.ones((2, 2, 4)), dims=z.dims).chunk(both=2))


def test_sizes_that_a_program_computes() -> None:
    f = gc.compile([x], x.dropna("time"))
    for chunks in (2, 4):
        with pytest.raises(gc.GraphValueError, match=r"test_refusals.py:\d+ computes a size"):
            f(X.chunk(time=chunks))


def test_arguments() -> None:
    f = gc.compile([x, n], {"y": x * n})
    N = GIVEN["n"]
    with pytest.raises(gc.GraphValueError, match="time"):
        f(X.chunk(time=2), xarray.DataArray(np.arange(3), dims="time"))
    with pytest.raises(gc.GraphTypeError, match="lose values"):
        f(X.chunk(time=2), N.astype(float))
    with pytest.raises(gc.GraphValueError, match="has dims"):
        f(X.chunk(time=2), N.rename(time="t"))
    with pytest.raises(gc.GraphValueError, match="labels of dim 'time' differ"):
        f(X.assign_coords(time=range(4)).chunk(time=2), N.assign_coords(time=range(1, 5)))
    with pytest.raises(gc.GraphValueError, match="lazy"):
        f(X.chunk(time=2), N, out={"y": np.empty((4, 3))})
    with pytest.raises(gc.GraphValueError, match="no argument is a DataArray in chunks"):
        gc.over_blocks(f, X, N.compute())
    with pytest.raises(gc.GraphTypeError, match="takes a compiled program"):
        gc.over_blocks(lambda x: x, X.chunk(time=2))


def test_failures_in_a_block_name_the_line() -> None:
    y = w.isel(col=n)
    f = gc.compile([w, n], y)
    lazy = f(np.ones(3), GIVEN["n"])
    with pytest.raises(gc.GraphIndexError, match=r"test_refusals.py:\d+"):
        lazy.compute(scheduler="sync")
