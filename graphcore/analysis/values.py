"""Facts about values: known numbers, finite values, and zeros that stand for values left out."""

from __future__ import annotations

import operator
from collections.abc import Callable, MutableMapping, Sequence
from functools import cache
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from graphcore.ir.dtypes import differentiable
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.types import TupleType
from graphcore.ops import autodiff, control, elementwise, leaf, tensor

# ---- numbers known now


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


def is_finite(x: Node) -> bool:
    """Whether every element of `x` is known to be neither infinite nor nan."""
    return bound(x) < LARGE


LARGE = 1e30
"""A bound that is finite in every float dtype but half precision, whose range no user relies on."""


def bound(x: Node, depth: int = 8) -> float:
    """No element of `x` is larger in magnitude; infinite where nothing is known, or nan may be."""
    kind = x.type.dtype.kind
    if x.op is leaf.full or x.op is leaf.constant:
        array = x.attrs["value"].array
        return float(np.abs(array).max(initial=0)) if np.isfinite(array).all() else np.inf
    if kind == "b":
        return 1.0
    if kind in "iu":
        return float(np.iinfo(x.type.dtype).max)
    if depth and x.op in BOUNDED:
        operands = [y for y in x.inputs if y.type.dtype.kind != "b" or x.op is elementwise.cast]
        return BOUNDED[x.op](*[bound(y, depth - 1) for y in operands])
    return np.inf


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
"""The bound of a result by the bounds of its operands, those of conditions apart."""


def is_normal(value: np.ndarray) -> bool:
    """Whether a number is finite and has all its digits: a product with it is rounded once."""
    return bool(np.isfinite(value)) and bool(abs(value) >= np.finfo(value.dtype).tiny)


def is_power_of_two(value: np.ndarray) -> bool:
    """Whether products with a number are exact, as long as they are normal."""
    return bool(abs(np.frexp(value)[0]) == 0.5)


def are_distinct(indices: Sequence[Node]) -> bool:
    """Whether no two elements of `indices`, the positions of a gather, name the same position.

    They do not where each axis of the indices is counted by an index of its own: by an iota, or by
    a constant without repeated positions; one axis may be counted by an argsort along it.
    """
    counted = set()
    for index in indices:
        source = index.inputs[0] if index.op is tensor.expand else index
        if source.op is leaf.iota or (
            source.op is leaf.constant and source.type.ndim == 1 and source.attrs["value"].distinct
        ):
            axes = index.attrs["axes"] if index is not source else ()
            counted |= {axis for axis in range(index.type.ndim) if axis not in axes}
    left = set(range(indices[0].type.ndim)) - counted
    return not left or any(
        index.op is tensor.argsort and left == {index.attrs["axis"]} for index in indices
    )


# ---- zeros that stand for values left out

Omits: TypeAlias = tuple[bool, ...]
"""For each value of a node, whether it may hold zeros that stand for values left out."""
Known: TypeAlias = MutableMapping[Node, Omits]

MAKERS = frozenset({tensor.embed, tensor.scatter, tensor.overlap_add, tensor.wins})
"""Ops whose results are 0 wherever no element of an operand belongs."""
MIXING = frozenset({tensor.einsum, tensor.matmul, tensor.matvec, tensor.vecdot})
"""Products that are summed: what is left out and what is not come together in each result."""

_known: WeakKeyDictionary[Node, Omits] = WeakKeyDictionary()


def may_omit(x: Node, known: Known = _known) -> bool:
    """Whether `x`, a cotangent or tangent, may hold zeros that stand for values left out.

    Where a program leaves a value out (by a slice, a choice, a maximum), the cotangent of that
    value is exactly 0 and must stay 0 even where it meets an infinite or undefined derivative.
    Such zeros come from the few ops that make them. A product passes on those of each factor, a sum
    only where all terms have them, and any other op is expected to pass them on.

    `known` has what is known of the params of a graph. A lazy derivative does not know what it will
    be given: it has a barrier over such cotangents, which are expected to have such zeros.
    """
    stack = [x]
    while x not in known:
        node = stack[-1]
        if waiting := [y for y in asked(node) if y not in known]:
            stack.extend(waiting)
        else:
            known[stack.pop()] = found(node, known)
    return known[x][0]


def asked(node: Node) -> Sequence[Node]:
    """The operands that decide about `node`."""
    op = node.op
    if op in MAKERS or op in MIXING or op.dialect == "linalg":
        return ()
    if op is leaf.project or op.dialect == "control":
        return node.inputs
    if op is tensor.recurrence:
        return node.inputs[1:]  # a factor of 0 forgets what was before, but the term is left
    return [x for x in node.inputs if differentiable(x.type.dtype)]


def found(node: Node, known: Known) -> Omits:
    """What holds for each value of `node`, once it is known for the operands that decide."""
    op = node.op
    if op is leaf.project:
        return (known[node.inputs[0]][node.attrs["index"]],)
    deciding = set(asked(node))
    given = [x in deciding and known[x][0] for x in node.inputs]
    if op.dialect == "control":
        return results_omit(node, given)
    if op is leaf.tuple_:
        return tuple(given)
    if op in elementwise.UFUNC:
        alone, together = zeros_of(op, len(given))
        return (any(given[i] for i in alone) or (together and all(given)),)
    made = op in MAKERS or op in LAZY or is_zero(node) or is_unknown_cotangent(node)
    return (made or any(given),) * (len(node.type.items) if isinstance(node.type, TupleType) else 1)


LAZY = frozenset({autodiff.pullback, autodiff.pushforward})


def is_unknown_cotangent(node: Node) -> bool:
    """Whether `node` is a cotangent or tangent that its lazy derivative is given from outside."""
    return node.op is autodiff.barrier and node.inputs[0].op is leaf.input_


@cache
def zeros_of(op: Op, operands: int) -> tuple[Sequence[int], bool]:
    """Which operands of an elementwise op make it 0 alone, and whether all of them together do.

    A product is 0 where one factor is, a sum where all terms are, and an exponential nowhere. That
    is computed, so no op can be forgotten; a special function is expected to be 0 where any is.
    """
    ufunc = elementwise.UFUNC[op]
    if isinstance(ufunc, str) or "d" * operands not in [t.split("->")[0] for t in ufunc.types]:
        return range(operands), True
    with np.errstate(all="ignore"):
        ones = [0.7] * operands
        alone = [i for i in range(operands) if ufunc(*ones[:i], 0.0, *ones[i + 1 :]) == 0]
        return alone, bool(ufunc(*[0.0] * operands) == 0)


def results_omit(node: Node, given: Sequence[bool]) -> Omits:
    """What holds for the results of a loop, a branch or a call."""
    attrs = node.attrs
    if node.op is control.scan or node.op is control.while_loop:
        return outputs_omit(attrs["body"], params_omit(node, given))
    if node.op is control.switch:
        columns = [outputs_omit(branch, given[1:]) for branch in attrs["branches"]]
        return tuple(map(any, zip(*columns, strict=True)))
    return outputs_omit(attrs["body"], given)


def outputs_omit(graph: Graph, given: Sequence[bool]) -> Omits:
    """Which outputs of a graph may hold such zeros, if its params may as `given`."""
    known = known_inside(graph, given)
    return tuple(may_omit(y, known) for y in graph.outputs)


def known_inside(graph: Graph, given: Sequence[bool]) -> Known:
    """What holds for the params of a graph, to be passed to `may_omit` for what is inside."""
    return {param: (omits,) for param, omits in zip(graph.params, given, strict=True)}


def params_omit(node: Node, given: Sequence[bool]) -> list[bool]:
    """Which params of the body of a node of control flow may hold such zeros.

    A carry of a loop holds them if its start does, or what a step makes of it.
    """
    params = list(given[1:] if node.op is control.switch else given)
    n = node.attrs.get("carries", 0)
    while n:
        made = outputs_omit(node.attrs["body"], params)
        joined = [a or b for a, b in zip(params[:n], made[:n], strict=True)]
        if joined == params[:n]:
            break
        params[:n] = joined
    return params
