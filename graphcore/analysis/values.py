"""Facts about values: known numbers, bounds, positions that differ."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from graphcore.ir import Graph, Node, Op, Size, Trait, unwrap
from graphcore.ir.axes import values
from graphcore.ops import autodiff, elementwise, leaf, tensor

from .dataflow import ASKED, STRUCTURE, Forward, Known


def is_zero(x: Node) -> bool:
    """Whether every element of `x` is known to be 0; the sign of zero does not matter."""
    return x.op is leaf.full and not x.attrs["value"].array.any()


def is_positive_zero(x: Node) -> bool:
    """Whether every element of `x` is known to be 0 and not -0: x + 0 would turn -0 into 0."""
    return x.op is leaf.full and x.attrs["value"].is_(0)


def is_one(x: Node) -> bool:
    """Whether every element of `x` is known to be 1, as the seed of a gradient is."""
    return x.op is leaf.full and x.attrs["value"].is_(1)


def is_infinite(x: Node) -> bool:
    """Whether every element of `x` is known to be the same infinity."""
    return x.op is leaf.full and bool(np.isinf(x.attrs["value"].array))


def is_real(x: Node) -> bool:
    """Whether `x` is real floats."""
    return bool(x.type.dtype.kind == "f")


def is_part(x: Node) -> bool:
    """Whether every element of `x` is known to be from 0 to 1 or nan, as the power e^-|y| is."""
    if x.op is not elementwise.exp or not is_real(x):
        return False
    (power,) = x.inputs
    return power.op is elementwise.negative and power.inputs[0].op is elementwise.absolute


def is_finite(x: Node) -> bool:
    """Whether every element of `x` is known to be neither infinite nor nan."""
    return bound_of(x) < FINITE_BOUND


FINITE_BOUND = 1e30
"""A bound that is finite in every float dtype but half precision, whose range no user relies on."""


class Bounds(Forward[float]):
    """Numbers that no element is larger than in magnitude; infinite where it may be, or be nan.

    A carry that grows is not bounded, however little it grows.
    """

    subject = "bounds"
    unknown = weakest = np.inf

    def matters(self, graph: Graph) -> bool:
        """Rules ask what multiplies a cotangent, a term of a sum or a scale."""
        return not ASKING.isdisjoint(graph.ops())

    def join(self, node: Node, several: Sequence[float]) -> float:
        """The first, which is that of the start, if it bounds the others."""
        first, *others = several
        return first if max(others) <= first else np.inf

    def chosen(self, node: Node, index: float, several: Sequence[float]) -> float:
        """The largest of all branches."""
        return max(several)

    def reads(self, node: Node) -> Sequence[Node]:
        """Of most ops nothing is known, whatever their operands are."""
        return node.inputs if node.op in BOUNDED or node.op in STRUCTURE else ()

    def of_node(self, node: Node, given: Sequence[float], known: Known[float]) -> Sequence[float]:
        """The bound of each result; integers may overflow."""
        if Trait.KNOWN in node.op.traits:
            return (node.attrs["value"].largest,)
        if node.op not in BOUNDED or node.type.dtype.kind not in "fc":
            return (np.inf,) * len(values(node.type))
        pairs = zip(node.inputs, given, strict=True)
        is_cast = node.op is elementwise.cast
        own = [within(x, y) for x, y in pairs if is_cast or x.type.dtype.kind != "b"]
        return (BOUNDED[node.op](*own),)


def within(x: Node, bound: float) -> float:
    """The bound of `x`, which its dtype bounds as well."""
    kind = x.type.dtype.kind
    if kind in "iu":
        return min(bound, float(np.iinfo(x.type.dtype).max))
    return min(bound, 1.0) if kind == "b" else bound


def bound_of(x: Node) -> float:
    """No element of `x` is larger in magnitude; infinite where nothing is known, or nan may be."""
    return within(x, BOUNDS.facts(x)[0])


BOUNDED: dict[Op, Callable[..., float]] = {
    elementwise.add: operator.add,
    elementwise.subtract: operator.add,
    elementwise.multiply: lambda a, b: a * b if a < np.inf and b < np.inf else np.inf,
    elementwise.negative: float,
    elementwise.cast: float,
    elementwise.where: max,
    tensor.expand: float,
    tensor.reshape: float,
    tensor.transpose: float,
}
"""The bound of a result, computed from the bounds of its operands, conditions excepted."""

ASKING = autodiff.LAZY | {tensor.multiply_no_nan}
"""Ops whose rules ask for bounds."""

BOUNDS = Bounds()
ASKED.append(BOUNDS)


def is_normal(value: np.ndarray) -> bool:
    """Whether a number is finite and has all its digits: a product with it is rounded once."""
    return bool(np.isfinite(value)) and bool(abs(value) >= np.finfo(value.dtype).tiny)


def is_power_of_two(value: np.ndarray) -> bool:
    """Whether products with a number are exact, as long as they are normal."""
    return bool(abs(np.frexp(value)[0]) == 0.5)


def are_distinct(indices: Sequence[Node]) -> bool:
    """Whether no two elements of `indices`, the positions of a gather, name the same position.

    That holds if each axis of the indices has an index of its own that differs along it: an iota,
    or a constant without repeated positions; for one axis it may be an argsort along it.
    """
    counted = set()
    for index in indices:
        source = unwrap(index, tensor.expand)
        if source.op is leaf.iota or (
            source.op is leaf.constant and source.type.ndim == 1 and source.attrs["value"].distinct
        ):
            axes = index.attrs["axes"] if index is not source else ()
            counted |= {axis for axis in range(index.type.ndim) if axis not in axes}
    left = set(range(indices[0].type.ndim)) - counted
    return not left or any(
        index.op is tensor.argsort and left == {index.attrs["axis"]} for index in indices
    )


def is_inside(index: Node, size: Size) -> bool:
    """Whether positions are 0 to size - 1 by how they are computed, where the size is not 0."""
    source = unwrap(index, tensor.expand)
    if source.op is elementwise.remainder:
        divisor = unwrap(source.inputs[1], tensor.expand)
        return divisor.op is leaf.extent and divisor.attrs["size"] is size
    return source.op is leaf.iota and source.attrs["size"] is size


def counts_along(index: Node) -> int | None:
    """The axis along which positions are 0, 1, 2, ..., and the same along all others."""
    source = unwrap(index, tensor.expand)
    if source.op is not leaf.iota:
        return None
    new = index.attrs["axes"] if index is not source else ()
    (along,) = [axis for axis in range(index.type.ndim) if axis not in new]
    return along
