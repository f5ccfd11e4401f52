"""Positions that a mask or counts pick, as many as a program finds when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from graphcore.frontend.core.arguments import SizeLike, size_of
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import scalar
from graphcore.frontend.core.values_as_sizes import computed
from graphcore.frontend.pointwise.elementwise import minimum
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import stack
from graphcore.ir import INT, Hidden, Literal, Node, Size
from graphcore.ir.names import apart
from graphcore.ir.size_text import reads_as_expression
from graphcore.ops import elementwise, leaf, named


class Kept(NamedTuple):
    """Positions, and whether there are just as many as are asked for.

    Else some may be left out, and excess ones are outside of the dim that they are positions of.
    """

    positions: Tensor
    exact: bool


def is_computed(size: SizeLike) -> bool:
    """Whether a user leaves a size to be computed: gives none, or only a name for it."""
    return size is None or (isinstance(size, str) and not reads_as_expression(size))


def kept_size(dim: str, size: SizeLike, count: Callable[[], Node], label: str) -> Size:
    """The size that a user fixes, else one that is computed, shown by a name."""
    if is_computed(size):
        found = count()
        if found.type.dims:
            cure = "give size=, or search all dims together, with dim=None"
            reason = f"how many there are differs along the dims {found.type.dims}"
            raise refusal(reason, found, cure=cure)
        return computed(found, label if size is None else str(size))
    return size_of(dim, size)


def true_positions(mask: Node, dim: str, new: str, size: SizeLike) -> Kept:
    """The positions along `dim` where a mask holds, along the dim `new`, which comes last.

    Each position is put at the number of those before it where the mask holds, so that the last one
    that is put there is the one where it holds.
    """
    many = kept_size(new, size, lambda: named.sum_(mask, dims=(dim,)), "kept")
    counts = wrap(elementwise.cast(mask, dtype=INT))
    before = wrap(named.cumsum(counts.node, dims=(dim,))) - counts
    length, exact = mask.type.size(dim), is_computed(size)
    if not exact:
        before = minimum(before, many)
    sizes = {other: n for other, n in mask.type.sizes.items() if other != dim} | {new: many + 1}
    none = leaf.full(value=Literal(0, INT), shape=tuple(sizes.values()), dims=tuple(sizes))
    every = leaf.iota(size=length, dtype=INT, dims=(dim,))
    held = named.put(none, every, before.node, over=(dim,), dims=(new,))
    at = named.slice_(held, dims=(new,), starts=(0,), sizes=(many,), steps=(1,))
    if not exact:
        there = counts.sum(dim) > wrap(leaf.iota(size=many, dtype=INT, dims=(new,)))
        at = where(there, wrap(at), length).node
    return Kept(wrap(at), exact)


def element_positions(
    mask: Node, dims: tuple[str, ...], new: str, size: SizeLike
) -> tuple[dict[str, Tensor], Tensor | None]:
    """The positions along dims where a mask holds, in row-major order, along the dim `new`.

    With a size that is fixed, also which of them are positions of elements.
    """
    flat, row = merge_dims(wrap(mask), dims)
    at, exact = true_positions(flat.node, row, new, size)
    there = None if exact else at < flat.sizes[row]
    found = {}
    for dim in reversed(dims):
        length = mask.type.size(dim)
        found[dim] = at % length
        at = at // length
    return {dim: found[dim] for dim in dims}, there


def merge_dims(x: Tensor, dims: tuple[str, ...]) -> tuple[Tensor, str]:
    """`x` with `dims` merged into one, and the name of that."""
    if len(dims) == 1:
        return x, dims[0]
    name = apart(Hidden("place"), x.dims)
    return stack(x, {name: dims}), name


def counted_positions(counts: Node, dim: str, size: SizeLike) -> Kept:
    """Each position along `dim` as often as `counts`, of that one dim, says."""
    counts = elementwise.cast(counts, dtype=INT)

    def total() -> Node:  # below 0 if one count is, as no size may be
        wrong = named.any_((wrap(counts) < 0).node, dims=(dim,))
        return elementwise.where(wrong, scalar(-1, INT), named.sum_(counts, dims=(dim,)))

    many = kept_size(dim, size, total, "repeated")
    ends = named.cumsum(counts, dims=(dim,))
    wanted = leaf.iota(size=many, dtype=INT, dims=(dim,))
    at = named.searchsorted(ends, wanted, dim=dim, side="right")
    return Kept(wrap(at), is_computed(size))
