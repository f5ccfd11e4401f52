"""What named graphs mean, said once more in NumPy and xarray: it shares no code with lowering."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special
import xarray

import graphcore as gc
from graphcore.backends.numpy_backend import PASSES
from graphcore.inputs import with_sizes
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import evaluate
from graphcore.ir.types import TupleType
from graphcore.ops import autodiff, leaf, linalg, named, outside, tensor
from graphcore.rewrites import pipeline
from tests import interpreter, matrices

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

    if op is leaf.project:
        return xs[0][attrs["index"]]
    if op in named.matrices.PLAIN:
        return of_matrices(node, xs, known)
    if op is outside.callback:
        return called(node, xs)
    if op.dialect == "leaf":
        result = Array(interpreter.compute(node, [], values, sizes), dims=type.dims)
    elif op in (autodiff.barrier, autodiff.stop_gradient):
        (result,) = xs
    elif op.dialect == "elementwise":
        meaning = interpreter.REFERENCE[op]
        result = xarray.apply_ufunc(lambda *a: meaning(a, attrs, known), *xs)
    else:
        sized: dict[str, Any] = {name: known(attrs[name]) for name in SIZED if name in attrs}
        sized |= {"size": evaluate(attrs["size"], sizes)} if "size" in attrs else {}
        result = NAMED[op](*xs, **attrs | sized)
    assert result.dims == type.dims, (node, result.dims)
    assert result.shape == known(type.shape), (node, result.shape)
    assert result.dtype == type.dtype, (node, result.dtype)
    return result


def of_matrices(node: Node, xs: list[Array], known: Any) -> Any:
    """An op on matrices: matrix by matrix, in the batch of all operands."""
    attrs, plain = node.attrs, named.matrices.PLAIN[node.op]
    signature = linalg.SIGNATURES[plain]
    left, vectors = iter(attrs["dims"]), "c" in signature.operands[-1]
    cores = [[next(left) for letter in letters if letter != "c"] for letters in signature.operands]
    batch: dict[str, int] = {}
    for x, core in zip(xs, cores, strict=True):
        batch |= {dim: size for dim, size in x.sizes.items() if dim not in core}
    wide = [
        broadcast(x, dims=(*batch, *core), sizes=(*batch.values(), *[x.sizes[d] for d in core]))
        for x, core in zip(xs, cores, strict=True)
    ]
    values = [x.values for x in wide]
    how = {name: value for name, value in attrs.items() if name not in ("dims", "new")}
    if vectors:
        values[-1] = values[-1][..., None]
    results = matrices.each(plain, values, how)
    results = [result[..., 0] for result in results] if vectors else results
    types = node.type.items if isinstance(node.type, TupleType) else [node.type]
    for result, type in zip(results, types, strict=True):
        assert result.shape == known(type.shape), (node, result.shape)
    made = [Array(result, dims=type.dims) for result, type in zip(results, types, strict=True)]
    return made if isinstance(node.type, TupleType) else made[0]


def called(node: Node, xs: list[Array]) -> Any:
    """A user's function of one result, whose dims are all known or are those of every operand."""
    function, (known,), (made,) = (node.attrs[name] for name in ("function", "dims", "made"))
    found = xarray.apply_ufunc(
        lambda x: function([x]),
        *xs,
        input_core_dims=[known],
        output_core_dims=[[dim for dim in made if dim in known]],
        vectorize=True,
    )
    return (found.transpose(*node.type.items[0].dims),)


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


def extreme(function: Any) -> Any:
    """The largest or smallest value, and of an initial one."""

    def apply(x: Array, *, dims: tuple[str, ...], initial: Any = None) -> Array:
        start = {} if initial is None else {"initial": initial.array}
        return reduced(function, **start)(x, dims=dims)

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


def norm(x: Array, *, dims: tuple[str, ...]) -> Array:
    kept = [dim for dim in x.dims if dim not in dims]
    size = int(np.prod([x.sizes[dim] for dim in dims]))
    moved = floats(x).transpose(*kept, *dims)
    shape = [x.sizes[dim] for dim in kept]
    return Array(np.linalg.norm(moved.values.reshape(*shape, size), axis=-1), dims=kept)


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
    """The product of all in the common dtype, then the sum: nothing clever."""
    dtype = np.result_type(*xs)
    product = xs[0].astype(dtype)
    for x in xs[1:]:
        product = product * x.astype(dtype)
    if dtype.kind == "b":
        return product.any(dims)
    return product.reduce(np.sum, dims, dtype=dtype)


def interpreted(op: Any, x: Array, dim: str, **attrs: Any) -> Array:
    """What the interpreter makes of a plain op along one axis."""
    attrs["axis"] = x.dims.index(dim)
    values = floats(x).values
    if op is not tensor.rfft:
        values = values.astype(np.result_type(values, np.complex64))
    return Array(interpreter.REFERENCE[op]([values], attrs, lambda shape: shape), dims=x.dims)


def argsort(x: Array, *, dim: str, size: int, descending: bool) -> Array:
    rows = x.transpose(..., dim).values
    places = np.zeros((*rows.shape[:-1], size), np.int64)
    for row in np.ndindex(rows.shape[:-1]):
        places[row] = interpreter.position_in_order(rows[row], descending)[:size]
    return Array(np.moveaxis(places, -1, x.dims.index(dim)), dims=x.dims)


def searchsorted(x: Array, values: Array, *, dim: str, side: str) -> Array:
    """Every value compared with all of its row."""
    row, order = x.rename({dim: "sorted"}), (*(d for d in x.dims if d != dim), *values.dims)
    past = row <= values if side == "right" else row < values
    counted = past | (values.isnull() & (row.notnull() | (side == "right")))
    return counted.sum("sorted").transpose(*dict.fromkeys(order))


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


def windows(x: Array, *, dims: Any, names: Any, sizes: Any, strides: Any, dilations: Any) -> Array:
    """One dim after the other: the starts of the windows, and the places from there."""
    order = (*x.dims, *names)
    for dim, name, size, stride, dilation in zip(
        dims, names, sizes, strides, dilations, strict=True
    ):
        starts = np.arange(0, x.sizes[dim] - (size - 1) * dilation, stride)
        at = starts[:, None] + dilation * np.arange(size)
        x = x.isel({dim: Array(at, dims=(dim, name))})
    return x.transpose(*order)


def overlap_add(
    x: Array, *, dims: Any, names: Any, sizes: Any, strides: Any, dilations: Any
) -> Array:
    """The transpose of `windows`, through its matrix for each dim."""
    order = tuple(dim for dim in x.dims if dim not in names)
    for dim, name, size, stride, dilation in zip(
        dims, names, sizes, strides, dilations, strict=True
    ):
        one = Array(np.eye(size, dtype=x.dtype), dims=("place", dim))
        told = {"dims": (dim,), "names": (name,), "strides": (stride,), "dilations": (dilation,)}
        seen = windows(one, sizes=(x.sizes[name],), **told)
        x = dot(x, seen, dims=(dim, name)).rename(place=dim)
    return x.transpose(*order)


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


def arriving(updates: Array, indices: Any, over: Any) -> Any:
    """Where every update goes, by the dims that stay and along those indexed; and the update."""
    updates, *indices = xarray.broadcast(updates, *indices)
    order = [dim for i in indices for dim in i.dims if dim in over]
    order = [*dict.fromkeys(order), *(dim for dim in updates.dims if dim not in order)]
    for place in np.ndindex(*[updates.sizes[dim] for dim in order]):
        here = dict(zip(order, place, strict=True))
        kept = {dim: at for dim, at in here.items() if dim not in over}
        yield kept, [int(i.isel(here)) for i in indices], updates.isel(here).values


def scattered(start: int, change: Any) -> Any:
    def apply(updates: Array, *indices: Array, over: Any, dims: Any, sizes: Any) -> Array:
        whole = {k: v for x in (updates, *indices) for k, v in x.sizes.items() if k not in over}
        shape = [*whole.values(), *sizes]
        begun = Array(np.full(shape, start, updates.dtype), dims=[*whole, *dims])
        return received(change)(begun, updates, *indices, over=over, dims=dims)

    return apply


def received(change: Any) -> Any:
    def apply(x: Array, updates: Array, *indices: Array, over: Any, dims: Any) -> Array:
        more = {k: v for y in (updates, *indices) for k, v in y.sizes.items() if k not in over}
        new = {dim: size for dim, size in more.items() if dim not in x.dims}
        result = x.expand_dims(new).transpose(*x.dims, *new).copy(deep=True)
        for kept, at, value in arriving(updates, indices, over):
            place = {**kept, **dict(zip(dims, at, strict=True))}
            result[place] = change(result[place].values, value.astype(x.dtype))
        return result

    return apply


def overwrite(x: Array, part: Array, *, dims: Any, starts: Any, steps: Any) -> Array:
    new = {dim: size for dim, size in part.sizes.items() if dim not in x.dims}
    result = x.expand_dims(new).transpose(*x.dims, *new).copy(deep=True)
    ranges = zip(dims, starts, steps, strict=True)
    result[{dim: start + step * np.arange(part.sizes[dim]) for dim, start, step in ranges}] = part
    return result


def embed(x: Array, *, dims: Any, starts: Any, sizes: Any, steps: Any) -> Array:
    parts = zip(dims, starts, steps, strict=True)
    at = {dim: start + step * np.arange(x.sizes[dim]) for dim, start, step in parts}
    shape = (dict(x.sizes) | dict(zip(dims, sizes, strict=True))).values()
    result = Array(np.zeros(tuple(shape), x.dtype), dims=x.dims)
    result[at] = x
    return result


NAMED: dict[Any, Any] = {
    named.sum_: reduced(np.sum),
    named.prod: reduced(np.prod),
    named.mean: reduced(np.mean),
    named.var: reduced(np.var),
    named.std: reduced(np.std),
    named.max_: extreme(np.max),
    named.min_: extreme(np.min),
    named.any_: reduced(np.any),
    named.all_: reduced(np.all),
    named.argmax: position(np.argmax),
    named.argmin: position(np.argmin),
    named.norm: norm,
    named.logsumexp: logsumexp,
    named.softmax: softmax,
    named.log_softmax: log_softmax,
    **dict.fromkeys((named.print_, named.labelled), lambda x, *_, **attrs: x),
    named.cumsum: running(np.cumsum),
    named.cumprod: running(np.cumprod),
    named.cummax: running(np.maximum.accumulate),
    named.cummin: running(np.minimum.accumulate),
    named.logcumsumexp: lambda x, *, dims: running(interpreter.logcumsumexp)(floats(x), dims=dims),
    named.fft: lambda x, *, dim, inverse: interpreted(tensor.fft, x, dim, inverse=inverse),
    named.rfft: lambda x, *, dim: interpreted(tensor.rfft, x, dim),
    named.irfft: lambda x, *, dim, size: interpreted(tensor.irfft, x, dim, size=size),
    named.sort: lambda x, *, dim: x.copy(data=np.sort(x.values, x.dims.index(dim))),
    named.argsort: argsort,
    named.searchsorted: searchsorted,
    named.dot: dot,
    named.transpose: lambda x, *, dims: x.transpose(*dims),
    **dict.fromkeys((named.rename, named.swap_dims), lambda x, names: x.rename(dict(names))),
    named.broadcast: broadcast,
    named.squeeze: lambda x, *, dims: x.squeeze(dims),
    named.concat: concat,
    named.stack: stack,
    named.unstack: unstack,
    named.slice_: ranges,
    named.windows: windows,
    named.overlap_add: overlap_add,
    named.index: lambda x, *, dims, positions: x.isel(dict(zip(dims, positions, strict=True))),
    named.gather: gather,
    named.scatter: scattered(0, np.add),
    named.scatter_prod: scattered(1, np.multiply),
    named.put: received(lambda old, new: new),
    named.scatter_max: received(np.maximum),
    named.scatter_min: received(np.minimum),
    named.overwrite: overwrite,
    named.embed: embed,
    **dict.fromkeys(named.matrices.PLAIN, of_matrices),
    outside.callback: called,
}


def differences(f: Any, doubt: Any, step: float = 1e-4) -> list[np.ndarray]:
    """df/dt at 0 by central differences, extrapolated; `doubt(False)` where they do not settle."""
    coarse, fine = (
        [(b - a) / (2 * h) for a, b in zip(f(-h), f(h), strict=True)] for h in (step, step / 2)
    )
    for a, b in zip(coarse, fine, strict=True):  # a kink is near
        doubt(np.abs(a - b).max(initial=0) < 1e-4 * (1 + np.abs(b).max(initial=0)))
    return [(4 * b - a) / 3 for a, b in zip(coarse, fine, strict=True)]


def inner(xs: Any, ys: Any) -> float:
    """The real pairing of cotangents and tangents."""
    return float(sum(np.sum(x * y).real for x, y in zip(xs, ys, strict=True)))


def close(found: Any, wanted: Any, scale: float = 1, rtol: float = 1e-9) -> None:
    """Equal up to rounding, measured by the largest value, as sums cancel."""
    assert found.shape == wanted.shape
    scale = max(scale, np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)


def check_derivatives(
    y: gc.Tensor,
    xs: list[gc.Tensor],
    others: list[gc.Tensor],
    values: dict[str, np.ndarray],
    sizes: dict[str, int],
    doubt: Any,
) -> None:
    """First and second derivatives of `y` in both modes, and every nesting of the two.

    The pushforward is compared with differences along a random direction, the pullback with the
    pushforward by the dot test, and the same again for the pullback as a function of its inputs.
    """
    random, values = np.random.default_rng(0), dict(values)

    def partner(prefix: str, like: gc.Tensor) -> gc.Tensor:
        made = gc.tensor(f"{prefix} {like.name}", like.sizes, dtype=like.dtype)
        shape = [evaluate(size, sizes) for size in like.shape]
        value = random.normal(size=shape)
        if like.dtype.kind == "c":
            value = value + 1j * random.normal(size=shape)
        values[made.name] = np.asarray(value, like.dtype)
        return made

    ct, vs, ws = partner("ct", y), [partner("v", x) for x in xs], [partner("w", x) for x in xs]
    zero = {"disconnected": "zero"}
    back = gc.pullback(y, xs, ct, **zero)
    forth = gc.pushforward(y, xs, vs, **zero)
    for slope, x in zip(back, xs, strict=True):
        assert (slope.dims, slope.shape, slope.dtype) == (x.dims, x.shape, x.dtype)
    assert (forth.dims, forth.shape, forth.dtype) == (y.dims, y.shape, y.dtype)
    second = [
        *gc.pushforward(back, xs, vs, **zero),
        *gc.pullback(back, xs, ws, **zero),
        gc.pushforward(forth, xs, vs, **zero),
        *gc.pullback(forth, xs, ct, **zero),
    ]
    params = tuple(t.node for t in (*xs, *others, ct, *vs, *ws))
    first, rest = (
        pipeline.run(Graph(params, with_sizes([t.node for t in outputs])), PASSES)[-1].graph
        for outputs in ([y, forth, *back], second)
    )

    def along(t: float) -> list[np.ndarray]:
        moved = {x.name: values[x.name] + t * values[v.name] for x, v in zip(xs, vs, strict=True)}
        return interpreter.run(first, values | moved, sizes)

    now, slopes = along(0), differences(along, doubt)
    second_now = interpreter.run(rest, values, sizes)
    for value in (*now, *second_now):
        doubt(bool(np.isfinite(value).all() and np.abs(value).max(initial=0) < 1e4))
    n = len(xs)
    f, jv, *b = now
    hv, gg, jvv, jg = (
        second_now[:n],
        second_now[n : 2 * n],
        second_now[2 * n],
        second_now[2 * n + 1 :],
    )
    c, v, w = values[ct.name], [values[t.name] for t in vs], [values[t.name] for t in ws]

    scale = 1 + sum(np.abs(value).max(initial=0) for value in (f, c, *b))
    for derivative, slope in zip((jv, jvv, *hv), slopes, strict=True):
        close(derivative, slope, scale, 1e-6)
    for left, right in (
        (([c], [jv]), (b, v)),
        ((w, hv), (gg, v)),
        (([c], [jvv]), (jg, v)),
    ):
        terms = sum(np.sum(np.abs(p * q)) for p, q in zip(*right, strict=True))
        assert abs(inner(*left) - inner(*right)) < 1e-9 * (scale + terms)
