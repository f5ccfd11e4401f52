"""Differences, slopes and integrals along a dim."""

from __future__ import annotations

from graphcore.frontend.arrange.moves import shift
from graphcore.frontend.control.loops import fori_loop
from graphcore.frontend.core.arguments import dim_of, whole
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.costs import MOST_WRITTEN_OUT
from graphcore.frontend.core.lift import Operand, common, single
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.index.slices import cut
from graphcore.frontend.pointwise.casting import as_float
from graphcore.frontend.reduce.reductions import sum
from graphcore.frontend.reduce.running import after, cumsum
from graphcore.frontend.shape.dims import broadcast_to, join, keep_labels
from graphcore.ir import Node, Op
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import maximum, minimum
from graphcore.ops import elementwise

__all__ = [
    "cumulative_trapezoid",
    "diff",
    "gradient",
    "trapezoid",
]


@parameters(
    dim="The dim.",
    n="How often the differences are taken.",
)
def diff(x: Operand, dim: str | None = None, n: int = 1) -> Tensor:
    """Each element minus the one before it along `dim`, which is one shorter; repeated `n` times.

    For bool: whether an element differs from the one before, as in NumPy.

    >>> x = gc.constant([1, 2, 4, 7], "t")
    >>> gc.compile([], [gc.diff(x, "t"), gc.diff(x, "t", n=2)])()
    [array([1, 2, 3]), array([1, 1])]
    """
    node = single(x)
    times = whole(n, "n", node)
    name = dim_of(node, dim)
    less = elementwise.not_equal if node.type.dtype.kind == "b" else elementwise.subtract
    given, size = node, node.type.size(name)
    if times > MOST_WRITTEN_OUT:
        node = diff_in_loop(wrap(node), name, times, less).node
    else:
        for _ in range(times):
            node = less(*pairs(node, name))
    return wrap(keep_labels(node, cut(given, name, times, maximum(size - times, 0)), (name,)))


def diff_in_loop(x: Tensor, dim: str, times: int, less: Op) -> Tensor:
    """`diff` as a loop whose steps keep the size; each invalidates one more element at the end."""
    size = x.sizes[dim]

    def step(_: Tensor, y: Tensor) -> Tensor:
        return wrap(less(shift(y, {dim: -1}, fill_value=0).node, y.node))

    last = fori_loop(0, minimum(times, size), step, x)
    return wrap(cut(last.node, dim, 0, maximum(size - times, 0)))


def pairs(x: Node, dim: str, apart: int = 1) -> tuple[Node, Node]:
    """Elements `apart` positions apart: the later ones, and the earlier ones."""
    size = maximum(x.type.size(dim) - apart, 0)
    return cut(x, dim, apart, size), cut(x, dim, 0, size)


@parameters(
    y="Values at points along `dim`; the integral over fewer than two points is 0.",
    x="The points: a tensor with `dim`.",
    dx="The distance between points, if there is no `x`.",
    dim="The dim.",
)
def trapezoid(
    y: Operand, x: Operand | None = None, dx: Operand = 1.0, *, dim: str | None = None
) -> Tensor:
    """Integral of `y` along `dim` by the trapezoidal rule.

    >>> gc.compile([], gc.trapezoid(gc.constant([0.0, 1.0, 4.0], "t"), dx=0.5, dim="t"))()
    array(1.5)
    """
    name = dim_of(single(y), dim)
    return sum(trapezoids(y, x, dx, name), name)


@parameters(
    y="Values at points along `dim`.",
    x="The points: a tensor with `dim`.",
    dx="The distance between points, if there is no `x`.",
    dim="The dim.",
    initial="0 puts the integral up to the first point first; with None, `dim` is one shorter.",
)
def cumulative_trapezoid(
    y: Operand,
    x: Operand | None = None,
    dx: Operand = 1.0,
    *,
    dim: str | None = None,
    initial: float | None = None,
) -> Tensor:
    """Integral of `y` from the first point to each later one, by the trapezoidal rule.

    As `scipy.integrate.cumulative_trapezoid`.

    >>> y = gc.constant([0.0, 1.0, 4.0], "t")
    >>> gc.compile([], gc.cumulative_trapezoid(y, dx=0.5, dim="t"))()
    array([0.25, 1.5 ])
    """
    name = dim_of(single(y), dim)
    found = cumsum(trapezoids(y, x, dx, name), name)
    if initial is None:
        return found
    if initial != 0:
        raise refusal(f"initial={initial}", cure="use 0 or None")
    whole, given = after(0, found, name).node, single(y)
    return wrap(keep_labels(whole, given, [name] if name in given.type.dims else []))


def trapezoids(y: Operand, x: Operand | None, dx: Operand, dim: str) -> Tensor:
    """The area of each trapezoid: (y[t] + y[t+1]) (x[t+1] - x[t]) / 2"""
    later, earlier = neighbours(y, dim)
    if x is not None and not (isinstance(dx, float) and dx == 1.0):
        cure = "leave dx out: x says where the points are"
        raise refusal("takes x or dx, not both", later, cure=cure)
    width = dx if x is None else step(x, dim)
    return wrap(keep_labels(((later + earlier) * width / 2).node, later.node, (dim,)))


def neighbours(x: Operand, dim: str, apart: int = 1) -> tuple[Tensor, Tensor]:
    """Elements `apart` positions apart, as floats: the later ones, and the earlier ones."""
    value = as_float(wrap(single(x)))
    later, earlier = pairs(value.node, dim_of(value.node, dim), apart)
    return wrap(later), wrap(earlier)


def step(x: Operand, dim: str, apart: int = 1) -> Tensor:
    """Each element minus the one `apart` positions before."""
    later, earlier = neighbours(x, dim, apart)
    return later - earlier


@parameters(
    x="Values at points along `dim`, at least `edge_order + 1` of them. Integers become float64.",
    dim="The dim.",
    spacing="The distance between points; or the points, a tensor with `dim`.",
    edge_order="The order of accuracy at the ends: 1 or 2.",
)
def gradient(
    x: Operand, dim: str | None = None, spacing: Operand = 1.0, edge_order: int = 1
) -> Tensor:
    """Slope of `x` along `dim`, of second-order accuracy in the interior.

    In the interior, central differences, for uneven spacing weighted by the opposite distances; at
    the ends, one-sided differences. As `numpy.gradient`.

    GraphError if `dim` has fewer than `edge_order + 1` points.

    >>> x = gc.constant([1, 2, 4, 7], "t")
    >>> gc.compile([], gc.gradient(x, "t"))()
    array([1. , 1.5, 2.5, 3. ])
    """
    value, points = (as_float(wrap(node)) for node in common(x, spacing))
    name = dim_of(value.node, dim)
    edge_order = whole(edge_order, "edge_order", value)
    if edge_order not in (1, 2):
        raise refusal(f"edge_order={edge_order}", value, cure="use 1 or 2")
    size = value.sizes[name]
    if isinstance(size, int) and size <= edge_order:
        reason = f"dim {name!r} has size {size}, edge_order {edge_order} needs {edge_order + 1}"
        cure = "give more points, or edge_order=1" if edge_order == 2 else "give more points"
        raise refusal(reason, value, cure=cure)
    even = name not in points.dims
    gap = points if even else step(points, name)
    slope = step(value, name) / gap
    if even:
        inner = step(value, name, 2) / (2 * gap)
    else:
        (right, left), (behind, before) = (neighbours(v, name) for v in (slope, gap))
        inner = (before * right + behind * left) / (before + behind)
    first, last = (end_slope(slope, gap, name, at, edge_order) for at in (0, -1))
    # Sizes known at the call make this exact: the ends are there, so `size` is at least two.
    found = cut(join([first, inner.node, last], name), name, 0, size)
    return wrap(keep_labels(found, value.node, (name,)))


def end_slope(slope: Tensor, gap: Tensor, dim: str, at: int, order: int) -> Node:
    """The slope at one end, of size 1: that of the last gap, or extrapolated from the last two."""
    near = isel(slope, {dim: at})
    if order == 2:
        beyond = 1 - 2 * (at < 0)
        far = isel(slope, {dim: at + beyond})
        share: Operand = 0.5
        if dim in gap.dims:
            a, b = isel(gap, {dim: at}), isel(gap, {dim: at + beyond})
            share = a / (a + b)
        near = near + (near - far) * share
    return broadcast_to(near.node, slope.sizes | {dim: 1}).node
