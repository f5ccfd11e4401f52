"""Convolution of signals, each pair of values by itself, and window functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal
import xarray

import graphcore as gc
from tests.operations.case import Case, Input, X

MODES = ("full", "same", "valid")
WINDOWS = ("hann", "hamming", "blackman", "bartlett")


def filtered(x: Any, b: Any, a: Any) -> Any:
    """A recursive filter along `col`."""
    return x.copy(data=scipy.signal.lfilter(b, a, x.values, axis=1).astype(x.dtype))


def convolved(x: Any, y: Any, dim: str, mode: str) -> Any:
    """Each product added where it belongs."""
    n, m = x.sizes[dim], y.sizes[dim]
    if m == 0:
        raise ValueError("a window has one place at least")
    order = dict.fromkeys((*x.dims, *y.dims))
    sizes = {d: x.sizes[d] if d in x.dims else y.sizes[d] for d in order} | {dim: n + m - 1}
    whole = xarray.DataArray(np.zeros(list(sizes.values()), x.dtype), dims=list(sizes))
    if n == 0 and mode == "valid":  # sums of nothing, as many as the size says
        return whole.pad({dim: (1, 1)}, constant_values=x.dtype.type(0))
    for i in range(n):
        for j in range(m):
            whole[{dim: i + j}] += x.isel({dim: i}) * y.isel({dim: j})
    start, size = {
        "full": (0, n + m - 1), "same": ((m - 1) // 2, n),
        "valid": (min(n, m) - 1, abs(n - m) + 1),
    }[mode]  # fmt: skip
    return whole.isel({dim: slice(start, start + size)})


def correlated(x: Any, y: Any, dim: str, mode: str) -> Any:
    return convolved(x, y.isel({dim: slice(None, None, -1)}), dim, mode)


def window(name: str, size: Any, **options: Any) -> Case:
    """A window function of a size known now or at the call."""

    def theirs(x: Any) -> Any:
        n = x.sizes["row"] if size is None else size
        values = getattr(scipy.signal.windows, name)(n, **options)
        return x * xarray.DataArray(values, dims="row" if size is None else "t")

    def ours(x: Any) -> Any:
        told = (
            {"size": x.sizes["row"], "dim": "row"} if size is None else {"size": size, "dim": "t"}
        )
        return x * getattr(gc.signal, name)(**told, **options)

    return Case(ours, theirs)


FUNCTIONS = (("convolve", convolved), ("correlate", correlated), ("fftconvolve", convolved))

CASES: dict[str, Case] = {
    **{
        f"{name} {mode}": Case(
            lambda x, y, name=name, mode=mode: getattr(gc.signal, name)(x, y, "col", mode),
            lambda x, y, theirs=theirs, mode=mode: theirs(x, y, "col", mode),
            (X, Input("batch col")),
        )
        for name, theirs in FUNCTIONS
        for mode in MODES
    },
    "convolve longer": Case(
        lambda x, y: gc.signal.convolve(x, y.rename(six="col"), "col", "valid"),
        lambda x, y: convolved(x, y.rename(six="col"), "col", "valid"),
        (X, Input("row six")),
    ),
    "correlate several": Case(
        lambda x, y: gc.signal.correlate(x, y),
        lambda x, y: xarray.DataArray(
            scipy.signal.correlate(x.values, y.transpose("row", "col").values), dims=("row", "col")
        ),
        (X, Input("col row")),
        fixed=("row", "col"),
        batch=False,
    ),
    "fftconvolve several": Case(
        lambda x, y: gc.signal.fftconvolve(x, y, ("row", "col"), "same"),
        lambda x, y: xarray.DataArray(
            scipy.signal.fftconvolve(x.values, y.transpose("row", "col").values, "same"),
            dims=("row", "col"),
        ),
        (X, Input("col row")),
        fixed=("row", "col"),
        batch=False,
    ),
    **{f"{name} unknown": window(name, None) for name in WINDOWS},
    "hann periodic": window("hann", None, sym=False),
    "blackman periodic": window("blackman", 7, sym=False),
    "bartlett periodic": window("bartlett", 8, sym=False),
    "hamming of one": window("hamming", 1),
    "bartlett of none": window("bartlett", 0),
    "detrend": Case(
        lambda x: gc.signal.detrend(x, "col"),
        lambda x: x.copy(data=scipy.signal.detrend(x.values, axis=1)) if x.size else x,
        fixed=("col",),
    ),
    "detrend constant": Case(
        lambda x: gc.signal.detrend(x, "row", "constant"), lambda x: x - x.mean("row"),
    ),
    "lfilter": Case(
        lambda x: gc.signal.lfilter([0.5, 1.5], [2.0, -0.3, 0.1], x, "col"),
        lambda x: filtered(x, [0.5, 1.5], [2.0, -0.3, 0.1]), fixed=("col",),
    ),
    "lfilter of tensors": Case(
        lambda x, b: gc.signal.lfilter(b, [1.0], x, "col"),
        lambda x, b: filtered(x, b.values, [1.0]), (X, Input("row")), fixed=("row", "col"),
        batch=False,
    ),
}  # fmt: skip
