"""Windows along dims, which overlap and are not copied, and their transpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphcore.frontend.core.arguments import SizeLike, mapping, names, require_dims, size_of, whole
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.pointwise.casting import fill_in_dtype
from graphcore.frontend.shape.dims import constant_end, join, keep_labels
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, maximum
from graphcore.ops import named

__all__ = [
    "overlap_add",
    "windows",
]


def windows(
    x: Operand,
    sizes: Mapping[str, SizeLike],
    names: Mapping[str, str] | str,
    stride: int | Mapping[str, int] = 1,
    dilation: int | Mapping[str, int] = 1,
) -> Tensor:
    """The windows along some dims, with their elements along new last dims: a view, not a copy.

    Element j of window i is element `i * stride + j * dilation` of `x`. There are as many windows
    as fit, `(size - (window - 1) * dilation - 1) // stride + 1`, or none. A window has the label of
    its last element, as in `rolling`.

    Parameters
    ----------
    x
        A tensor.
    sizes
        For each dim the size of its windows, 1 or more.
    names
        For each dim the name of the new dim; for a single dim the name alone.
    stride
        The step from window to window: one number, or a dict by dim.
    dilation
        The step from element to element in a window: one number, or a dict by dim.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.constant([1, 2, 3, 4, 5], "time")
    >>> gc.compile([], gc.windows(x, {"time": 3}, names="lag"))()
    array([[1, 2, 3],
           [2, 3, 4],
           [3, 4, 5]])
    """
    node = single("windows", x)
    attrs = window_attrs("windows", node, sizes, names, stride, dilation)
    made, dims = named.windows(node, **attrs), attrs["dims"]
    rows = zip(attrs["sizes"], attrs["dilations"], strict=True)
    ends = named.slice_(
        node,
        dims=dims,
        starts=tuple((size - 1) * apart for size, apart in rows),
        sizes=tuple(made.type.size(dim) for dim in dims),
        steps=attrs["strides"],
    )
    return wrap(keep_labels(made, ends, dims))


def overlap_add(
    x: Operand,
    sizes: Mapping[str, SizeLike],
    names: Mapping[str, str] | str,
    stride: int | Mapping[str, int] = 1,
    dilation: int | Mapping[str, int] = 1,
) -> Tensor:
    """Windows added up at the positions they were taken from: the transpose of `windows`.

    Parameters
    ----------
    x
        A tensor of windows.
    sizes
        For each dim that counts windows, the size of the result; None is the smallest possible.
    names
        For each dim the name of the dim within windows, which is removed; for a single dim the
        name alone.
    stride
        The step from window to window: one number, or a dict by dim.
    dilation
        The step from element to element in a window: one number, or a dict by dim.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.constant([[1, 1, 1], [10, 10, 10]], ("time", "lag"))
    >>> gc.compile([], gc.overlap_add(x, {"time": None}, names="lag"))()
    array([ 1, 11, 11, 10])
    """
    node = single("overlap_add", x)
    sizes = mapping("overlap_add", sizes, None, "{'dim': size}, 'lag'", node)
    attrs = window_attrs("overlap_add", node, dict.fromkeys(sizes, 1), names, stride, dilation)
    require_dims("overlap_add", node, attrs["names"])
    rows = zip(*[attrs[key] for key in ("dims", "names", "strides", "dilations")], strict=True)
    attrs["sizes"] = tuple(
        span(node.type.size(dim), node.type.size(name), by, apart)
        if sizes[dim] is None
        else size_of("overlap_add", dim, sizes[dim])
        for dim, name, by, apart in rows
    )
    return wrap(named.overlap_add(node, **attrs))


def span(count: Size, window: Size, stride: int, dilation: int) -> Size:
    """The number of elements that `count` windows span."""
    return maximum((count - 1) * stride + (window - 1) * dilation + 1, 0)


def window_attrs(
    function: str,
    x: Node,
    sizes: Mapping[str, SizeLike],
    new: Mapping[str, str] | str,
    stride: int | Mapping[str, int],
    dilation: int | Mapping[str, int],
) -> dict[str, Any]:
    """The attrs of an op on windows, from the arguments of a user."""
    dims = names(function, tuple(mapping(function, sizes, None, "{'dim': size}, 'lag'", x)), x)
    require_dims(function, x, dims)
    new_names = each(
        function, dims, {dims[0]: new} if isinstance(new, str) and len(dims) == 1 else new
    )
    return {
        "dims": dims,
        "names": names(function, tuple(new_names)),
        "sizes": tuple(size_of(function, dim, sizes[dim]) for dim in dims),
        "strides": steps(function, dims, stride),
        "dilations": steps(function, dims, dilation),
    }


def steps(function: str, dims: tuple[str, ...], given: Any) -> tuple[int, ...]:
    """One integer for each of `dims`."""
    return tuple(whole(function, n, "step", least=None) for n in each(function, dims, given))


def each(function: str, dims: tuple[str, ...], given: Any) -> tuple[Any, ...]:
    """One value for each of `dims`: the same for all, or given by dim."""
    if not isinstance(given, Mapping):
        return (given,) * len(dims)
    if given.keys() != set(dims):
        reason = f"{dict(given)} does not give a value for each of the dims {dims}"
        raise refusal(function, reason, cure="name every dim once")
    return tuple(given[dim] for dim in dims)


def pad(x: Node, ends: Mapping[str, tuple[Size, Size]], value: Operand) -> Node:
    """`x` with `value` before and after the elements along some dims."""
    fill = fill_in_dtype("pad", value, x)
    for dim, (before, after) in ends.items():
        parts = [constant_end(x, dim, before, fill), x, constant_end(x, dim, after, fill)]
        x = join(parts, dim)
    return x
