"""What named graphs mean, said once more in NumPy and xarray: it shares no code with lowering."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special
import xarray

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import evaluate
from graphcore.ops import autodiff, elementwise, named
from tests import interpreter

Array = xarray.DataArray
SIZED = ("sizes", "starts", "positions")
"""Attrs that hold sizes, which may be symbolic."""


def run(
    graph: Graph, values: dict[str, np.ndarray], sizes: dict[str, int]
) -> list[np.ndarray | None]:
    """The outputs of a named graph, in their order of dims; None for what a derivative made."""
    done: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for node in graph.nodes():
            done[node] = compute(node, [done[x] for x in node.inputs], values, sizes)
    return [None if done[y] is None else done[y].values for y in graph.outputs]


def compute(node: Node, xs: list[Any], values: Any, sizes: dict[str, int]) -> Array | None:
    op, attrs, type = node.op, node.attrs, node.type
    if op in (autodiff.pullback, autodiff.pushforward) or any(x is None for x in xs):
        return None

    def known(shape: Any) -> tuple[int, ...]:
        return tuple(evaluate(size, sizes) for size in shape)

    if op.dialect == "leaf":
        result = Array(interpreter.compute(node, [], values, sizes), dims=type.dims)
    elif op in (autodiff.barrier, autodiff.stop_gradient):
        (result,) = xs
    elif op in elementwise.ELEMENTWISE:
        meaning = interpreter.REFERENCE[op]
        result = xarray.apply_ufunc(lambda *a: meaning(a, attrs, known), *xs)
    else:
        sized = {name: known(attrs[name]) for name in SIZED if name in attrs}
        result = NAMED[op](*xs, **attrs | sized)
    assert result.dims == type.dims, (node, result.dims)
    assert result.shape == known(type.shape), (node, result.shape)
    assert result.dtype == type.dtype, (node, result.dtype)
    return result


def axes(x: Array, dims: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(x.dims.index(dim) for dim in dims)


def reduced(function: Any, **options: Any) -> Any:
    """A reduction of NumPy over dims."""

    def apply(x: Array, *, dims: tuple[str, ...], **more: Any) -> Array:
        kept = [dim for dim in x.dims if dim not in dims]
        if not dims and function in (np.any, np.all):
            return x.astype(bool)
        return Array(function(x.values, axis=axes(x, dims), **options, **more), dims=kept)

    return apply


def position(function: Any) -> Any:
    """argmax and argmin, row-major over the dims in the order given."""

    def apply(x: Array, *, dims: tuple[str, ...]) -> Array:
        kept = [dim for dim in x.dims if dim not in dims]
        moved = x.transpose(*kept, *dims).values
        return Array(function(moved.reshape(*moved.shape[: len(kept)], -1), axis=-1), dims=kept)

    return apply


def running(function: Any) -> Any:
    def apply(x: Array, *, dims: tuple[str, ...]) -> Array:
        values = x.values
        for axis in axes(x, dims):
            values = function(values, axis=axis)
        return Array(values, dims=x.dims)

    return apply


def floats(x: Array) -> Array:
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


def logsumexp(x: Array, *, dims: tuple[str, ...]) -> Array:
    x = floats(x)
    kept = [dim for dim in x.dims if dim not in dims]
    if not dims:
        return x
    if not x.size:
        return x.reduce(np.sum, dims) - np.inf
    values = scipy.special.logsumexp(x.values, axis=axes(x, dims))
    return Array(np.asarray(values, x.dtype), dims=kept)


def softmax(x: Array, *, dims: tuple[str, ...]) -> Array:
    x = floats(x)
    if not x.size:
        return x
    lost = (x == -np.inf).all(dims)
    values = scipy.special.softmax(x.values, axis=axes(x, dims))
    return xarray.where(lost, x.dtype.type(0), x.copy(data=values)).transpose(*x.dims)


def log_softmax(x: Array, *, dims: tuple[str, ...]) -> Array:
    x = floats(x)
    return (x - logsumexp(x, dims=dims)).transpose(*x.dims)


def dot(*xs: Array, dims: tuple[str, ...]) -> Array:
    """The product of all, then the sum: nothing clever."""
    product = xs[0]
    for x in xs[1:]:
        product = product * x
    if product.dtype == bool:
        return product.any(dims)
    return product.reduce(np.sum, dims, dtype=product.dtype)


def broadcast(x: Array, *, dims: tuple[str, ...], sizes: tuple[int, ...]) -> Array:
    new = {dim: size for dim, size in zip(dims, sizes, strict=True) if dim not in x.dims}
    return x.expand_dims(new).transpose(*dims)


def concat(*xs: Array, dim: str) -> Array:
    dims = tuple(dict.fromkeys(name for x in xs for name in x.dims))
    dims = dims if dim in dims else (dim, *dims)
    whole = {name: size for x in xs for name, size in x.sizes.items() if name != dim}
    sizes = tuple(({dim: 1} | whole)[name] for name in dims)
    parts = [broadcast(x, dims=dims, sizes=sizes).values for x in xs]
    return Array(np.concatenate(parts, axis=dims.index(dim)), dims=dims)


def stack(x: Array, *, dims: tuple[str, ...], name: str) -> Array:
    kept = [dim for dim in x.dims if dim not in dims]
    size = int(np.prod([x.sizes[dim] for dim in dims]))
    shape = [*(x.sizes[dim] for dim in kept), size]
    return Array(x.transpose(*kept, *dims).values.reshape(shape), dims=[*kept, name])


def unstack(x: Array, *, dim: str, names: tuple[str, ...], sizes: tuple[int, ...]) -> Array:
    kept = [other for other in x.dims if other != dim]
    shape = [*(x.sizes[other] for other in kept), *sizes]
    return Array(x.transpose(*kept, dim).values.reshape(shape), dims=[*kept, *names])


def ranges(x: Array, *, dims: Any, starts: Any, sizes: Any, steps: Any) -> Array:
    parts = zip(dims, starts, sizes, steps, strict=True)
    return x.isel({dim: start + step * np.arange(size) for dim, start, size, step in parts})


def gather(x: Array, *indices: Array, dims: tuple[str, ...]) -> Array:
    """Place by place: for each position of the result, the value of x it stands for."""
    sizes: dict[str, int] = {}
    at = dict(zip(dims, indices, strict=True))
    for dim, size in x.sizes.items():
        sizes.update(at[dim].sizes if dim in at else {dim: size})
    result = np.zeros(tuple(sizes.values()), x.dtype)
    for place in np.ndindex(*result.shape):
        here = dict(zip(sizes, place, strict=True))
        source = [
            int(at[d].values[tuple(here[name] for name in at[d].dims)]) if d in at else here[d]
            for d in x.dims
        ]
        result[place] = x.values[tuple(source)]
    return Array(result, dims=tuple(sizes))


NAMED: dict[Any, Any] = {
    named.sum_: reduced(np.sum),
    named.prod: reduced(np.prod),
    named.mean: reduced(np.mean),
    named.var: reduced(np.var),
    named.std: reduced(np.std),
    named.max_: reduced(np.max),
    named.min_: reduced(np.min),
    named.any_: reduced(np.any),
    named.all_: reduced(np.all),
    named.argmax: position(np.argmax),
    named.argmin: position(np.argmin),
    named.logsumexp: logsumexp,
    named.softmax: softmax,
    named.log_softmax: log_softmax,
    named.cumsum: running(np.cumsum),
    named.cumprod: running(np.cumprod),
    named.dot: dot,
    named.transpose: lambda x, *, dims: x.transpose(*dims),
    named.rename: lambda x, *, names: x.rename(dict(names)),
    named.broadcast: broadcast,
    named.squeeze: lambda x, *, dims: x.squeeze(dims),
    named.concat: concat,
    named.stack: stack,
    named.unstack: unstack,
    named.slice_: ranges,
    named.index: lambda x, *, dims, positions: x.isel(dict(zip(dims, positions, strict=True))),
    named.gather: gather,
}
