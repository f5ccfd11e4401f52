"""Steps that choose and move places."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from hypothesis import strategies as st

import graphcore as gc
from tests.random_xarray.drawing import (
    Draw,
    Step,
    Value,
    both,
    bounded,
    method,
    one_dim,
    pick,
    some_dims,
)


def bounds(draw: Draw, size: int) -> slice:
    ends = st.one_of(st.none(), st.integers(-size - 2, size + 2))
    return slice(draw(ends), draw(ends), pick(draw, None, 1, -1, 2, -2, 3))


def indexer(draw: Draw, size: int) -> Any:
    """What stands for one dim: out of range now and then."""
    slack = 1 if draw(st.integers(0, 14)) == 0 else 0
    low, high = -size - slack, size - 1 + slack
    inside = st.integers(low, high) if low <= high else st.just(0)
    match pick(draw, "slice", "slice", "int", "list", "mask", "named", "table"):
        case "slice":
            return bounds(draw, size)
        case "int":
            return draw(inside)
        case "list":
            return draw(st.lists(inside, max_size=4)) if size else []
        case "mask":
            return draw(st.lists(st.booleans(), min_size=size + slack, max_size=size + slack))
        case "named":
            if not size:
                return slice(None)
            count = pick(draw, 2, 2, 2, 3)
            values = draw(st.lists(inside, min_size=count, max_size=count))
            return xarray.DataArray(np.array(values), dims=pick(draw, "p", "p", "a", "b"))
    if not size:
        return slice(None)
    values = draw(st.lists(inside, min_size=4, max_size=4))
    return xarray.DataArray(np.reshape(values, (2, 2)), dims=pick(draw, ("p", "r"), ("r", "p")))


def indexing(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    dims = some_dims(draw, x, least=min(1, len(x.dims)))
    places = {dim: indexer(draw, x.sizes.get(dim, 1)) for dim in dims}
    shown = {
        dim: f"({at.dims}, {at.values.tolist()})" if isinstance(at, xarray.DataArray) else at
        for dim, at in places.items()
    }
    if pick(draw, False, True):
        return both(f"isel({shown})", lambda x: x.isel(places), x)
    return both(f"[{shown}]", lambda x: x[places], x)


def by_position(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    keys = [bounds(draw, x.sizes[dim]) if pick(draw, 0, 1) else 0 for dim in x.dims]
    keys = keys[: draw(st.integers(0, len(keys)))]
    if pick(draw, False, True):
        keys.append(...)
    return both(f"[{keys}]", lambda x: x[tuple(keys)], x)


def by_tensor(draw: Draw, pool: list[Value]) -> Step:
    """Positions worked out by the program itself."""
    x, i = pick(draw, *pool), pick(draw, *pool)
    dim = one_dim(draw, x)
    size = x.sizes.get(dim, 1)
    if i.kind != "i" or not size or dim in i.dims:
        return method("isel", x, {dim: slice(1, None)})
    return both(f"isel({dim}=abs(_) % {size})", lambda x, i: x.isel({dim: abs(i) % size}), x, i)


def ends(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    dim = one_dim(draw, x)
    return method(pick(draw, "head", "tail", "thin"), x, {dim: draw(st.integers(1, 4))})


def moves(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    dim = one_dim(draw, x)
    match pick(draw, "roll", "shift", "shift fill", "diff", "flip"):
        case "roll":
            return method("roll", x, {dim: bounded(draw, x, dim)})
        case "shift":
            return method("shift", x, {dim: bounded(draw, x, dim)})
        case "shift fill":
            return method("shift", x, {dim: bounded(draw, x, dim)}, fill_value=1)
        case "diff":
            return method("diff", x, dim, pick(draw, 1, 2, 0, 5))
    back = {dim: slice(None, None, -1)}
    return Step(f"flip({dim})", (x,), lambda x: gc.flip(x, dim), lambda x: x.isel(back))


MODES = "constant edge reflect symmetric wrap maximum minimum mean"


def padding(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    dim = one_dim(draw, x)
    width = pick(draw, 1, (0, 2), (3, 1), (0, 0))
    mode = pick(draw, *MODES.split())
    options = {"constant_values": 1} if mode == "constant" and pick(draw, 0, 1) else {}
    return method("pad", x, {dim: width}, mode=mode, **options, exact=mode != "mean",
                  jumps=mode == "mean" and x.kind == "i")  # fmt: skip


def windows(draw: Draw, pool: list[Value]) -> Step:
    # xarray is wrong for complex, and has float32 for some reductions of small integers
    fit = [x for x in pool if x.kind in "if" and x.theirs.dtype.itemsize > 2]
    x = pick(draw, *fit or pool)
    dim, size = one_dim(draw, x), draw(st.integers(1, 4))
    name = pick(draw, "sum", "mean", "max", "min", "std", "count") if fit else "count"
    if pick(draw, False, True):
        options = {"min_periods": pick(draw, None, 1), "center": pick(draw, False, True)}
        rolled = lambda x: getattr(x.rolling({dim: size}, **options), name)()
        return both(f"rolling({dim}={size}, {options}).{name}()", rolled, x, exact=False)
    ways = ("trim", "exact", *["pad"] * (x.kind == "f"))  # dtypes of others depend on sizes there
    options = {"boundary": pick(draw, *ways), "side": pick(draw, "left", "right")}
    blocks = lambda x, **skip: getattr(x.coarsen({dim: size}, **options), name)(**skip)
    skip = {} if name == "count" else {"skipna": True}  # which is how xarray's are
    text = f"coarsen({dim}={size}, {options}).{name}()"
    return Step(text, (x,), lambda x: blocks(x, **skip), blocks, exact=False)


def sorting(draw: Draw, pool: list[Value]) -> Step:
    """xarray sorts by labels only; NumPy's sort along the axis."""
    x = pick(draw, *pool)
    dim, name = one_dim(draw, x), pick(draw, "sort", "argsort")

    def theirs(x: xarray.DataArray) -> xarray.DataArray:
        order = getattr(np, name)(x.values, x.get_axis_num(dim), kind="stable")
        return xarray.DataArray(order, dims=x.dims)

    return Step(
        f"{name}({dim})", (x,), lambda x: getattr(x, name)(dim), theirs, jumps=name != "sort"
    )


def filling(draw: Draw, pool: list[Value]) -> Step:
    """Forward filling of xarray needs another library; here by hand."""
    x = pick(draw, *pool)
    dim = one_dim(draw, x)

    def theirs(x: xarray.DataArray) -> xarray.DataArray:
        values = np.moveaxis(x.values.copy(), x.get_axis_num(dim), 0)
        for i in range(1, len(values)):
            values[i] = np.where(np.isnan(values[i]), values[i - 1], values[i])
        return xarray.DataArray(np.moveaxis(values, 0, x.get_axis_num(dim)), dims=x.dims)

    return Step(f"ffill({dim})", (x,), lambda x: x.ffill(dim), theirs)


STEPS = (
    indexing,
    indexing,
    by_position,
    by_tensor,
    ends,
    moves,
    padding,
    windows,
    sorting,
    filling,
)
