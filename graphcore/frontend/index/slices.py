"""Slices of dims by name: first, last and every n-th elements, and dims reversed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import Dim, Whole
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.ir import Expression, Node, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import maximum
from graphcore.ops import named

from .indexing import isel

__all__ = [
    "flip",
    "head",
    "tail",
    "thin",
]


def cut(x: Node, dim: str, start: Size, size: Size) -> Node:
    """`size` elements of one dim, from `start` on."""
    if start == 0 and size == x.type.size(dim):
        return x
    return named.slice_(x, dims=(dim,), starts=(start,), sizes=(size,), steps=(1,))


def amounts(x: Node, given: object, more: Mapping[str, Any]) -> dict[str, Size]:
    """An integer or a size for each of some dims of `x`, or alone for the dim of a vector."""
    wanted = by_dim(x, given, more)
    return {dim: arguments.integer(number, f"dim {dim!r}", x) for dim, number in wanted.items()}


def by_dim(x: Node, given: object, more: Mapping[str, Any]) -> dict[str, Any]:
    """What is given for each of some dims of `x`."""
    if isinstance(given, int | Expression) and not more and len(x.type.dims) == 1:
        given = {x.type.dims[0]: given}
    wanted = arguments.mapping(given, more, "{'dim': 1}", x)
    arguments.require_dims(x, arguments.names(tuple(wanted), x))
    return wanted


@parameters(dim="The dims to reverse: one name, several, or None for all.")
def flip(x: Operand, dim: Dim = None) -> Tensor:
    """`x` reversed along dims.

    >>> gc.compile([], gc.flip(gc.constant([1, 2, 3], "t"), dim="t"))()
    array([3, 2, 1])
    """
    node = single(x)
    dims = arguments.dims_of(node, arguments.order_set(dim), ordered=True)
    arguments.require_dims(node, dims)
    return isel(wrap(node), dict.fromkeys(dims, slice(None, None, -1)))


@parameters(sizes="The number of elements for each dim, as a dict or as keywords; or one for all.")
def head(
    x: Operand, sizes: Mapping[str, Whole] | Whole | None = None, /, **sizes_kwargs: Whole
) -> Tensor:
    """The first elements along dims: a number for each dim by name, or one for all; by default 5.

    >>> gc.compile([], gc.head(gc.constant([1, 2, 3, 4], "row"), row=2))()
    array([1, 2])
    """
    given = 5 if sizes is None and not sizes_kwargs else sizes
    return slice_dims(x, given, sizes_kwargs, lambda number, size: slice(number))


@parameters(sizes="The number of elements for each dim, as a dict or as keywords; or one for all.")
def tail(
    x: Operand, sizes: Mapping[str, Whole] | Whole | None = None, /, **sizes_kwargs: Whole
) -> Tensor:
    """The last elements along dims: a number for each dim by name, or one for all; by default 5.

    >>> gc.compile([], gc.tail(gc.constant([1, 2, 3, 4], "row"), row=2))()
    array([3, 4])
    """
    given = 5 if sizes is None and not sizes_kwargs else sizes
    return slice_dims(
        x, given, sizes_kwargs, lambda number, size: slice(maximum(size - number, 0), None)
    )


@parameters(steps="The step for each dim, as a dict or as keywords; or one for all.")
def thin(
    x: Operand, steps: Mapping[str, Whole] | Whole | None = None, /, **steps_kwargs: Whole
) -> Tensor:
    """Every n-th element along dims, from the first: a step for each dim by name, or one for all.

    >>> gc.compile([], gc.thin(gc.constant([1, 2, 3, 4], "row"), row=3))()
    array([1, 4])
    """
    if steps is None and not steps_kwargs:
        raise refusal("there is no step", single(x), cure="write x.thin(2)")
    return slice_dims(x, steps, steps_kwargs, lambda step, size: slice(None, None, step))


def slice_dims(
    x: Operand, given: object, more: Mapping[str, Any], made: Callable[[Size, Size], slice]
) -> Tensor:
    """`x` at the slices that `made` computes from the number given for each dim and its size."""
    node = single(x)
    if isinstance(given, (int, np.integer, Expression, Base)):
        given = dict.fromkeys(node.type.dims, given)
    wanted = amounts(node, given, more)
    for dim, number in wanted.items():
        if isinstance(number, int) and number < 0:
            raise refusal(f"{number} for dim {dim!r} is negative", node, cure="use 0 or more")
    return isel(wrap(node), {dim: made(n, node.type.size(dim)) for dim, n in wanted.items()})
