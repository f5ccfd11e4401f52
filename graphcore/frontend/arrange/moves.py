"""Elements moved along dims."""

from __future__ import annotations

from collections.abc import Mapping

from graphcore.frontend.core.arguments import Whole, integer
from graphcore.frontend.core.base import Base, Tensor, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.index.indexing import take
from graphcore.frontend.index.slices import by_dim, cut
from graphcore.frontend.pointwise.casting import astype, with_fill
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import constant_end, join, keep_labels
from graphcore.ir import INT, Node
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import maximum, minimum

__all__ = [
    "roll",
    "shift",
]


MOVED = {
    "shifts": "By how many positions to move along each dim, forwards if positive: integers, sizes "
    "or integer tensors without dims, as a dict or as keywords.",
}


@parameters(**MOVED)
def roll(
    x: Operand, /, shifts: Mapping[str, Whole] | None = None, **shifts_kwargs: Whole
) -> Tensor:
    """`x` with elements moved along dims; those that leave at one end enter at the other.

    >>> gc.compile([], gc.roll(gc.constant([1, 2, 3, 4], "t"), t=1))()
    array([4, 1, 2, 3])
    """
    node = whole = single(x)
    wanted = by_dim(node, shifts, shifts_kwargs)
    for dim, given in wanted.items():
        size = node.type.size(dim)
        if isinstance(given, Base):
            node = take(wrap(node), sources(node, dim, given) % maximum(size, 1), dim).node
            continue
        behind = integer(given, f"dim {dim!r}", node) % maximum(size, 1)
        node = join([cut(node, dim, size - behind, behind), cut(node, dim, 0, size - behind)], dim)
    return wrap(keep_labels(node, whole, wanted))


@parameters(
    **MOVED,
    fill_value="A number or tensor, cast to the dtype of `x`. By default nan; with nan integers "
    "become floats: float32 for up to 16 bits, else float64. With a float of NumPy they take the "
    "common dtype.",
)
def shift(
    x: Operand,
    /,
    shifts: Mapping[str, Whole] | None = None,
    fill_value: Operand | None = None,
    **shifts_kwargs: Whole,
) -> Tensor:
    """`x` with elements moved along dims; one end drops elements, the other is filled.

    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], [gc.shift(x, t=1), gc.shift(x, t=-1, fill_value=0)])()
    [array([nan,  1.,  2.]), array([2, 3, 0])]
    """
    node = whole = single(x)
    wanted = by_dim(node, shifts, shifts_kwargs)
    if not wanted:
        return wrap(node)
    node, fill = with_fill(node, fill_value)
    for dim, given in wanted.items():
        size = node.type.size(dim)
        if isinstance(given, Base):
            source, dims = sources(node, dim, given), node.type.dims
            moved = take(wrap(node), source.clip(0, maximum(size - 1, 0)), dim)
            inside = (source >= 0) & (source < size)
            node = where(inside, moved, wrap(fill)).transpose(*dims).node
            continue
        distance = integer(given, f"dim {dim!r}", node)
        before, after = (minimum(maximum(p, 0), size) for p in (distance, -distance))
        kept = cut(node, dim, after, size - before - after)
        ends = [constant_end(node, dim, end, fill) for end in (before, after)]
        node = join([ends[0], kept, ends[1]], dim)
    return wrap(keep_labels(node, whole, wanted))


def sources(x: Node, dim: str, distance: Base) -> Tensor:
    """The positions along `dim` that elements come from, where a value says how far they move."""
    if distance.dims or distance.dtype.kind not in "iu":
        cure = "give an integer, a size, or an integer tensor without dims"
        reason = f"{distance.node.type} for dim {dim!r} is not one integer"
        raise type_refusal(reason, x, distance, cure=cure)
    return arange(x.type.size(dim), dim=dim) - astype(wrap(distance.node), INT)
