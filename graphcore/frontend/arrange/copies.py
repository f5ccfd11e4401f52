"""Copies joined along dims, and tensors split into parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeGuard

import numpy as np

from graphcore.frontend.core.arguments import SizeLike, Whole, dim_of, integer, size_of
from graphcore.frontend.core.base import Base, Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.costs import MOST_JOINED
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.index.picked_positions import counted_positions
from graphcore.frontend.index.slices import amounts, cut
from graphcore.frontend.pointwise.elementwise import minimum
from graphcore.frontend.shape.dims import broadcast_to, in_order, join, with_size
from graphcore.ir import Hidden, Node, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.names import apart
from graphcore.ir.sizes import maximum, same
from graphcore.ops import named

__all__ = [
    "repeat",
    "split",
    "tile",
    "unbind",
]


@parameters(
    copies="The number of copies along each dim, as a dict or as keywords; sizes may be symbolic.",
)
def tile(
    x: Operand, copies: Mapping[str, Whole] | None = None, /, **copies_kwargs: Whole
) -> Tensor:
    """`x` repeated as a whole along dims.

    >>> gc.compile([], gc.tile(gc.constant([1, 2, 3], "t"), t=2))()
    array([1, 2, 3, 1, 2, 3])
    """
    node = single(x)
    for dim, number in amounts(node, copies, copies_kwargs).items():
        node = tile_dim(node, dim, size_of(dim, number))
    return wrap(node)


def tile_dim(x: Node, dim: str, copies: Size) -> Node:
    """All elements along `dim`, then all again, `copies` times."""
    if isinstance(copies, int) and 0 < copies <= MOST_JOINED:
        return join([x] * copies, dim)
    return spread(x, dim, copies, before=True)


def spread(x: Node, dim: str, copies: Size, before: bool) -> Node:
    """`x` repeated along a new dim right before or after `dim`, and the two merged."""
    old: tuple[str, ...] = x.type.dims
    each = apart(Hidden(f"copy of {dim}"), old)
    pair = (each, dim) if before else (dim, each)
    dims = (*old[: old.index(dim)], *pair, *old[old.index(dim) + 1 :])

    def along(size: Size) -> Node:
        sizes = x.type.sizes | {each: size}
        return broadcast_to(x, {name: sizes[name] for name in dims}).node

    if isinstance(copies, int) and 0 < copies <= MOST_JOINED:
        copied = join([along(1)] * copies, each)
    else:
        copied = along(copies)
    merged = named.stack(copied, dims=pair, name=dim)
    return in_order(merged, old)


@parameters(
    repeats="How often: one integer or size for all elements along `dim`, or an integer for each, "
    "also as an integer tensor along `dim`.",
    dim="The dim.",
    size="A name for the number of elements that a tensor of repeats gives, which is computed. An "
    "integer or a size fixes it: excess elements are dropped, the last one fills the rest.",
)
def repeat(
    x: Operand,
    repeats: Whole | Tensor | Sequence[int],
    dim: str | None = None,
    size: SizeLike = None,
) -> Tensor:
    """`x` with each element along `dim` repeated.

    GraphError if there is not one number for each element, or one is negative.

    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], [gc.repeat(x, 2, dim="t"), gc.repeat(x, [0, 1, 3], dim="t")])()
    [array([1, 1, 2, 2, 3, 3]), array([2, 3, 3, 3])]
    """
    node = single(x)
    name = dim_of(node, dim)
    if isinstance(repeats, Base) and repeats.dims:
        return by_counts(node, name, repeats, size)
    if size is not None:
        cure = "leave it out, or give the repeats as a tensor"
        raise refusal("takes a size where a tensor says how often", node, cure=cure)
    if not is_list(repeats):
        times = size_of(name, integer(repeats, f"dim {name!r}", node))
        return wrap(node if times == 1 else spread(node, name, times, before=False))
    counts = [size_of(name, number) for number in repeats]
    if not all(isinstance(number, int) for number in counts):
        cure = "give integers, or one tensor along the dim: gc.concat(counts, dim)"
        raise refusal(f"repeats {repeats!r} are not all known", node, cure=cure)
    positions = np.repeat(np.arange(len(counts)), np.array(counts, int))
    return isel(wrap(with_size(node, name, len(counts))), {name: positions})


def by_counts(x: Node, dim: str, counts: Base, size: SizeLike) -> Tensor:
    """Each element along `dim` as often as a tensor along it says."""
    if counts.dims != (dim,) or counts.dtype.kind not in "iu":
        cure = f"give an integer for each element along {dim!r}"
        raise refusal(f"{counts.node.type} is not how often", x, counts, cure=cure)
    x = with_size(x, dim, counts.sizes[dim])
    at, exact = counted_positions(counts.node, dim, size)
    return isel(wrap(x), {dim: at if exact else minimum(at, x.type.size(dim) - 1)})


def is_list(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether several numbers are given rather than one."""
    return isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim > 0)


@parameters(
    parts="The number of equal parts, or the size of each part. Sizes add up to that of `dim`; one "
    "may be None, which is inferred. Unlike in `numpy.split` these are sizes, not positions. A "
    "dict {dim: parts} gives dim and parts at once.",
    dim="The dim to split.",
)
def split(
    x: Operand, parts: int | Sequence[SizeLike] | Mapping[str, Any], dim: str | None = None
) -> list[Tensor]:
    """The parts of `x` along `dim`, in order.

    GraphError if the sizes do not add up to that of `dim`, or if it is not a multiple of the number
    of parts.

    >>> x = gc.constant([1, 2, 3, 4, 5, 6], "row")
    >>> gc.compile([], gc.split(x, 2, dim="row"))()
    [array([1, 2, 3]), array([4, 5, 6])]
    >>> gc.compile([], gc.split(x, {"row": [2, None]}))()
    [array([1, 2]), array([3, 4, 5, 6])]
    """
    node = single(x)
    if isinstance(parts, Mapping):
        if len(parts) != 1 or dim is not None:
            raise refusal("splits one dim", node, cure="write gc.split(x, parts, dim='row')")
        ((dim, parts),) = parts.items()
    name = dim_of(node, dim)
    sizes = sizes_of_parts(node, name, parts)
    node = with_size(node, name, sum(sizes, start=0))
    starts = accumulate((0, *sizes[:-1]))
    return [wrap(cut(node, name, start, size)) for start, size in zip(starts, sizes, strict=True)]


def sizes_of_parts(x: Node, dim: str, parts: Any) -> list[Size]:
    """The sizes of the parts, with the open one inferred."""
    whole: Size = x.type.size(dim)
    if isinstance(parts, (int, np.integer)):
        if parts < 1 or same(whole % int(parts), 0) is False:
            reason = f"dim {dim!r} of size {whole} does not split into {parts} parts of one size"
            raise refusal(reason, x, cure="give the size of each part")
        return [whole // int(parts)] * int(parts)
    if not is_list(parts):
        cure = "give a number of parts, or a list of sizes"
        raise type_refusal(f"{parts!r} is not a list of sizes", x, cure=cure)
    known = [size_of(dim, size) for size in parts if size is not None]
    if len(parts) - len(known) > 1:
        raise refusal(f"several of {parts} are open", x, cure="give all sizes but one")
    rest = maximum(whole - sum(known, start=0), 0)
    given = iter(known)
    return [rest if size is None else next(given) for size in parts]


@parameters(dim="The dim, which is removed.")
def unbind(x: Operand, dim: str | None = None) -> list[Tensor]:
    """One tensor for each position of `x` along `dim`, whose size must be known.

    >>> gc.compile([], gc.unbind(gc.constant([[1, 2], [3, 4]], ("row", "col")), dim="row"))()
    [array([1, 2]), array([3, 4])]
    """
    node = single(x)
    name = dim_of(node, dim)
    size = node.type.size(name)
    if not isinstance(size, int):
        cure = "declare its size, or loop over it with gc.scan"
        raise refusal(f"the size {size} of dim {name!r} is unknown", node, cure=cure)
    return [isel(wrap(node), {name: place}) for place in range(size)]
