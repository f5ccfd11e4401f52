"""Names -> positions. One rule an op: `(node, *lowered inputs) -> plain node`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphcore.ir.dtypes import INT, float_for, promote
from graphcore.ir.graph import Graph, with_graphs
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import Shape, Size, count, maximum
from graphcore.ir.types import TensorType
from graphcore.ops import autodiff, control, elementwise, leaf, named, tensor

from .engine import Conversion, convert
from .plain import (
    cast,
    equals,
    expand,
    full,
    nonzero,
    number,
    reshape,
    sum_over,
    transpose,
    unsum,
    where,
)

LOWER: dict[Op, Conversion] = {}
ARRIVING = {named.scatter: tensor.scatter, named.scatter_prod: tensor.scatter_prod}
"""Ops by which updates come together."""

RECEIVING = {
    named.put: tensor.put,
    named.scatter_max: tensor.scatter_max,
    named.scatter_min: tensor.scatter_min,
}
"""Ops by which updates come to a tensor."""


def lower(*ops: Op) -> Callable[[Conversion], Conversion]:
    """Enter a rule into the table."""

    def register(rule: Conversion) -> Conversion:
        LOWER.update(dict.fromkeys(ops, rule))
        return rule

    return register


def lower_names(graph: Graph) -> Graph:
    """The same program on plain tensors; every axis keeps its dim as a label."""
    return convert(graph, LOWER)


def axes(node: Node, dims: tuple[str, ...] | None = None, operand: int = 0) -> tuple[int, ...]:
    """Where the dims a node speaks of stand in its operand."""
    have = node.inputs[operand].type.dims
    return tuple(have.index(dim) for dim in (node.attrs["dims"] if dims is None else dims))


def align(x: Node, dims: tuple[str, ...], target: TensorType) -> Node:
    """`x`, whose axes are `dims`, with those of `target`: permuted, and repeated along new ones."""
    wanted = target.dims or ()
    if dims == wanted:
        return x
    ordered = transpose(x, [dims.index(dim) for dim in wanted if dim in dims])
    new = [axis for axis, dim in enumerate(wanted) if dim not in dims]
    return expand(ordered, new, target.shape)


@lower(leaf.input_, leaf.constant, leaf.full, leaf.iota, leaf.extent)
def lower_leaf(node: Node) -> Node:
    return node.op(**node.attrs | {"dims": None})


@lower(autodiff.barrier, autodiff.stop_gradient, elementwise.real, elementwise.imag)
@lower(elementwise.cast)
def lower_unary(node: Node, x: Node) -> Node:
    return node.op(x, **node.attrs)


@lower(*elementwise.UFUNC)
def lower_elementwise(node: Node, *xs: Node) -> Node:
    dtypes = elementwise.compute_dtypes(node.op, *[x.type.dtype for x in xs])
    return node.op(
        *[
            align(cast(x, dtype), old.type.dims, node.type)
            for x, old, dtype in zip(xs, node.inputs, dtypes, strict=False)
        ]
    )


@lower(elementwise.where)
def lower_where(node: Node, condition: Node, *xs: Node) -> Node:
    operands = [condition, *[cast(x, node.type.dtype) for x in xs]]
    return node.op(
        *[align(x, old.type.dims, node.type) for x, old in zip(operands, node.inputs, strict=True)]
    )


@lower(named.sum_)
def lower_sum(node: Node, x: Node) -> Node:
    return sum_over(cast(x, node.type.dtype), axes(node))


@lower(named.prod)
def lower_prod(node: Node, x: Node) -> Node:
    x = cast(x, node.type.dtype)
    for axis in sorted(axes(node), reverse=True):
        x = tensor.prod(x, axis=axis)
    return x


@lower(named.mean)
def lower_mean(node: Node, x: Node) -> Node:
    return mean(cast(x, node.type.dtype), axes(node))


def mean(x: Node, over: tuple[int, ...], ddof: int = 0) -> Node:
    """sum(x) / (count - ddof)"""
    total = sum_over(x, over)
    places = maximum(count(x.type.shape[axis] for axis in over) - ddof, 0)
    return total / number(places, x.type.dtype, total.type.shape)


def variance(node: Node, x: Node) -> Node:
    """mean(|x - mean(x)|^2), over count - ddof"""
    x = cast(x, float_for(x.type.dtype))
    over = axes(node)
    away = x - unsum(mean(x, over), over, x)
    if x.type.dtype.kind == "c":
        squared = elementwise.real(away * elementwise.conjugate(away))
    else:
        squared = elementwise.square(away)
    return mean(squared, over, node.attrs["ddof"])


@lower(named.var)
def lower_var(node: Node, x: Node) -> Node:
    return variance(node, x)


@lower(named.std)
def lower_std(node: Node, x: Node) -> Node:
    # The square root of a variance of 0 is shielded, so that its derivative is 0 and not nan.
    v = variance(node, x)
    return where(equals(v, 0), 0, elementwise.sqrt(nonzero(v)))


@lower(named.max_)
def lower_max(node: Node, x: Node) -> Node:
    return extreme(node, x, tensor.max_, elementwise.maximum)


@lower(named.min_)
def lower_min(node: Node, x: Node) -> Node:
    return extreme(node, x, tensor.min_, elementwise.minimum)


def extreme(node: Node, x: Node, over: Op, of_two: Op) -> Node:
    """The extreme value over axes, if there are any, and of an initial one, if there is one"""
    if axes(node):
        rest = {key: value for key, value in node.attrs.items() if key != "dims"}
        return over(x, axes=axes(node), **rest)
    if (initial := node.attrs.get("initial")) is None:
        return x
    return of_two(x, leaf.full(value=initial, shape=x.type.shape, dims=None))


@lower(named.any_)
def lower_any(node: Node, x: Node) -> Node:
    return tensor.any_(truth(x), axes=axes(node)) if axes(node) else truth(x)


@lower(named.all_)
def lower_all(node: Node, x: Node) -> Node:
    return tensor.all_(truth(x), axes=axes(node)) if axes(node) else truth(x)


def truth(x: Node) -> Node:
    """Where `x` is not 0."""
    if x.type.dtype.kind == "b":
        return x
    return elementwise.not_equal(x, full(0, x.type.dtype, x.type.shape))


@lower(named.argmax)
def lower_argmax(node: Node, x: Node) -> Node:
    return tensor.argmax(merge_last(x, axes(node)), axis=node.type.ndim)


@lower(named.argmin)
def lower_argmin(node: Node, x: Node) -> Node:
    return tensor.argmin(merge_last(x, axes(node)), axis=node.type.ndim)


def merge_last(x: Node, merged: tuple[int, ...]) -> Node:
    """`x` with the axes `merged` made one, the last, row-major."""
    rest = [axis for axis in range(x.type.ndim) if axis not in merged]
    kept: Shape = tuple(x.type.shape[axis] for axis in rest)
    size = count(x.type.shape[axis] for axis in merged)
    return reshape(transpose(x, (*rest, *merged)), (*kept, size))


@lower(named.norm)
def lower_norm(node: Node, x: Node) -> Node:
    x = cast(x, float_for(x.type.dtype))
    if x.type.dtype.kind == "c" or not axes(node):
        x = elementwise.absolute(x)
    return tensor.norm(x, axes=axes(node)) if axes(node) else x


@lower(named.logsumexp)
def lower_logsumexp(node: Node, x: Node) -> Node:
    x = cast(x, node.type.dtype)
    return tensor.logsumexp(x, axes=axes(node)) if axes(node) else x


@lower(named.softmax)
def lower_softmax(node: Node, x: Node) -> Node:
    x = cast(x, node.type.dtype)
    return tensor.softmax(x, axes=axes(node))


@lower(named.log_softmax)
def lower_log_softmax(node: Node, x: Node) -> Node:
    x = cast(x, node.type.dtype)
    return tensor.log_softmax(x, axes=axes(node))


@lower(named.cumsum, named.cumprod, named.cummax, named.cummin, named.logcumsumexp)
def lower_accumulation(node: Node, x: Node) -> Node:
    x = cast(x, node.type.dtype)
    for axis in axes(node):
        x = ALONG_AXIS[node.op](x, axis=axis)
    return x


ALONG_AXIS = {
    named.cumsum: tensor.cumsum,
    named.cumprod: tensor.cumprod,
    named.cummax: tensor.cummax,
    named.cummin: tensor.cummin,
    named.logcumsumexp: tensor.logcumsumexp,
}
"""The plain op of a running reduction."""


@lower(named.sort)
def lower_sort(node: Node, x: Node) -> Node:
    (axis,) = axes(node, (node.attrs["dim"],))
    return tensor.sort(x, axis=axis)


@lower(named.argsort)
def lower_argsort(node: Node, x: Node) -> Node:
    (axis,) = axes(node, (node.attrs["dim"],))
    attrs = node.attrs
    return tensor.argsort(x, axis=axis, size=attrs["size"], descending=attrs["descending"])


@lower(named.searchsorted)
def lower_searchsorted(node: Node, x: Node, values: Node) -> Node:
    """The dims of the result are those of x, less the sorted one, and then those of values."""
    dtype = promote(x.type.dtype, values.type.dtype)
    rows = merge_last(x, axes(node, (node.attrs["dim"],)))
    places = align(values, node.inputs[1].type.dims, node.type)
    return tensor.searchsorted(cast(rows, dtype), cast(places, dtype), side=node.attrs["side"])


@lower(named.dot)
def lower_dot(node: Node, *xs: Node) -> Node:
    # bool: an `and` of operands and an `or` over places, counted in integers.
    inside = INT if node.type.dtype.kind == "b" else node.type.dtype
    letter: dict[str, int] = {}
    for old in node.inputs:
        for dim in old.type.dims:
            letter.setdefault(dim, len(letter))
    product = tensor.einsum(
        *[cast(x, inside) for x in xs],
        operands=tuple(tuple(letter[dim] for dim in old.type.dims) for old in node.inputs),
        result=tuple(letter[dim] for dim in node.type.dims),
    )
    return truth(product) if node.type.dtype.kind == "b" else product


@lower(named.transpose)
def lower_transpose(node: Node, x: Node) -> Node:
    return transpose(x, axes(node))


@lower(named.rename)
def lower_rename(node: Node, x: Node) -> Node:
    return x


@lower(named.broadcast)
def lower_broadcast(node: Node, x: Node) -> Node:
    return align(x, node.inputs[0].type.dims, node.type)


@lower(named.squeeze)
def lower_squeeze(node: Node, x: Node) -> Node:
    return reshape(x, node.type.shape)


@lower(named.concat)
def lower_concat(node: Node, *xs: Node) -> Node:
    dim, dims = node.attrs["dim"], node.type.dims
    axis = dims.index(dim)
    parts = []
    for x, old in zip(xs, node.inputs, strict=True):
        shape = list(node.type.shape)
        shape[axis] = old.type.sizes.get(dim, 1)
        target = TensorType(node.type.dtype, tuple(shape), dims)
        parts.append(align(cast(x, node.type.dtype), old.type.dims, target))
    return tensor.concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


@lower(named.stack)
def lower_stack(node: Node, x: Node) -> Node:
    return merge_last(x, axes(node))


@lower(named.unstack)
def lower_unstack(node: Node, x: Node) -> Node:
    (split,) = axes(node, (node.attrs["dim"],))
    rest = [axis for axis in range(x.type.ndim) if axis != split]
    return reshape(transpose(x, (*rest, split)), node.type.shape)


@lower(named.slice_)
def lower_slice(node: Node, x: Node) -> Node:
    dims = node.type.dims
    starts, steps = on_axes(node, "starts", 0, dims), on_axes(node, "steps", 1, dims)
    return tensor.slice_(x, starts=starts, sizes=node.type.shape, steps=steps)


def on_axes(node: Node, attr: str, default: int, dims: tuple[str, ...]) -> tuple[Any, ...]:
    """An attr of the dims that a node speaks of, for all `dims`."""
    given = dict(zip(node.attrs["dims"], node.attrs[attr], strict=True))
    return tuple(given.get(dim, default) for dim in dims)


@lower(named.windows)
def lower_windows(node: Node, x: Node) -> Node:
    wide, order = window_axes(node, node.inputs[0].type.dims)
    seen = tensor.windows(x, **wide)
    back = [order.index(dim) for dim in node.type.dims]
    return transpose(seen.label(order), back)


@lower(named.overlap_add)
def lower_overlap_add(node: Node, x: Node) -> Node:
    have = node.inputs[0].type.dims
    wide, order = window_axes(node, node.type.dims)
    return tensor.overlap_add(transpose(x, [have.index(dim) for dim in order]), **wide)


def window_axes(node: Node, dims: tuple[str, ...]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The attrs of plain windows along `dims`, by axis, and the dims of their axes in order."""
    attrs = node.attrs
    rows = zip(*[attrs[key] for key in ("dims", "names", "sizes", "strides", "dilations")])
    order = sorted((dims.index(dim), name, *rest) for dim, name, *rest in rows)
    axes, names, sizes, strides, dilations = zip(*order)
    found = {"axes": axes, "sizes": sizes, "strides": strides, "dilations": dilations}
    return found, (*dims[: axes[0]], *names, *dims[axes[0] :])


@lower(named.index)
def lower_index(node: Node, x: Node) -> Node:
    picked = axes(node)
    sizes = tuple(1 if axis in picked else size for axis, size in enumerate(x.type.shape))
    steps = (1,) * x.type.ndim
    starts = on_axes(node, "positions", 0, node.inputs[0].type.dims)
    one = tensor.slice_(x, starts=starts, sizes=sizes, steps=steps)
    return reshape(one, node.type.shape)


@lower(named.gather)
def lower_gather(node: Node, x: Node, *indices: Node) -> Node:
    """The axes of x left over follow those of the indices."""
    source, dims = node.inputs[0].type, node.attrs["dims"]
    rest = [dim for dim in source.dims if dim not in dims]
    joint, pointwise, shared = aligned_indices(node, indices, rest)
    found = tensor.gather(x, *pointwise, axes=axes(node, (*dims, *shared)))
    order = [*joint, *(dim for dim in rest if dim not in joint)]
    return transpose(found, [order.index(dim) for dim in node.type.dims])


@lower(*ARRIVING)
def lower_scatter(node: Node, updates: Node, *indices: Node) -> Node:
    updates, indices, at = arriving(node, updates, indices)
    return ARRIVING[node.op](updates, *indices, axes=at, shape=node.type.shape)


@lower(*RECEIVING)
def lower_receiving(node: Node, x: Node, updates: Node, *indices: Node) -> Node:
    updates, indices, at = arriving(node, cast(updates, node.type.dtype), indices)
    x = align(x, node.inputs[0].type.dims, node.type)
    return RECEIVING[node.op](x, updates, *indices, axes=at)


def arriving(
    node: Node, updates: Node, indices: tuple[Node, ...]
) -> tuple[Node, tuple[Node, ...], tuple[int, ...]]:
    """Updates and indices as plain scattering takes them, and the axes of the result it indexes."""
    result, dims = node.type, node.attrs["dims"]
    have = node.inputs[-1 - len(indices)].type
    rest = [dim for dim in result.dims if dim not in dims]
    joint, pointwise, shared = aligned_indices(node, indices, rest)
    sizes = joint | {dim: result.size(dim) for dim in rest if dim not in joint}
    target = TensorType(updates.type.dtype, tuple(sizes.values()), tuple(sizes))
    at = tuple(result.dims.index(dim) for dim in (*dims, *shared))
    return align(updates, have.dims, target), tuple(pointwise), at


def aligned_indices(
    node: Node, indices: tuple[Node, ...], kept: Sequence[str]
) -> tuple[dict[str, Size], list[Node], list[str]]:
    """The sizes of the dims of the indices; the indices with all these dims; those in `kept`.

    With the indices go iotas that walk along the dims in `kept`. Dims in `over` that only the
    updates have are dims of the indices as well.
    """
    old = node.inputs[-len(indices) :]
    sizes = named.union(*[x.type for x in old])
    for dim in node.attrs.get("over", ()):
        if dim not in sizes:
            sizes[dim] = node.inputs[-1 - len(indices)].type.size(dim)
    joint = TensorType(INT, tuple(sizes.values()), tuple(sizes))
    shared = [dim for dim in kept if dim in sizes]
    walks = [leaf.iota(size=sizes[dim], dtype=INT, dims=None) for dim in shared]
    pairs = [*zip(indices, (x.type.dims for x in old), strict=True)]
    pairs += zip(walks, ((dim,) for dim in shared), strict=True)
    return sizes, [align(x, dims, joint) for x, dims in pairs], shared


@lower(named.embed)
def lower_embed(node: Node, x: Node) -> Node:
    dims = node.type.dims
    starts, steps = on_axes(node, "starts", 0, dims), on_axes(node, "steps", 1, dims)
    return tensor.embed(x, shape=node.type.shape, starts=starts, steps=steps)


@lower(named.overwrite)
def lower_overwrite(node: Node, x: Node, part: Node) -> Node:
    old, given = (y.type for y in node.inputs)
    sizes = node.type.sizes | {dim: given.size(dim) for dim in node.attrs["dims"]}
    target = TensorType(node.type.dtype, tuple(sizes.values()), tuple(sizes))
    x, part = align(x, old.dims, node.type), align(cast(part, old.dtype), given.dims, target)
    dims = node.type.dims
    starts, steps = on_axes(node, "starts", 0, dims), on_axes(node, "steps", 1, dims)
    return tensor.overwrite(x, part, starts=starts, steps=steps)


@lower(control.scan)
def lower_scan(node: Node, *xs: Node) -> Node:
    """A sequence's first axis is the one that is walked."""
    first, dim = node.attrs["carries"], node.attrs["dim"]
    operands = list(xs)
    for i in range(first, first + node.attrs["sequences"]):
        order = node.inputs[i].type.dims
        operands[i] = transpose(xs[i], axes(node, (dim, *[d for d in order if d != dim]), i))
    return node.op(*operands, **with_graphs(node.attrs, lower_names) | {"dim": None})


@lower(control.while_loop, control.switch, control.call, control.custom)
def lower_control(node: Node, *xs: Node) -> Node:
    return node.op(*xs, **with_graphs(node.attrs, lower_names))
