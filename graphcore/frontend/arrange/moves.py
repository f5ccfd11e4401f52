"""Elements moved along dims."""

from __future__ import annotations

from collections.abc import Mapping

from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.documents import parameters
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.index.slices import amounts, cut
from graphcore.frontend.pointwise.casting import with_fill
from graphcore.frontend.shape.dims import constant_end, join
from graphcore.ir.sizes import Size, maximum, minimum

__all__ = [
    "roll",
    "shift",
]


MOVED = {
    "x": "A tensor.",
    "shifts": "By how many positions to move along each dim, forwards if positive: integers or "
    "sizes, as a dict or as keywords.",
}


@parameters(**MOVED)
def roll(x: Operand, /, shifts: Mapping[str, Size] | None = None, **shifts_kwargs: Size) -> Tensor:
    """`x` with elements moved along dims; those that leave at one end enter at the other.

    >>> import graphcore as gc
    >>> gc.compile([], gc.roll(gc.constant([1, 2, 3, 4], "t"), t=1))()
    array([4, 1, 2, 3])
    """
    node = single("roll", x)
    for dim, distance in amounts("roll", node, shifts, shifts_kwargs).items():
        size = node.type.size(dim)
        behind = distance % maximum(size, 1)
        node = join([cut(node, dim, size - behind, behind), cut(node, dim, 0, size - behind)], dim)
    return wrap(node)


@parameters(
    **MOVED,
    fill_value="A number or tensor, cast to the dtype of `x`. By default nan; integers then become "
    "floats, float32 those of up to 16 bits, float64 all others.",
)
def shift(
    x: Operand,
    /,
    shifts: Mapping[str, Size] | None = None,
    fill_value: Operand | None = None,
    **shifts_kwargs: Size,
) -> Tensor:
    """`x` with elements moved along dims; one end drops elements, the other is filled.

    >>> import graphcore as gc
    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], [gc.shift(x, t=1), gc.shift(x, t=-1, fill_value=0)])()
    [array([nan,  1.,  2.]), array([2, 3, 0])]
    """
    node = single("shift", x)
    wanted = amounts("shift", node, shifts, shifts_kwargs)
    if not wanted:
        return wrap(node)
    node, fill = with_fill("shift", node, fill_value)
    for dim, distance in wanted.items():
        size = node.type.size(dim)
        before, after = (minimum(maximum(p, 0), size) for p in (distance, -distance))
        kept = cut(node, dim, after, size - before - after)
        ends = [constant_end(node, dim, end, fill) for end in (before, after)]
        node = join([ends[0], kept, ends[1]], dim)
    return wrap(node)
