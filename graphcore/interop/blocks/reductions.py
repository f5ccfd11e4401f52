"""Reductions over the dims of blocks, as values that are combined from those of each block."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.analysis.instances import Mixed
from graphcore.ir import DType, Node, Op, full_like
from graphcore.ir.dtypes import HALF, SINGLE, float_for, real_of
from graphcore.ops import elementwise, named

from .axes import axes_in
from .cuts import Cuts, cast

COMBINED: dict[Op, str] = {
    named.sum_: "add",
    named.dot: "add",
    named.prod: "multiply",
    named.max_: "maximum",
    named.min_: "minimum",
    named.any_: "logical_or",
    named.all_: "logical_and",
    named.scatter: "add",
    named.scatter_prod: "multiply",
    named.scatter_max: "maximum",
    named.scatter_min: "minimum",
}
"""Reductions, and the ufunc that combines those of blocks."""


def reduced_dims(cuts: Cuts, node: Node) -> tuple[str, ...]:
    """The dims over which a node reduces, if blocks lie along any of them."""
    if node.op not in COMBINED and node.op not in AVERAGES:
        return ()
    over: tuple[str, ...] = node.attrs.get("over", node.attrs["dims"])
    return over if any(cuts.find(x).get(dim) for x in node.inputs for dim in over) else ()


def reduce(cuts: Cuts, node: Node, over: Sequence[str]) -> Node:
    """The value of a reduction over dims of blocks."""
    if node.op in AVERAGES:
        (x,) = node.inputs
        wide = single(cast(x, float_for(x.type.dtype)))
        return cast(AVERAGES[node.op](cuts, node, wide), node.type.dtype)
    found, gone = cuts.axes.reduced(node, [cuts.find(x) for x in node.inputs], over)
    left = axes_in(found)
    if not left.isdisjoint(gone):
        raise Mixed(node, gone[0], "has it along two dims")
    return cuts.cut(node, COMBINED[node.op], frozenset([*left, *gone]), found)


def single(x: Node) -> Node:
    """`x`, in float32 if it is float16, which sums and numbers of elements soon exceed."""
    return cast(x, SINGLE) if x.type.dtype == HALF else x


def total(cuts: Cuts, x: Node, over: tuple[str, ...]) -> Node:
    """The sum over dims of which some are of blocks."""
    return reduce(cuts, named.sum_(x, dims=over), over)


def mean(cuts: Cuts, node: Node, x: Node) -> Node:
    """sum(x) / count"""
    over = node.attrs["dims"]
    return elementwise.divide(total(cuts, x, over), number(cuts, x, over, 0, x.type.dtype))


def number(cuts: Cuts, x: Node, over: tuple[str, ...], ddof: int, dtype: DType) -> Node:
    """The count of elements less `ddof`, and not less than 0."""
    count = cuts.count(x, over)
    if ddof:
        less = elementwise.subtract(count, full_like(count, ddof))
        count = elementwise.maximum(less, full_like(count, 0))
    return cast(count, real_of(dtype))


def variance(cuts: Cuts, node: Node, x: Node) -> Node:
    """sum(|x - mean(x)|^2) / (count - ddof)"""
    over = node.attrs["dims"]
    away = elementwise.subtract(x, mean(cuts, node, x))
    if x.type.dtype.kind == "c":
        squared = elementwise.real(elementwise.multiply(away, elementwise.conjugate(away)))
    else:
        squared = elementwise.square(away)
    divisor = number(cuts, x, over, node.attrs["ddof"], x.type.dtype)
    return elementwise.divide(total(cuts, squared, over), divisor)


def deviation(cuts: Cuts, node: Node, x: Node) -> Node:
    """The square root of the variance, whose derivative at 0 is 0."""
    v = variance(cuts, node, x)
    zero = elementwise.equal(v, full_like(v, 0))
    root = elementwise.sqrt(elementwise.where(zero, full_like(v, 1), v))
    return elementwise.where(zero, full_like(v, 0), root)


AVERAGES: dict[Op, Callable[[Cuts, Node, Node], Node]] = {
    named.mean: mean,
    named.var: variance,
    named.std: deviation,
}
"""Reductions that are written with sums."""
