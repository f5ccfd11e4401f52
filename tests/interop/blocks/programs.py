"""Programs for tests by blocks, and their arguments."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import xarray

import graphcore as gc
from graphcore.ir import structures

DIMS = {"time": None, "lat": None, "lev": 4}
x = gc.tensor("x", DIMS)
w = gc.tensor("w", {"lev": 4})
n = gc.tensor("n", {"time": None}, dtype="int64")
b = gc.tensor("b", {"time": None, "lat": None}, dtype="bool")
g = gc.tensor("g", {"lat": None})
LATS = np.linspace(-60, 60, 6)
k = gc.constant(xarray.DataArray(np.cos(LATS / 60), dims="lat", coords={"lat": LATS}))
loss = ((gc.dot(x, w, dim="lev") - gc.sin(g)) ** 2).mean() + (w**2).sum()
holes = gc.where(b, x, np.nan)

BATCH = {
    "elementwise": gc.exp(x * w),
    "integers": n * 2 + 1,
    "argmax": x.argmax("lev"),
    "sort": gc.sort(x, "lev"),
    "running": gc.cumsum(x, "lev"),
    "scan": gc.scan(lambda c, v: (c * 0.5 + v, c + v), gc.zeros_like(x.isel(lev=0)), x, dim="lev"),
    "picked": w.isel(lev=n % 4),
    "renamed": x.rename({"time": "t"}),
    "transposed": x.transpose("lev", "lat", "time"),
    "stacked": x.stack(z=("time", "lev")),
    "constant": x * k,
    "per instance": gc.grad(gc.dot(x, w, dim="lev") ** 2, w, per=("time", "lat")),
    "no blocks": w * 2,
}
REDUCED = {
    "sum": x.sum("time"),
    "sum of all": x.sum(),
    "integer sum": n.sum(),
    "sum of equals": gc.ones_like(x).sum("time"),
    "mean": x.mean("lat"),
    "mean of all": x.mean(),
    "mean of two dims": x.mean(("lat", "lev")),
    "integer mean": n.mean(),
    "max": x.max("time"),
    "min": x.min(),
    "ptp": gc.ptp(x, "time"),
    "integer max": n.max(),
    "prod": x.prod("lat"),
    "any": b.any(),
    "all": b.all("lat"),
    "count": holes.count("time"),
    "skipna": holes.mean("time", skipna=True),
    "where": x.mean("lat", where=b),
    "var": x.var(("time", "lat"), ddof=1),
    "std": x.std("time"),
    "dot": gc.dot(x, g, dim="lat"),
    "contraction": gc.dot(x, x, dim=("time", "lat")),
    "weighted": (x * k).sum("lat") / k.sum("lat"),
    "groups": gc.segment_sum(x, n % 4, 4, dim="time"),
    "anomaly": (x - x.mean("time")) / x.std("time"),
    "mean of picked": w.isel(lev=n % 4).mean("time"),
}
DERIVED = {
    "loss": loss,
    "dw": gc.grad(loss, w),
    "dg": gc.grad(loss, g),
    "dx": gc.grad(loss, x),
    "hessian": gc.hessian(loss, w),
    "hvp": gc.hvp(loss, w, w),
    "pushforward": gc.pushforward(loss, w, w),
    "jacobian": gc.jacobian(x.mean(("time", "lat")) * w, w),
    "of a logarithm": gc.grad(gc.log(gc.exp(gc.dot(x, w, dim="lev")).mean()), w),
    "of a deviation": gc.grad((x * w).std(("time", "lat")).sum(), w),
    "of picked": gc.grad((w.isel(lev=n % 4) ** 2).sum(), w),
    "of a loop": gc.grad(gc.scan(lambda c, v: (gc.tanh(c * v), None), g, x, dim="lev")[0].sum(), g),
}
INPUTS = [x, w, n, b, g]


def arguments() -> list[Any]:
    """One argument for each of `INPUTS`, with labels."""
    rng = np.random.default_rng(0)
    labels = {"time": np.arange(7), "lat": LATS, "day": ("time", list("abcdefg"))}
    return [
        xarray.DataArray(rng.normal(size=(7, 6, 4)), dims=tuple(DIMS), coords=labels),
        rng.normal(size=4),
        xarray.DataArray(rng.integers(0, 9, 7), dims="time"),
        xarray.DataArray(rng.random((7, 6)) > 0.4, dims=("time", "lat")),
        rng.normal(size=6),
    ]


def chunked(given: list[Any], chunks: dict[str, Any]) -> list[Any]:
    """The arguments with chunks along the dims that they have."""
    return [
        x.chunk({dim: parts for dim, parts in chunks.items() if dim in x.dims})
        if isinstance(x, xarray.DataArray)
        else x
        for x in given
    ]


def require_equal(found: Any, expected: Any, scheduler: str = "sync") -> None:
    """Lazy results have the dims, dtypes, labels and values of others."""
    (computed,) = dask.compute(found, scheduler=scheduler)
    rows = zip(structures.leaves(found), structures.leaves(computed), structures.leaves(expected))
    for (path, lazy), (_, y), (_, other) in rows:
        assert lazy.chunks is not None, path
        assert (y.dims, y.dtype, y.name) == (other.dims, other.dtype, None), path
        assert {*y.coords} == {*other.coords}, path
        if y.dtype.kind in "biu":
            xarray.testing.assert_equal(y, other)
        else:
            xarray.testing.assert_allclose(y, other, rtol=1e-12, atol=1e-13)
