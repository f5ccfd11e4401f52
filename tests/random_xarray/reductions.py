"""Steps that sum up dims."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import xarray

import graphcore as gc
from tests.random_xarray.drawing import (
    Draw,
    Step,
    Value,
    any_dims,
    method,
    one_dim,
    pick,
    some_dims,
)

REDUCTIONS = "sum prod mean var std max min median any all count"


def reductions(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    name = pick(draw, *REDUCTIONS.split())
    options: dict[str, Any] = {"dim": any_dims(draw, x)}
    if name not in ("any", "all", "count"):
        options["skipna"] = pick(draw, False, True)
    if name in ("var", "std"):
        options["ddof"] = pick(draw, 0, 1)
    exact = name in "sum prod max min any all count"
    return method(name, x, exact=exact, jumps=name in "any all count", **options)


def extremes(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    return method(pick(draw, "argmax", "argmin"), x, dim=one_dim(draw, x), skipna=False, jumps=True)


def running(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    name, skipna = pick(draw, "cumsum", "cumprod"), pick(draw, False, True)
    return method(name, x, dim=any_dims(draw, x) if x.dims else "q", skipna=skipna)


def quantiles(draw: Draw, pool: list[Value]) -> Step:
    x, q = pick(draw, *pool), pick(draw, 0.5, 0, 1, 0.3, [0.25, 0.75], [0.1])
    ways = ("lower", "nearest", "linear", "hazen", "midpoint")
    # NumPy interpolates by 0 * inf, which is nan, where a quantile is one of the values.
    infinite = x.kind == "f" and bool(np.isinf(x.theirs.values).any())
    way = pick(draw, *ways[: 2 if infinite else 5])
    options = {"dim": any_dims(draw, x), "method": way, "skipna": False}

    def theirs(x: xarray.DataArray) -> xarray.DataArray:
        dtype = x.dtype if x.dtype.kind == "f" else np.float64
        return x.quantile(q, **options).astype(dtype)  # in xarray always what the shares have

    text = f"quantile({q}, {options})"
    ours = lambda x: x.quantile(q, **options)
    return Step(text, (x,), ours, theirs, exact=False, jumps=way == "nearest")


def products(draw: Draw, pool: list[Value]) -> Step:
    # With infinities a product depends on its order: sums over one operand alone come first here.
    fit = [x for x in pool if x.kind in "biu" or not np.isinf(x.theirs.values).any()]
    x, y = pick(draw, *fit or pool), pick(draw, *fit or pool)
    dim = pick(draw, None, ..., "one", "several")
    if dim in ("one", "several"):
        dim = one_dim(draw, x) if dim == "one" else some_dims(draw, x)
    if pick(draw, False, True):
        return Step("matmul", (x, y), operator.matmul, operator.matmul, exact=False)  # -0.0 or 0.0

    def theirs(x: xarray.DataArray, y: xarray.DataArray) -> xarray.DataArray:
        with xarray.set_options(use_opt_einsum=False):  # its matrix products take 0 * inf for 0
            return xarray.dot(x, y, dim=dim)

    ours = lambda x, y: gc.dot(x, y, dim=dim)
    return Step(f"dot(dim={dim!r})", (x, y), ours, theirs, exact=False)


STEPS = (reductions, reductions, extremes, running, quantiles, products)
