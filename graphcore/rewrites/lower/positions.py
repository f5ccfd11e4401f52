"""Lowering of ops that pick positions along dims, and of updates at positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.ir import INT, Node, Size, TensorType
from graphcore.ops import leaf, named, tensor
from graphcore.rewrites.plain import cast, reshape, transpose

from .table import align, axes, lower, plain


@lower(named.slice_)
def lower_slice(node: Node, x: Node) -> Node:
    return tensor.slice_(x, sizes=node.type.shape, **ranges(node))


def ranges(node: Node) -> dict[str, tuple[Any, ...]]:
    """Where the ranges of a node start on each axis of its result, and their steps."""
    dims = node.type.dims
    return {"starts": on_axes(node, "starts", 0, dims), "steps": on_axes(node, "steps", 1, dims)}


def on_axes(node: Node, attr: str, default: int, dims: tuple[str, ...]) -> tuple[Any, ...]:
    """An attr of the dims that a node names, for all `dims`."""
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


@lower(named.scatter, named.scatter_prod)
def lower_scatter(node: Node, updates: Node, *indices: Node) -> Node:
    updates, indices, at = arrange_updates(node, updates, indices)
    return plain(node)(updates, *indices, axes=at, shape=node.type.shape)


@lower(named.put, named.scatter_max, named.scatter_min)
def lower_receiving(node: Node, x: Node, updates: Node, *indices: Node) -> Node:
    updates, indices, at = arrange_updates(node, cast(updates, node.type.dtype), indices)
    x = align(x, node.inputs[0].type.dims, node.type)
    return plain(node)(x, updates, *indices, axes=at)


def arrange_updates(
    node: Node, updates: Node, indices: tuple[Node, ...]
) -> tuple[Node, tuple[Node, ...], tuple[int, ...]]:
    """Updates and indices as plain scattering takes them, and the axes of the result it indexes."""
    result, dims = node.type, node.attrs["dims"]
    have = node.inputs[-1 - len(indices)].type
    rest = [dim for dim in result.dims if dim not in dims]
    joint, pointwise, shared = aligned_indices(node, indices, rest)
    sizes = joint | {dim: result.size(dim) for dim in rest if dim not in joint}
    target = TensorType.of(updates.type.dtype, sizes)
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
    joint = TensorType.of(INT, sizes)
    shared = [dim for dim in kept if dim in sizes]
    walks = [leaf.iota(size=sizes[dim], dtype=INT, dims=None) for dim in shared]
    pairs = [*zip(indices, (x.type.dims for x in old), strict=True)]
    pairs += zip(walks, ((dim,) for dim in shared), strict=True)
    return sizes, [align(x, dims, joint) for x, dims in pairs], shared


@lower(named.embed)
def lower_embed(node: Node, x: Node) -> Node:
    return tensor.embed(x, shape=node.type.shape, **ranges(node))


@lower(named.overwrite)
def lower_overwrite(node: Node, x: Node, part: Node) -> Node:
    old, given = (y.type for y in node.inputs)
    sizes = node.type.sizes | {dim: given.size(dim) for dim in node.attrs["dims"]}
    target = TensorType.of(node.type.dtype, sizes)
    x, part = align(x, old.dims, node.type), align(cast(part, old.dtype), given.dims, target)
    return tensor.overwrite(x, part, **ranges(node))
