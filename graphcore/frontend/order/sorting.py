"""Values in order along a dim. nan counts as the largest of all; ties keep the order they have."""

from __future__ import annotations

import math
from typing import NamedTuple

from graphcore.frontend.core.arguments import dim_of, integer, require_order, size_of
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.index.indexing import take_along
from graphcore.frontend.index.slices import flip
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.pointwise.missing import isnull, notnull
from graphcore.frontend.reduce.masking import as_float
from graphcore.frontend.shape.dims import transpose
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, upper_bound
from graphcore.ops import named

from .searching import searchsorted

__all__ = [
    "argsort",
    "rank",
    "sort",
    "top_k",
]


class TopK(NamedTuple):
    """The largest values and their positions, the largest first."""

    values: Tensor
    indices: Tensor


def order(x: Node, dim: str, size: Size, descending: bool) -> Tensor:
    """The positions of the first `size` values in order."""
    return wrap(named.argsort(x, dim=dim, size=size, descending=descending))


def argsort(x: Operand, dim: str, descending: bool = False) -> Tensor:
    """The positions that bring `x` in order along `dim`, in int64.

    Ties keep the order they have. nan counts as the largest: it comes last, or first if
    `descending`, as in JAX.

    >>> import graphcore as gc
    >>> gc.compile([], gc.argsort(gc.constant([3.0, 1.0, 2.0], "t"), dim="t"))()
    array([1, 2, 0])
    """
    node = single("argsort", x)
    name = dim_of("argsort", node, dim)
    return order(node, name, node.type.size(name), descending)


def sort(x: Operand, dim: str, descending: bool = False) -> Tensor:
    """`x` in order along `dim`; nan counts as the largest.

    A derivative goes to where each value came from; ties came in the order they have.

    >>> import graphcore as gc
    >>> gc.compile([], gc.sort(gc.constant([3.0, 1.0, 2.0], "t"), dim="t", descending=True))()
    array([3., 2., 1.])
    """
    node = single("sort", x)
    name = dim_of("sort", node, dim)
    if descending:
        return flip(sort(flip(wrap(node), name), name), name)
    return wrap(named.sort(node, dim=name))


def top_k(x: Operand, k: int, dim: str) -> TopK:
    """The `k` largest values along `dim` and their positions, the largest first.

    Of ties the first come first; nan counts as the largest. The dim keeps its name and has size
    `k`. More than there are is refused.

    >>> import graphcore as gc
    >>> top = gc.top_k(gc.constant([3.0, 1.0, 2.0], "t"), 2, dim="t")
    >>> gc.compile([], list(top))()
    [array([3., 2.]), array([0, 2])]
    """
    node = single("top_k", x)
    name = dim_of("top_k", node, dim)
    size = size_of("top_k", name, integer("top_k", k, "k", node))
    if (most := upper_bound(node.type.size(name) - size)) is not None and most < 0:
        cure = "ask for as many as there are, or fewer"
        raise refusal("top_k", f"dim {name!r} has no {size} places", node, cure=cure)
    indices = order(node, name, size, descending=True)
    return TopK(take_along(wrap(node), indices, name), indices)


def rank(x: Operand, dim: str, pct: bool = False) -> Tensor:
    """The places of values in their order along `dim`, from 1; ties share the mean of theirs.

    The result is a float; nan has no rank, which is nan. With `pct` ranks are divided by how many
    values have one. Ranks are constant but for jumps: their derivative is 0.

    >>> import graphcore as gc
    >>> gc.compile([], gc.rank(gc.constant([3.0, 1.0, 3.0], "t"), dim="t"))()
    array([2.5, 1. , 2.5])
    """
    value = wrap(single("rank", x))
    require_order("rank", value)
    ordered = sort(value, dim)
    below, up_to = (searchsorted(ordered, ordered, dim, side) for side in ("left", "right"))
    ranks = astype(put_back(below + up_to + 1, value, dim), as_float(value).dtype) / 2
    if pct:
        ranks = ranks / astype(notnull(value).sum(dim), ranks.dtype)
    return where(isnull(value), math.nan, ranks)


def put_back(y: Tensor, x: Tensor, dim: str) -> Tensor:
    """`y`, which goes with `x` sorted along `dim`, in the order that `x` has."""
    places = argsort(x, dim).node
    back = named.scatter(y.node, places, over=(dim,), dims=(dim,), sizes=(x.sizes[dim],))
    return transpose(wrap(back), *x.dims)
