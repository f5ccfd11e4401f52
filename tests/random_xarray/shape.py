"""Steps that change dims."""

from __future__ import annotations

import xarray
from hypothesis import strategies as st

import graphcore as gc
from tests.random_xarray.drawing import (
    Draw,
    Step,
    Value,
    both,
    method,
    one_dim,
    pick,
    some_dims,
)


def orders(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    dims = draw(st.permutations(x.dims)) if x.dims else []
    match pick(draw, "all", "none", "some", "part"):
        case "none":
            dims = []
        case "some":
            dims = [*dims[:1], ..., *dims[2:]]
        case "part":
            dims = dims[1:]
    return method("transpose", x, *dims)


def names(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    if not x.dims:
        return method("rename", x, {"a": "d"})
    old = draw(st.lists(st.sampled_from(x.dims), unique=True))
    new = draw(st.lists(st.sampled_from([*x.dims, "d", "e"]), min_size=len(old), max_size=len(old)))
    return method("rename", x, dict(zip(old, new, strict=True)))


def growth(draw: Draw, pool: list[Value]) -> Step:
    x, y = pick(draw, *pool), pick(draw, *pool)
    match pick(draw, "expand", "expand sizes", "like", "squeeze"):
        case "expand":
            return method("expand_dims", x, pick(draw, "d", ["d", "e"], *x.dims))
        case "expand sizes":
            return method("expand_dims", x, {"d": pick(draw, 2, 1, 0)})
        case "like":
            return both("broadcast_like", lambda x, y: x.broadcast_like(y), x, y)
    single = [dim for dim, size in x.sizes.items() if size == 1]
    return method("squeeze", x, pick(draw, *single) if single else one_dim(draw, x))


def merged(draw: Draw, pool: list[Value]) -> Step:
    x = pick(draw, *pool)
    name = pick(draw, "z", "z", "z", "a")
    return method("stack", x, {name: some_dims(draw, x, least=min(1, len(x.dims)))})


def parted(draw: Draw, pool: list[Value]) -> Step:
    """xarray unstacks by labels; by sizes it is a reshape of the dim brought last."""
    x = pick(draw, *pool)
    dim = one_dim(draw, x)
    size = x.sizes.get(dim, 2)
    first = pick(draw, 1, 2, max(size, 1))
    parts = {"p": first, "q": pick(draw, None, -1, size // first)}

    def theirs(x: xarray.DataArray) -> xarray.DataArray:
        x = x.transpose(..., dim)
        if size % first:
            raise ValueError("the sizes do not multiply to it")
        shape = (*x.shape[:-1], first, size // first)
        return xarray.DataArray(x.values.reshape(shape), dims=(*x.dims[:-1], "p", "q"))

    return Step(f"unstack({dim}={parts})", (x,), lambda x: x.unstack({dim: parts}), theirs)


def joined(draw: Draw, pool: list[Value]) -> Step:
    xs = tuple(pick(draw, *pool) for _ in range(draw(st.integers(1, 3))))
    dim = pick(draw, "a", "b", "c", "d", one_dim(draw, xs[0]))
    theirs = lambda *xs: xarray.concat(xs, dim, coords="minimal", compat="override")
    return Step(f"concat({dim})", xs, lambda *xs: gc.concat(xs, dim), theirs)


STEPS = (orders, names, growth, merged, parted, joined)
