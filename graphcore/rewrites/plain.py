"""Helpers that build plain nodes, for lowering, derivative rules and simplification."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphcore.ir import DType, Literal, Node, Shape, Size
from graphcore.ir.sizes import lower_bound, maximum, minimum
from graphcore.ops import elementwise, leaf, tensor

Axes = tuple[int, ...]


def full(value: complex, dtype: DType, shape: Shape = ()) -> Node:
    """`value` in every place of `shape`."""
    return leaf.full(value=Literal(value, dtype), shape=shape, dims=None)


def refill(node: Node, shape: Shape) -> Node:
    """The repeated value of `node` in another shape."""
    return leaf.full(value=node.attrs["value"], shape=shape, dims=None)


def number(size: Size, dtype: DType, shape: Shape = ()) -> Node:
    """A size as a number in every place of `shape`."""
    if isinstance(size, int):
        return full(size, dtype, shape)
    return expand_to(leaf.extent(size=size, dtype=dtype, dims=None), shape)


def times(x: Node, places: Size) -> Node:
    """The sum of `x` over as many places: x * places, and 0 for none even if x is infinite."""
    return unless_empty(places, x) * number(places, x.type.dtype, x.type.shape)


def unless_empty(places: Size, x: Node) -> Node:
    """`x`, and 0 if there are no places."""
    least = lower_bound(places)
    if least is not None and least >= 1:
        return x
    return where(equals(number(places, x.type.dtype, x.type.shape), 0), 0, x)


def cast(x: Node, dtype: DType) -> Node:
    """`x` in `dtype`."""
    return x if x.type.dtype == dtype else elementwise.cast(x, dtype=dtype)


def negate(x: Node) -> Node:
    """-x, which is the operand of an `x` that is negated already."""
    return x.inputs[0] if x.op is elementwise.negative else -x


def expand(x: Node, axes: Iterable[int], shape: Shape) -> Node:
    """`x` repeated along the new `axes` of a result of `shape`."""
    axes = tuple(sorted(axes))
    if not axes:
        return x
    if x.op is leaf.full:
        return refill(x, shape)
    return tensor.expand(x, axes=axes, sizes=tuple(shape[axis] for axis in axes))


def other_axes(axes: Axes, rank: int) -> list[int]:
    """The axes of a value that are not among `axes`: of a repeated one those it had before."""
    return [axis for axis in range(rank) if axis not in axes]


def expand_to(scalar: Node, shape: Shape) -> Node:
    """A scalar in every place of `shape`."""
    return expand(scalar, range(len(shape)), shape)


def unsum(x: Node, axes: Axes, like: Node) -> Node:
    """`x`, from which `axes` were summed away, back in the shape of `like`."""
    return expand(x, axes, like.type.shape).label(like.labels)


def transpose(x: Node, perm: Sequence[int]) -> Node:
    """Axes in another order, if it is another; two orders are one."""
    perm = tuple(perm)
    if perm == tuple(range(len(perm))):
        return x
    if x.op is tensor.transpose:
        return transpose(x.inputs[0], [x.attrs["perm"][axis] for axis in perm])
    return tensor.transpose(x, perm=perm)


def reshape(x: Node, shape: Shape) -> Node:
    """The same values in another shape, if it is another."""
    return x if x.type.shape == shape else tensor.reshape(x, shape=shape)


def sum_over(x: Node, axes: Iterable[int]) -> Node:
    """The sum over `axes`, if there are any."""
    axes = tuple(axes)
    return tensor.sum_(x, axes=axes) if axes else x


def take_range(x: Node, axis: int, start: Size, size: Size, step: int = 1) -> Node:
    """`size` places along one axis."""
    rank = x.type.ndim
    starts: list[Size] = [0] * rank
    sizes, steps = list(x.type.shape), [1] * rank
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return tensor.slice_(x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


def flip(x: Node, axis: int) -> Node:
    """`x` backwards along `axis`."""
    size = x.type.shape[axis]
    return take_range(x, axis, size - 1, size, -1)


def shift(x: Node, axis: int, fill: complex) -> Node:
    """Every value one place later along `axis`; `fill` comes first and the last one drops out."""
    size = x.type.shape[axis]
    shape = list(x.type.shape)
    shape[axis] = minimum(size, 1)
    first = full(fill, x.type.dtype, tuple(shape))
    moved = tensor.concat(first, take_range(x, axis, 0, maximum(size - 1, 0)), axis=axis)
    return moved if moved.type == x.type else reshape(moved, x.type.shape)


def where(condition: Node, x: Node | complex, y: Node | complex) -> Node:
    """x where the condition holds, else y; one of them may be a number."""
    like = x if isinstance(x, Node) else y
    assert isinstance(like, Node)
    x, y = (
        v if isinstance(v, Node) else full(v, like.type.dtype, condition.type.shape) for v in (x, y)
    )
    return elementwise.where(condition, x, y)


def equals(x: Node, value: complex) -> Node:
    """Where `x` is `value`."""
    return elementwise.equal(x, full(value, x.type.dtype, x.type.shape))


def nonzero(x: Node) -> Node:
    """`x` with 1 in place of 0: a divisor that is safe where the quotient does not count."""
    return where(equals(x, 0), 1, x)
