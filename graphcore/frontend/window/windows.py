"""Windows along dims, which overlap and are not copied, and their transpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import SizeLike
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.pointwise.casting import fill_in_dtype
from graphcore.frontend.shape.dims import constant_end, in_order, join, keep_labels, with_size
from graphcore.ir import INT, Expression, Node, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import maximum
from graphcore.ops import leaf, named

__all__ = [
    "overlap_add",
    "windows",
]

Step: TypeAlias = int | Expression | Tensor
Steps: TypeAlias = Step | Mapping[str, Step]
"""Steps from window to window, for all dims or by dim."""


@parameters(
    sizes="For each dim the size of its windows, 1 or more.",
    names="For each dim the name of the new dim; for a single dim the name alone.",
    stride="The step from window to window, 1 or more: one number, size or value of integer "
    "inputs, or a dict by dim.",
    dilation="The step from element to element in a window: one number, or a dict by dim.",
)
def windows(
    x: Operand,
    sizes: Mapping[str, SizeLike],
    names: Mapping[str, str] | str,
    stride: Steps = 1,
    dilation: int | Mapping[str, int] = 1,
) -> Tensor:
    """The windows along some dims, with their elements along new last dims: a view, not a copy.

    Element j of window i is element `i * stride + j * dilation` of `x`. There are as many windows
    as fit, `(size - (window - 1) * dilation - 1) // stride + 1`, or none. A window has the label of
    its last element, as in `rolling`.

    >>> x = gc.constant([1, 2, 3, 4, 5], "time")
    >>> gc.compile([], gc.windows(x, {"time": 3}, names="lag"))()
    array([[1, 2, 3],
           [2, 3, 4],
           [3, 4, 5]])
    """
    node = single(x)
    attrs = window_attrs(node, sizes, names, stride, dilation)
    rows = zip(*[attrs[key] for key in ("dims", "sizes", "dilations", "strides")], strict=True)
    ends = {dim: slice((size - 1) * apart, None, by) for dim, size, apart, by in rows}
    made = windows_by(node, attrs)
    return wrap(keep_labels(made, isel(wrap(node), ends).node, attrs["dims"]))


@parameters(
    x="A tensor of windows.",
    sizes="For each dim that counts windows, the size of the result; None is the smallest "
    "possible.",
    names="For each dim the name of the dim within windows, which is removed; for a single dim the "
    "name alone.",
    stride="The step from window to window, 1 or more: one number, size or value of integer "
    "inputs, or a dict by dim.",
    dilation="The step from element to element in a window: one number, or a dict by dim.",
)
def overlap_add(
    x: Operand,
    sizes: Mapping[str, SizeLike],
    names: Mapping[str, str] | str,
    stride: Steps = 1,
    dilation: int | Mapping[str, int] = 1,
) -> Tensor:
    """Windows added up at the positions they were taken from: the transpose of `windows`.

    >>> x = gc.constant([[1, 1, 1], [10, 10, 10]], ("time", "lag"))
    >>> gc.compile([], gc.overlap_add(x, {"time": None}, names="lag"))()
    array([ 1, 11, 11, 10])
    """
    node = single(x)
    sizes = arguments.mapping(sizes, None, "{'dim': size}, 'lag'", node)
    attrs = window_attrs(node, dict.fromkeys(sizes, 1), names, stride, dilation)
    arguments.require_dims(node, attrs["names"])
    rows = zip(*[attrs[key] for key in ("dims", "names", "strides", "dilations")], strict=True)
    attrs["sizes"] = tuple(
        span(node.type.size(dim), node.type.size(name), by, apart)
        if sizes[dim] is None
        else arguments.size_of(dim, sizes[dim])
        for dim, name, by, apart in rows
    )
    return wrap(overlap_add_by(node, attrs))


def windows_by(x: Node, attrs: dict[str, Any]) -> Node:
    """`named.windows`; where a stride is known only at the call, every stride-th of all windows."""
    made = named.windows(x, **with_known_strides(attrs))
    late = {dim: slice(None, None, by) for dim, by in unknown_strides(attrs).items()}
    return isel(wrap(made), late).node


def overlap_add_by(x: Node, attrs: dict[str, Any]) -> Node:
    """`named.overlap_add`, the transpose of `windows_by`."""
    order = [dim for dim in x.type.dims if dim not in attrs["names"]]
    rows = {row[0]: row[1:] for row in zip(*[attrs[key] for key in KEYS], strict=True)}
    for dim, by in unknown_strides(attrs).items():
        name, size, apart = rows[dim]
        every = maximum(size - span(1, x.type.size(name), 1, apart) + 1, 0)
        x = with_size(x, dim, (every + by - 1) // by)
        at = wrap(leaf.iota(size=x.type.size(dim), dtype=INT, dims=(dim,))) * by
        x = named.scatter(x, at.node, over=(dim,), dims=(dim,), sizes=(every,))
    return in_order(named.overlap_add(x, **with_known_strides(attrs)), order)


KEYS = "dims", "names", "sizes", "dilations"


def unknown_strides(attrs: dict[str, Any]) -> dict[str, Expression]:
    """The strides that are known only at the call, by dim."""
    pairs = zip(attrs["dims"], attrs["strides"], strict=True)
    return {dim: by for dim, by in pairs if isinstance(by, Expression)}


def with_known_strides(attrs: dict[str, Any]) -> dict[str, Any]:
    """The same attrs, with 1 for strides that are known only at the call."""
    return attrs | {"strides": tuple(by if isinstance(by, int) else 1 for by in attrs["strides"])}


def span(count: Size, window: Size, stride: Size, dilation: int) -> Size:
    """The number of elements that `count` windows span."""
    return maximum((count - 1) * stride + (window - 1) * dilation + 1, 0)


def window_attrs(
    x: Node,
    sizes: Mapping[str, SizeLike],
    new: Mapping[str, str] | str,
    stride: Steps,
    dilation: int | Mapping[str, int],
) -> dict[str, Any]:
    """The attrs of an op on windows, from the arguments of a user."""
    dims = arguments.names(tuple(arguments.mapping(sizes, None, "{'dim': size}, 'lag'", x)), x)
    arguments.require_dims(x, dims)
    new_names = each(dims, {dims[0]: new} if isinstance(new, str) and len(dims) == 1 else new)
    return {
        "dims": dims,
        "names": arguments.names(tuple(new_names)),
        "sizes": tuple(arguments.size_of(dim, sizes[dim]) for dim in dims),
        "strides": strides(dims, stride),
        "dilations": dilations(dims, dilation),
    }


def strides(dims: tuple[str, ...], given: Any) -> tuple[Size, ...]:
    """One step from window to window for each of `dims`."""
    found = tuple(arguments.integer(n, "a stride") for n in each(dims, given))
    for step in found:
        arguments.require_sign(step)
    return found


def dilations(dims: tuple[str, ...], given: Any) -> tuple[int, ...]:
    """One step from element to element for each of `dims`, which must be known."""
    found = [arguments.whole(n, "dilation", least=None) for n in each(dims, given)]
    return tuple(arguments.within_any_size(n, "a dilation") for n in found)


def each(dims: tuple[str, ...], given: Any) -> tuple[Any, ...]:
    """One value for each of `dims`: the same for all, or given by dim."""
    if not isinstance(given, Mapping):
        return (given,) * len(dims)
    if given.keys() != set(dims):
        reason = f"{dict(given)} does not give a value for each of the dims {dims}"
        raise refusal(reason, cure="name every dim once")
    return tuple(given[dim] for dim in dims)


def pad(x: Node, ends: Mapping[str, tuple[Size, Size]], value: Operand) -> Node:
    """`x` with `value` before and after the elements along some dims."""
    fill = fill_in_dtype(value, x)
    for dim, (before, after) in ends.items():
        parts = [constant_end(x, dim, before, fill), x, constant_end(x, dim, after, fill)]
        x = join(parts, dim)
    return x
