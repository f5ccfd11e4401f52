"""Sorting along a dim: nan counts as the largest, and ties keep their order."""

from __future__ import annotations

import math
from typing import NamedTuple

from graphcore.frontend.core.arguments import Whole, dim_of, integer, require_order, size_of
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.index.indexing import take_along
from graphcore.frontend.index.slices import flip
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.pointwise.missing import isnull, notnull
from graphcore.frontend.shape.dims import keep_labels, transpose
from graphcore.ir import Node, Size
from graphcore.ir.help_text import fields, parameters
from graphcore.ir.sizes import upper_bound
from graphcore.ops import named

from .searching import searchsorted

__all__ = [
    "argsort",
    "rank",
    "sort",
    "top_k",
]


@fields
class TopK(NamedTuple):
    """The largest elements and their positions, in descending order."""

    values: Tensor
    indices: Tensor


def order(x: Node, dim: str, size: Size, descending: bool) -> Tensor:
    """The positions of the first `size` elements in sorted order."""
    return wrap(named.argsort(x, dim=dim, size=size, descending=descending))


@parameters(
    dim="The dim to sort along.",
    descending="Whether the largest comes first.",
)
def argsort(x: Operand, dim: str | None = None, descending: bool = False) -> Tensor:
    """The positions that sort `x` along `dim`, in int64.

    Ties keep their order. nan counts as the largest: it comes last, or first if `descending`, as in
    JAX.

    >>> gc.compile([], gc.argsort(gc.constant([3.0, 1.0, 2.0], "t"), dim="t"))()
    array([1, 2, 0])
    """
    node = single(x)
    name = dim_of(node, dim)
    return order(node, name, node.type.size(name), descending)


@parameters(
    dim="The dim to sort along.",
    descending="Whether the largest comes first.",
)
def sort(x: Operand, dim: str | None = None, descending: bool = False) -> Tensor:
    """`x` sorted along `dim`; nan counts as the largest.

    The derivative goes to where each element came from; ties keep their order.

    >>> gc.compile([], gc.sort(gc.constant([3.0, 1.0, 2.0], "t"), dim="t", descending=True))()
    array([3., 2., 1.])
    """
    node = single(x)
    name = dim_of(node, dim)
    if descending:
        return flip(sort(flip(wrap(node), name), name), name)
    return wrap(named.sort(node, dim=name))


@parameters(
    k="The number of elements: an integer or a size.",
    dim="The dim, which keeps its name and gets size `k`.",
)
def top_k(x: Operand, k: Whole, dim: str | None = None) -> TopK:
    """The `k` largest elements along `dim` and their positions, in descending order.

    Of tied elements the first come first; nan counts as the largest.

    GraphError if `k` is larger than the size of `dim`.

    >>> top = gc.top_k(gc.constant([3.0, 1.0, 2.0], "t"), 2, dim="t")
    >>> gc.compile([], list(top))()
    [array([3., 2.]), array([0, 2])]
    """
    node = single(x)
    name = dim_of(node, dim)
    size = size_of(name, integer(k, "k", node))
    if (most := upper_bound(node.type.size(name) - size)) is not None and most < 0:
        cure = "use a k up to the size of the dim"
        raise refusal(f"dim {name!r} has fewer than {size} elements", node, cure=cure)
    indices = order(node, name, size, descending=True)
    return TopK(take_along(wrap(node), indices, name), indices)


@parameters(
    dim="The dim to rank along.",
    pct="Whether ranks are divided by the number of elements that have one.",
)
def rank(x: Operand, dim: str | None = None, pct: bool = False) -> Tensor:
    """The ranks of elements along `dim`, from 1; tied elements share the mean of their ranks.

    The result is a float; the rank of nan is nan. Ranks are piecewise constant: their derivative is
    0.

    >>> gc.compile([], gc.rank(gc.constant([3.0, 1.0, 3.0], "t"), dim="t"))()
    array([2.5, 1. , 2.5])
    """
    value = wrap(single(x))
    require_order(value)
    dim = dim_of(value.node, dim)
    ordered = sort(value, dim)
    below, up_to = (searchsorted(ordered, ordered, dim, side) for side in ("left", "right"))
    ranks = astype(put_back(below + up_to + 1, value, dim), as_float(value).dtype) / 2
    if pct:
        ranks = ranks / astype(notnull(value).sum(dim), ranks.dtype)
    ranks = where(isnull(value), math.nan, ranks)
    return wrap(keep_labels(ranks.node, value.node, (dim,)))


def put_back(y: Tensor, x: Tensor, dim: str) -> Tensor:
    """`y`, computed from `x` sorted along `dim`, in the original order of `x`."""
    positions = argsort(x, dim).node
    back = named.scatter(y.node, positions, over=(dim,), dims=(dim,), sizes=(x.sizes[dim],))
    return transpose(wrap(back), *x.dims)
