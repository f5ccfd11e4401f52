"""Values moved, repeated and parted along dims: their places put together in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcore.ir.errors import GraphTypeError
from graphcore.ir.node import Node
from graphcore.ir.sizes import Expression, Size, maximum, same
from graphcore.ops import named

from .arguments import (
    Dim,
    SizeLike,
    dim_of,
    dims_of,
    integer,
    mapping,
    names,
    require_dims,
    size_of,
)
from .base import refusal, wrap
from .indexing import isel
from .lift import Operand, single
from .shape import broadcast_to

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "flip",
    "head",
    "repeat",
    "roll",
    "split",
    "tail",
    "thin",
    "tile",
    "unbind",
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
    wanted = mapping(function, given, more, "'dim': 1")
    require_dims(function, x, names(function, tuple(wanted), x))
    return {dim: integer(function, number, f"dim {dim!r}", x) for dim, number in wanted.items()}


def roll(x: Operand, shifts: Mapping[str, Size] | None = None, /, **more: Size) -> Tensor:
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


def flip(x: Operand, dim: Dim = None) -> Tensor:
    """`x` backwards along one dim, several, or all (None).

    >>> import graphcore as gc
    >>> gc.compile([], gc.flip(gc.constant([1, 2, 3], "t"), dim="t"))()
    array([3, 2, 1])
    """
    node = single("flip", x)
    dims = dims_of("flip", node, dim)
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
            raise refusal(function, f"{number} for dim {dim!r} is negative", node)
    return isel(wrap(node), {dim: made(n, node.type.size(dim)) for dim, n in wanted.items()})


def tile(x: Operand, copies: Mapping[str, SizeLike] | None = None, /, **more: SizeLike) -> Tensor:
    """`x` one copy after the other along dims.

    Parameters
    ----------
    x
        A tensor.
    copies
        How many copies along each dim, as a dict or as keywords; sizes may be symbolic.

    Examples
    --------
    >>> import graphcore as gc
    >>> gc.compile([], gc.tile(gc.constant([1, 2, 3], "t"), t=2))()
    array([1, 2, 3, 1, 2, 3])
    """
    node = single("tile", x)
    for dim, number in amounts("tile", node, copies, more).items():
        node = tiled(node, dim, size_of("tile", dim, number))
    return wrap(node)


FEW = 8
"""Copies that are put together one by one, which is quicker than an axis as short as that."""


def tiled(x: Node, dim: str, copies: Size) -> Node:
    """All places of `dim`, then all again."""
    if isinstance(copies, int) and 0 < copies <= FEW:
        return join([x] * copies, dim)
    return spread(x, dim, copies, before=True)


def spread(x: Node, dim: str, copies: Size, before: bool) -> Node:
    """`x` repeated along a new dim right before or after `dim`, and the two made one."""
    old: tuple[str, ...] = x.type.dims
    each = fresh(f"copy of {dim}", old)
    pair = (each, dim) if before else (dim, each)
    dims = (*old[: old.index(dim)], *pair, *old[old.index(dim) + 1 :])

    def along(size: Size) -> Node:
        sizes = x.type.sizes | {each: size}
        return named.broadcast(x, dims=dims, sizes=tuple(sizes[name] for name in dims))

    if isinstance(copies, int) and 0 < copies <= FEW:
        copied = join([along(1)] * copies, each)
    else:
        copied = along(copies)
    merged = named.stack(copied, dims=pair, name=dim)
    return merged if merged.type.dims == old else named.transpose(merged, dims=old)


def fresh(name: str, taken: Sequence[str]) -> str:
    """`name`, with as many primes as make it none of those taken."""
    while name in taken:
        name += "'"
    return name


def repeat(x: Operand, repeats: SizeLike | Sequence[int], dim: str) -> Tensor:
    """`x` with each place of `dim` repeated.

    Parameters
    ----------
    x
        A tensor.
    repeats
        How often: one integer or size for all places, or an integer for each.
    dim
        The dim.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], [gc.repeat(x, 2, dim="t"), gc.repeat(x, [0, 1, 3], dim="t")])()
    [array([1, 1, 2, 2, 3, 3]), array([2, 3, 3, 3])]
    """
    node = single("repeat", x)
    name = dim_of("repeat", node, dim)
    if not isinstance(repeats, (list, tuple, np.ndarray)):
        times = size_of("repeat", name, integer("repeat", repeats, f"dim {name!r}", node))
        return wrap(node if times == 1 else spread(node, name, times, before=False))
    counts = [size_of("repeat", name, number) for number in repeats]
    if not all(isinstance(number, int) for number in counts):
        cure = "the size would not be known: give integers"
        raise refusal("repeat", f"repeats {repeats!r} are not all known", node, cure=cure)
    places = np.repeat(np.arange(len(counts)), np.array(counts, int))
    return isel(wrap(agreed(node, name, len(counts))), {name: places})


def agreed(x: Node, dim: str, size: Size) -> Node:
    """`x`, whose `dim` must have this size: what cannot be told now is checked at the call."""
    sizes = x.type.sizes | {dim: size}
    return broadcast_to(x, x.type.dims, tuple(sizes.values())).node


def split(
    x: Operand, parts: int | Sequence[SizeLike] | Mapping[str, Any], dim: str | None = None
) -> list[Tensor]:
    """The parts of `x` along `dim`, one after the other.

    Parameters
    ----------
    x
        A tensor.
    parts
        How many parts of one size, or the size of each; they add up to that of `dim`, and one may
        be None: what remains. With a dict {dim: parts} the dim is told here. Unlike
        `numpy.split`, these are sizes and no positions.
    dim
        The dim.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 6, "col": 3})
    >>> gc.split(x, 2, dim="row")
    [<Tensor: f64[row=3, col=3]>, <Tensor: f64[row=3, col=3]>]
    >>> gc.split(x, {"row": [2, None]})
    [<Tensor: f64[row=2, col=3]>, <Tensor: f64[row=4, col=3]>]
    """
    node = single("split", x)
    if isinstance(parts, Mapping):
        if len(parts) != 1 or dim is not None:
            raise refusal("split", "splits one dim", node, cure="write split(x, {'dim': parts})")
        ((dim, parts),) = parts.items()
    name = dim_of("split", node, dim)
    sizes = sizes_of_parts(node, name, parts)
    node = agreed(node, name, sum(sizes, start=0))
    starts = accumulate((0, *sizes[:-1]))
    return [wrap(cut(node, name, start, size)) for start, size in zip(starts, sizes, strict=True)]


def sizes_of_parts(x: Node, dim: str, parts: Any) -> list[Size]:
    """The sizes of the parts, with the one left open inferred."""
    whole: Size = x.type.size(dim)
    if isinstance(parts, (int, np.integer)):
        if parts < 1 or same(whole % int(parts), 0) is False:
            reason = f"dim {dim!r} of size {whole} does not split into {parts} parts of one size"
            raise refusal("split", reason, x, cure="tell the size of each part")
        return [whole // int(parts)] * int(parts)
    if not isinstance(parts, (list, tuple, np.ndarray)):
        cure = "give a number of parts, or a list of sizes"
        raise refusal("split", f"{parts!r} is no list of sizes", x, cure=cure, kind=GraphTypeError)
    told = [size_of("split", dim, size) for size in parts if size is not None]
    if len(parts) - len(told) > 1:
        raise refusal(
            "split", f"several of {parts} are open", x, cure="leave one size open at most"
        )
    rest = maximum(whole - sum(told, start=0), 0)
    given = iter(told)
    return [rest if size is None else next(given) for size in parts]


def unbind(x: Operand, dim: str) -> list[Tensor]:
    """The places of `x` along `dim`, one tensor for each; the size of `dim` must be known.

    >>> import graphcore as gc
    >>> gc.unbind(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    [<Tensor: f64[col=3]>, <Tensor: f64[col=3]>]
    """
    node = single("unbind", x)
    name = dim_of("unbind", node, dim)
    size = node.type.size(name)
    if not isinstance(size, int):
        cure = "declare its size, or go over it with gc.scan"
        raise refusal("unbind", f"the size {size} of dim {name!r} is unknown", node, cure=cure)
    return [isel(wrap(node), {name: place}) for place in range(size)]
