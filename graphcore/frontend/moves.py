"""Values moved along dims: their places put together in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcore.ir.node import Node
from graphcore.ir.sizes import Expression, Size, maximum, minimum
from graphcore.ops import named

from .arguments import Dim, dims_of, integer, mapping, names, require_dims, unordered
from .base import refusal, wrap
from .filling import constant_end, with_fill
from .indexing import isel
from .lift import Operand, single

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "flip",
    "head",
    "roll",
    "shift",
    "tail",
    "thin",
]


def cut(x: Node, dim: str, start: Size, size: Size) -> Node:
    """`size` places of one dim."""
    if start == 0 and size == x.type.size(dim):
        return x
    return named.slice_(x, dims=(dim,), starts=(start,), sizes=(size,), steps=(1,))


def join(parts: Iterable[Node], dim: str) -> Node:
    """Parts one after the other along `dim`, which all have; those known to be empty left out."""
    several = list(parts)
    kept = [part for part in several if part.type.size(dim) != 0] or several[:1]
    return named.concat(*kept, dim=dim) if len(kept) > 1 else kept[0]


def amounts(function: str, x: Node, given: object, more: Mapping[str, Any]) -> dict[str, Size]:
    """An integer or a size for each of some dims of `x`."""
    wanted = mapping(function, given, more, "'dim': 1", x)
    require_dims(function, x, names(function, tuple(wanted), x))
    return {dim: integer(function, number, f"dim {dim!r}", x) for dim, number in wanted.items()}


def roll(x: Operand, /, shifts: Mapping[str, Size] | None = None, **more: Size) -> Tensor:
    """`x` with values moved along dims; what leaves at one end comes in at the other.

    Parameters
    ----------
    x
        A tensor.
    shifts
        By how many places each dim moves, forwards if positive: integers or sizes, as a dict or as
        keywords.

    Examples
    --------
    >>> import graphcore as gc
    >>> gc.compile([], gc.roll(gc.constant([1, 2, 3, 4], "t"), t=1))()
    array([4, 1, 2, 3])
    """
    node = single("roll", x)
    for dim, places in amounts("roll", node, shifts, more).items():
        size = node.type.size(dim)
        behind = places % maximum(size, 1)
        node = join([cut(node, dim, size - behind, behind), cut(node, dim, 0, size - behind)], dim)
    return wrap(node)


def shift(
    x: Operand,
    /,
    shifts: Mapping[str, Size] | None = None,
    fill_value: Operand | None = None,
    **more: Size,
) -> Tensor:
    """`x` with values moved along dims; what leaves at one end is lost, and the other is filled.

    Parameters
    ----------
    x
        A tensor.
    shifts
        By how many places each dim moves, forwards if positive: integers or sizes, as a dict or as
        keywords.
    fill_value
        A number or tensor, taken in the dtype of `x`. By default nan, for which integers become
        floats: float32 those of up to 16 bits, float64 the rest.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], [gc.shift(x, t=1), gc.shift(x, t=-1, fill_value=0)])()
    [array([nan,  1.,  2.]), array([2, 3, 0])]
    """
    node = single("shift", x)
    wanted = amounts("shift", node, shifts, more)
    if not wanted:
        return wrap(node)
    node, fill = with_fill("shift", node, fill_value)
    for dim, places in wanted.items():
        size = node.type.size(dim)
        before, after = (minimum(maximum(p, 0), size) for p in (places, -places))
        kept = cut(node, dim, after, size - before - after)
        ends = [constant_end(node, dim, end, fill) for end in (before, after)]
        node = join([ends[0], kept, ends[1]], dim)
    return wrap(node)


def flip(x: Operand, dim: Dim = None) -> Tensor:
    """`x` backwards along one dim, several, or all (None).

    >>> import graphcore as gc
    >>> gc.compile([], gc.flip(gc.constant([1, 2, 3], "t"), dim="t"))()
    array([3, 2, 1])
    """
    node = single("flip", x)
    dims = dims_of("flip", node, unordered(dim), ordered=True)
    require_dims("flip", node, dims)
    return isel(wrap(node), dict.fromkeys(dims, slice(None, None, -1)))


def head(x: Operand, sizes: Mapping[str, Size] | Size | None = None, /, **more: Size) -> Tensor:
    """The first places of dims, as many as told: of each by name, or of all; by default 5 of all.

    >>> import graphcore as gc
    >>> gc.head(gc.tensor("x", {"row": 7, "col": 8}), row=2)
    <Tensor: f64[row=2, col=8]>
    """
    given = 5 if sizes is None and not more else sizes
    return ranged("head", x, given, more, lambda places, size: slice(places))


def tail(x: Operand, sizes: Mapping[str, Size] | Size | None = None, /, **more: Size) -> Tensor:
    """The last places of dims, as many as told: of each by name, or of all; by default 5 of all.

    >>> import graphcore as gc
    >>> gc.tail(gc.tensor("x", {"row": 7, "col": 8}), row=2)
    <Tensor: f64[row=2, col=8]>
    """
    given = 5 if sizes is None and not more else sizes
    return ranged(
        "tail", x, given, more, lambda places, size: slice(maximum(size - places, 0), None)
    )


def thin(x: Operand, steps: Mapping[str, int] | int | None = None, /, **more: int) -> Tensor:
    """Every so many places of dims, from the first on: a step for each by name, or one for all.

    >>> import graphcore as gc
    >>> gc.thin(gc.tensor("x", {"row": 7, "col": 8}), row=3)
    <Tensor: f64[row=3, col=8]>
    """
    if steps is None and not more:
        raise refusal("thin", "there is no step", single("thin", x), cure="write thin(x, 2)")
    return ranged("thin", x, steps, more, lambda step, size: slice(None, None, step))


def ranged(
    function: str,
    x: Operand,
    given: object,
    more: Mapping[str, Any],
    made: Callable[[Size, Size], slice],
) -> Tensor:
    """`x` in the slice that is made of the amount told of a dim and the size it has."""
    node = single(function, x)
    if isinstance(given, (int, np.integer, Expression)):
        given = dict.fromkeys(node.type.dims, given)
    wanted = amounts(function, node, given, more)
    for dim, number in wanted.items():
        if isinstance(number, int) and number < 0:
            reason = f"{number} for dim {dim!r} is negative"
            raise refusal(function, reason, node, cure="use 0 or more")
    return isel(wrap(node), {dim: made(n, node.type.size(dim)) for dim, n in wanted.items()})
