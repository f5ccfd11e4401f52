"""Carries of loops that start at zero and stay there, as cotangents do that no result depends on.

It is assumed of all that start at zero, and given up for those that a step changes, until no step
changes any of the rest: the greatest fixed point of what holds before and after a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TypeAlias

from graphcore.analysis.values import is_finite, is_positive_zero, is_zero
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node, toposort
from graphcore.ir.op import Op, Trait
from graphcore.ir.trace import Rule
from graphcore.ir.transform import transform
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.ops.control import LOOPS, Loop

from .view import replaced


class Known(IntEnum):
    """What is known of a value, the least first: x + 0 is x where this zero is positive."""

    NOTHING = 0
    ZERO = 1
    POSITIVE_ZERO = 2


Parts: TypeAlias = dict[Node, Sequence[Known]]
"""What is known of each of a node's values."""

LINEAR: frozenset[Op] = frozenset(
    {
        *(elementwise.cast, elementwise.real, elementwise.where, tensor.sum_, tensor.cumsum),
        *(tensor.concat, tensor.embed, tensor.gather, tensor.scatter, tensor.scatter_add),
    }
)
"""Ops, besides views, that give zeros for zeros; conditions and positions may be anything."""


def zeros_known(graph: Graph) -> Graph:
    """Carries that stay zero are zeros within their loops, and where their last values are read."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    zeros = {node: staying_zeros(Loop.of(node)) for node in graph.nodes() if node.op in LOOPS}

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op is leaf.project:
            start = zeros.get(node.inputs[0], {}).get(node.attrs["index"])
            return None if start is None else (zeros_known, start)
        if not zeros[node]:
            return None
        loop = Loop.of(Node(node.op, inputs, node.attrs))
        new = {loop.carries[i].param: start for i, start in zeros[node].items()}
        return zeros_known, replaced(loop, new, zeros_known).build()

    return transform(graph, visit, at={*LOOPS, leaf.project}) if any(zeros.values()) else graph


def staying_zeros(loop: Loop) -> dict[int, Node]:
    """The carries that start at zero and stay there: their indices, and the zeros."""
    starts = dict(enumerate(loop.operands.carries))
    given = [*map(classify, starts.values())]
    others = {x.param: [classify(x.value)] for x in (*loop.sequences, *loop.captured)}
    while Known.POSITIVE_ZERO in given:
        carried = {carry.param: [one] for carry, one in zip(loop.carries, given, strict=True)}
        made = [*map(min, given, within(loop.updates, others | carried))]
        if made == given:
            return {i: x for i, x in starts.items() if given[i] is Known.POSITIVE_ZERO}
        given = made
    return {}


def classify(x: Node) -> Known:
    """What is known of a value by itself."""
    if is_positive_zero(x):
        return Known.POSITIVE_ZERO
    return Known.ZERO if is_zero(x) else Known.NOTHING


def within(outputs: Iterable[Node], parts: Mapping[Node, Sequence[Known]]) -> list[Known]:
    """What is known of the outputs of a graph, given that of its params."""
    outputs, found = list(outputs), dict(parts)
    for node in toposort(outputs):
        if node not in found:
            found[node] = of_node(node, [found[x] for x in node.inputs])
    return [found[y][0] for y in outputs]


def of_node(node: Node, given: Sequence[Sequence[Known]]) -> Sequence[Known]:
    """What is known of the values of a node, given that of its inputs."""
    first = [parts[0] for parts in given]
    match node.op:
        case leaf.project:
            return [given[0][node.attrs["index"]]]
        case leaf.tuple_:
            return first
        case control.switch:
            ways = [within(way.outputs, params(way, first[1:])) for way in node.attrs["branches"]]
            return [min(column) for column in zip(*ways, strict=True)]
        case control.call:
            return within(node.attrs["body"].outputs, params(node.attrs["body"], first))
        case elementwise.add:
            return [max(first) if min(first) else Known.NOTHING]
        case elementwise.subtract:
            return [first[0] if min(first) else Known.NOTHING]
        case elementwise.negative:
            return [min(*first, Known.ZERO)]
        case tensor.absorb:
            return [min(first[0], Known.ZERO)]
        case elementwise.multiply:
            x, y = node.inputs
            zero = (first[0] and is_finite(y)) or (first[1] and is_finite(x))
            return [Known.ZERO if zero else Known.NOTHING]
    if node.op in LINEAR or Trait.VIEW in node.op.traits:
        floats = [one for x, one in zip(node.inputs, first) if x.type.dtype.kind in "fc"]
        return [min(floats, default=Known.NOTHING)]
    return [classify(node)] * len(getattr(node.type, "items", (node,)))


def params(graph: Graph, given: Sequence[Known]) -> Parts:
    """What is known of the params of a graph."""
    return {param: [one] for param, one in zip(graph.params, given, strict=True)}
