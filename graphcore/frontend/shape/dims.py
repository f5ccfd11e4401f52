"""Dims reordered, renamed, added, removed, merged and split; tensors broadcast and joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import Dim, MissingDims, SizeLike
from graphcore.frontend.core.base import Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, common, has_checks, single
from graphcore.ir import Literal, Node, Op, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.node import CURE_SIZES
from graphcore.ir.sizes import count, same
from graphcore.ops import autodiff, leaf, named
from graphcore.ops.labels import packed

__all__ = [
    "broadcast",
    "broadcast_like",
    "concat",
    "expand_dims",
    "rename",
    "squeeze",
    "stack",
    "swap_dims",
    "transpose",
    "unstack",
]


@parameters(
    dims="All its dims in the new order; one `...` stands for those not named. Without dims the "
    "order is reversed.",
    missing_dims='What to do about dims that `x` lacks: "raise" refuses them, "warn" and "ignore" '
    "skip them.",
)
def transpose(x: Operand, *dims: Any, missing_dims: MissingDims = "raise") -> Tensor:
    """`x` with its dims in another order.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], gc.transpose(x, "col", "row"))()
    array([[1, 4],
           [2, 5],
           [3, 6]])
    >>> gc.transpose(gc.tensor("x", {"batch": None, "row": 2, "col": 3}), "col", ...)
    <Tensor: f64[col=3, batch, row=2]>
    """
    node = single(x)
    known: tuple[str, ...] = node.type.dims
    order = tuple(dims)
    dots = dots_in(order, node)
    named_dims = arguments.names([dim for dim in order if dim is not ...], node)
    kept = arguments.present(node, named_dims, missing_dims)
    for at in dots:
        before = [dim for dim in order[:at] if dim in kept]
        rest = [dim for dim in known if dim not in kept]
        kept = (*before, *rest, *kept[len(before) :])
    if not dims:
        kept = known[::-1]
    return wrap(in_order(node, kept))


def in_order(x: Node, dims: Iterable[str]) -> Node:
    """`x` with all its dims, in this order."""
    order = tuple(dims)
    return x if x.type.dims == order else named.transpose(x, dims=order)


@parameters(names="The new name of each dim to rename, as a dict or as keywords.")
def rename(x: Operand, names: Mapping[str, str] | None = None, /, **names_kwargs: str) -> Tensor:
    """`x` with other names for some dims, all renamed at once, so that names can be swapped.

    GraphError if the names after renaming are not distinct.

    >>> gc.rename(gc.tensor("x", {"row": 2, "col": 3}), {"row": "col", "col": "row"})
    <Tensor: f64[col=2, row=3]>
    """
    return with_names(named.rename, x, names, names_kwargs)


def swap_dims(x: Operand, names: Mapping[str, str] | None = None, /, **dims_kwargs: str) -> Tensor:
    """`x` with other names for some dims; coordinates of DataArrays keep their names, as in xarray.

    A coordinate that has the new name labels the dim, if the argument of the call has one.

    >>> gc.swap_dims(gc.tensor("x", {"row": 2, "col": 3}), row="place")
    <Tensor: f64[place=2, col=3]>
    """
    return with_names(named.swap_dims, x, names, dims_kwargs)


def keep_labels(y: Node, x: Node, dims: Iterable[str], blocks: Iterable[Size] = ()) -> Node:
    """`y`, whose elements along `dims` have the labels of those of `x`, or the means of blocks."""
    known = tuple(dims)
    if y is x or not known:
        return y
    return named.labelled(y, autodiff.stop_gradient(x), dims=known, blocks=tuple(blocks))


def label(y: Tensor, dim: str, labels: np.ndarray[Any, Any]) -> Tensor:
    """`y` with these labels along `dim`; if it lacks the dim, with one of them, which is 0-d."""
    shape = labels.shape or (1,)
    values = Literal(np.arange(shape[0]))
    known = ((dim, (dim,), packed(labels.reshape(shape))),)
    names = leaf.constant(value=values, dims=(dim,), labels=known)
    if labels.ndim:
        return wrap(named.labelled(y.node, names, dims=(dim,), blocks=()))
    return wrap(
        named.labelled(y.node, named.index(names, dims=(dim,), positions=(0,)), dims=(), blocks=())
    )


def with_names(op: Op, x: Operand, given: object, more: Mapping[str, str]) -> Tensor:
    """`x` with new names for some dims."""
    node = single(x)
    pairs = arguments.mapping(given, more, "{'dim': 'new'}", node)
    for new in pairs.values():
        if not isinstance(new, str):
            raise type_refusal(f"{new!r} is not a name", node, cure="dims are named by strings")
    order = arguments.dims_of(node, tuple(pairs))
    changes = tuple((old, pairs[old]) for old in order)
    if all(old == new and old in node.type.dims for old, new in changes):
        return wrap(node)
    return wrap(op(node, names=changes))


@parameters(
    dim="The new dims: names, of size 1 each, or sizes by name, as a dict or as keywords.",
    sizes="The new dims and their sizes as keywords.",
)
def expand_dims(
    x: Operand,
    dim: str | Iterable[str] | Mapping[str, SizeLike] | None = None,
    /,
    **sizes: SizeLike,
) -> Tensor:
    """`x` repeated along new dims, which come first.

    >>> x = gc.constant([1, 2], "col")
    >>> gc.compile([], gc.expand_dims(x, copy=3))()
    array([[1, 2],
           [1, 2],
           [1, 2]])
    >>> gc.expand_dims(x, "row")
    <Tensor: i64[row=1, col=2]>
    """
    node = single(x)
    if dim is not None and sizes:
        reason = f"takes a dict or keywords, not both: {', '.join(sizes)}"
        raise type_refusal(reason, node, cure="new dims come first; order them with transpose")
    if dim is not None and not isinstance(dim, Mapping):
        dim = dict.fromkeys(new_names(node, dim), 1)
    wanted = arguments.mapping(dim, sizes, "{'new': 3}", node)
    for name in arguments.names(tuple(wanted)):
        if name in node.type.dims:
            raise refusal(f"there is a dim {name!r} already", node, cure="choose a new name")
    new = {name: arguments.size_of(name, size) for name, size in wanted.items()}
    return broadcast_to(node, new | node.type.sizes)


def new_names(node: Node, dim: object) -> tuple[str, ...]:
    """The names of new dims, refused if one occurs twice."""
    new = arguments.names(dim, node, new=True)
    if len(set(new)) < len(new):
        raise refusal(f"dims {new} repeat a dim", node, cure="name each dim once")
    return new


def broadcast_to(x: Node, sizes: Mapping[str, Size]) -> Tensor:
    """`x` with these dims, repeated along those that it lacks."""
    dims, shape = tuple(sizes), tuple(sizes.values())
    if dims == x.type.dims and all(map(same, shape, x.type.shape)):
        return wrap(x)
    return wrap(named.broadcast(x, dims=dims, sizes=shape))


def full_of(node: Node, sizes: Mapping[str, Size]) -> Tensor:
    """A number for every element, or a tensor repeated along these dims."""
    if node.op is leaf.full and node.type.dims == ():
        shape, dims = tuple(sizes.values()), tuple(sizes)
        return wrap(leaf.full(value=node.attrs["value"], shape=shape, dims=dims))
    return broadcast_to(node, {**sizes, **node.type.sizes, **sizes})


def constant_end(x: Node, dim: str, size: Size, fill: Node) -> Node:
    """A block of `size` elements along `dim`, all `fill`, to be joined to `x`."""
    return full_of(fill, x.type.sizes | {dim: size}).node


def with_size(x: Node, dim: str, size: Size) -> Node:
    """`x` where `dim` is required to have this size, checked at the call if it is unknown."""
    return broadcast_to(x, x.type.sizes | {dim: size}).node


@parameters(
    other="The tensor that has the dims and sizes.",
    exclude="Dims that are left as they are, and come last.",
)
def broadcast_like(
    x: Operand, other: Operand, *, exclude: str | Iterable[str] | None = None
) -> Tensor:
    """`x` repeated along the dims of `other` that it lacks: dims of `other` first, then the rest.

    A dim of both must have one size; a size-1 dim is never stretched.

    >>> x = gc.constant([1, 2, 3], "col")
    >>> gc.compile([], gc.broadcast_like(x, gc.zeros({"row": 2, "col": 3})))()
    array([[1, 2, 3],
           [1, 2, 3]])
    """
    nodes = single(other), single(x)
    return broadcast_all(nodes, exclude)[1]


@parameters(
    xs="Tensors or numbers.",
    exclude="Dims that are left as they are, and come last.",
)
def broadcast(*xs: Operand, exclude: str | Iterable[str] | None = None) -> tuple[Tensor, ...]:
    """All operands with the dims of all, in order of first appearance.

    >>> x, y = gc.constant([1, 2], "row"), gc.constant([3, 4, 5], "col")
    >>> gc.compile([], list(gc.broadcast(x, y)))()
    [array([[1, 1, 1],
           [2, 2, 2]]), array([[3, 4, 5],
           [3, 4, 5]])]
    """
    return broadcast_all([single(x) for x in xs], exclude)


def broadcast_all(nodes: Sequence[Node], exclude: object = None) -> tuple[Tensor, ...]:
    """Each node with the dims of all; a known size wins over an unknown one.

    Each result checks the sizes of all nodes, so it does not depend on the others being computed.
    """
    left_out = () if exclude is None else arguments.names(arguments.order_set(exclude))
    sizes: dict[str, Size] = {}
    for node in nodes:
        for dim, size in node.type.sizes.items():
            if dim not in left_out and same(sizes.setdefault(dim, size), size) is False:
                reason = f"dim {dim!r} has sizes {sizes[dim]} and {size}"
                raise refusal(reason, *nodes, cure=CURE_SIZES)
            if dim not in left_out and isinstance(size, int):
                sizes[dim] = size
    made = []
    for node in nodes:
        own = {dim: node.type.size(dim) for dim in left_out if dim in node.type.dims}
        found = broadcast_to(node, sizes | own)
        for required in (*[other.type.sizes for other in nodes], sizes):
            wanted = found.sizes | {dim: required[dim] for dim in sizes if dim in required}
            found = broadcast_to(found.node, wanted)
        for other in reversed(nodes):  # the first has the labels of dims that are new to this one
            new = [
                dim for dim in other.type.dims if dim in found.dims and dim not in node.type.dims
            ]
            found = wrap(keep_labels(found.node, other, new))
        made.append(found)
    return tuple(made)


@parameters(
    dim="The dims to drop; None drops all that are known to have size 1. A dim of unknown size "
    "that is named must have size 1 at the call.",
)
def squeeze(x: Operand, dim: Dim = None) -> Tensor:
    """`x` without dims of size 1.

    GraphError if a dim does not have size 1: now if its size is known, else at the call.

    >>> gc.squeeze(gc.tensor("x", {"batch": None, "row": 1, "col": 3}))
    <Tensor: f64[batch, col=3]>
    """
    node = single(x)
    if dim is None or dim is ...:
        dim = [name for name, size in node.type.sizes.items() if size == 1]
    dims = tuple(dict.fromkeys(arguments.dims_of(node, dim)))
    return wrap(named.squeeze(node, dims=dims) if dims else node)


def dots_in(order: Sequence[object], x: Node) -> list[int]:
    """The positions of `...` in an order of dims: at most one."""
    found = [at for at, dim in enumerate(order) if dim is ...]
    if len(found) > 1:
        raise refusal("... occurs twice", x, cure="use one ...")
    return found


@parameters(
    xs="A list of tensors or numbers.",
    dim="The dim to join along; it may be new.",
)
def concat(xs: Iterable[Operand], dim: str) -> Tensor:
    """Tensors joined one after the other along `dim`.

    A tensor without `dim` counts as one element along it; if none has it, it is new and comes
    first. Other dims broadcast by name, in order of first appearance; dtypes promote.

    >>> x, y = gc.constant([[1, 2], [3, 4]], ("row", "col")), gc.constant([5, 6], "col")
    >>> gc.compile([], gc.concat([x, y], dim="row"))()
    array([[1, 2],
           [3, 4],
           [5, 6]])
    >>> gc.concat([y, y], dim="new")
    <Tensor: i64[new=2, col=2]>
    """
    nodes = common(*arguments.as_list("xs", xs))
    if not nodes:
        raise refusal("there are no tensors to join", cure="give at least one tensor")
    (name,) = arguments.names((dim,), nodes[0])
    return wrap(named.concat(*nodes, dim=name))


def join(parts: Iterable[Node], dim: str) -> Node:
    """Parts joined along `dim`, which all have; parts known to be empty are left out.

    An empty part stays if the call must check a condition on the tensors that it is made of.
    """
    several = list(parts)
    kept = [part for part in several if part.type.size(dim) != 0 or has_checks(part)]
    kept = kept or several[:1]
    return named.concat(*kept, dim=dim) if len(kept) > 1 else kept[0]


@parameters(
    x="A tensor; or a list of them, which align by name.",
    dims="For each new dim the dims it merges, the slowest first; `...` stands for all not named. "
    "As a dict or as keywords. Of a list of tensors it is the name of the new dim.",
)
def stack(
    x: Operand | Sequence[Operand],
    dims: Mapping[str, Iterable[Any]] | str | None = None,
    /,
    **dims_kwargs: Iterable[Any],
) -> Tensor:
    """`x` with several dims merged into one new last dim, in row-major order.

    Of a list of tensors, `gc.stack([x, y], "new")`, they are joined along one new first dim.

    GraphError if a new dim has the name of one that remains, or if a dim is repeated.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], gc.stack(x, pixel=("col", "row")))()
    array([1, 4, 2, 5, 3, 6])
    >>> gc.stack(gc.tensor("x", {"batch": None, "row": 2, "col": 3}), pixel=("row", "col"))
    <Tensor: f64[batch, pixel=6]>
    >>> gc.stack([gc.tensor("y", {"row": 2}), 1.0], "new")
    <Tensor: f64[new=2, row=2]>
    """
    if isinstance(x, (list, tuple)) and isinstance(dims, str):
        nodes = common(*arguments.as_list("x", x))
        arguments.new_dim(dims, *nodes)
        return concat(map(wrap, nodes), dims)
    node = single(x)  # type: ignore[arg-type]  # which refuses a list
    for name, merged in arguments.mapping(dims, dims_kwargs, "{'new': ('dim',)}", node).items():
        parts = arguments.as_tuple(merged)
        dots = dots_in(parts, node)
        chosen = arguments.names([dim for dim in parts if dim is not ...], node)
        rest = tuple(dim for dim in node.type.dims if dim not in chosen)
        at = dots[0] if dots else len(parts)
        order = (*chosen[:at], *(rest if dots else ()), *chosen[at:])
        node = named.stack(node, dims=order, name=name)
    return wrap(node)


@parameters(
    dims="For each dim to split the new dims with their sizes, the slowest first, as a dict or as "
    "keywords. One size may be None (or -1): it is inferred, and must divide evenly.",
)
def unstack(
    x: Operand,
    dims: Mapping[str, Mapping[str, SizeLike]] | None = None,
    /,
    **dims_kwargs: Mapping[str, SizeLike],
) -> Tensor:
    """`x` with a dim split into new last dims, in row-major order.

    GraphError if the sizes do not multiply to that of the dim, or if several are open.

    >>> x = gc.constant([1, 2, 3, 4, 5, 6], "pixel")
    >>> gc.compile([], gc.unstack(x, pixel={"row": 2, "col": None}))()
    array([[1, 2, 3],
           [4, 5, 6]])
    """
    node = single(x)
    for dim, parts in arguments.mapping(dims, dims_kwargs, "{'dim': {'new': size}}", node).items():
        arguments.require_dims(node, arguments.names((dim,), node))
        if not isinstance(parts, Mapping):
            cure = f"write x.unstack({{{dim!r}: {{'new': size}}}})"
            raise type_refusal(f"{parts!r} is not a dict", node, cure=cure)
        sizes = split_sizes(node, dim, dict(parts))
        node = named.unstack(node, dim=dim, names=tuple(parts), sizes=sizes)
    return wrap(node)


def split_sizes(node: Node, dim: str, parts: dict[str, SizeLike]) -> tuple[Size, ...]:
    """The sizes of the new dims, with the open one inferred."""
    opened = [
        name
        for name, size in parts.items()
        if size is None or (isinstance(size, (int, np.integer)) and size == -1)
    ]
    sizes = {n: arguments.size_of(n, s) for n, s in parts.items() if n not in opened}
    if len(opened) > 1:
        raise refusal(f"sizes of {opened} are not given", node, cure="give all sizes but one")
    if opened:
        whole, known = node.type.size(dim), count(sizes.values())
        if known == 0 or same(whole % known, 0) is False:
            cure = "sizes must multiply to it"
            raise refusal(f"dim {dim!r} of size {whole} does not split into {known}",
                          node, cure=cure)  # fmt: skip
        sizes[opened[0]] = whole // known
    return tuple(sizes[name] for name in parts)
