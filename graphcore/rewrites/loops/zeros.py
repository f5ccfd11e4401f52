"""Carries of loops that start at zero and stay there, as cotangents do that no result depends on.

It is assumed of all that start at zero, and given up for those that a step changes, until no step
changes any of the rest: the greatest fixed point of what holds before and after a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from graphcore.analysis.dataflow import STRUCTURE, Forward, Known
from graphcore.analysis.values import is_finite, is_positive_zero, is_zero
from graphcore.ir import Graph, Node, Op, Rule, Trait
from graphcore.ir.axes import values
from graphcore.ir.node import OPS
from graphcore.ir.transform import transform
from graphcore.ops import elementwise, leaf, tensor
from graphcore.ops.control import LOOPS, Loop

from .view import replaced


class Sign(IntEnum):
    """What is known of a value, the least first: x + 0 is x where this zero is positive."""

    NOTHING = 0
    ZERO = 1
    POSITIVE_ZERO = 2


LINEAR: frozenset[Op] = frozenset(
    {
        *(elementwise.cast, elementwise.real, elementwise.where, tensor.sum_, tensor.cumsum),
        *(tensor.concat, tensor.embed, tensor.gather, tensor.scatter, tensor.scatter_add),
        *[op for op in OPS.values() if Trait.VIEW in op.traits],
    }
)
"""Ops that give zeros for zeros; conditions and positions may be anything."""

FOLLOWED = frozenset(
    {
        *(elementwise.add, elementwise.subtract, elementwise.negative, elementwise.multiply),
        *(tensor.multiply_no_nan, *LINEAR, *STRUCTURE),
    }
)
"""Ops whose results may be zeros because operands are."""


def zeros_known(graph: Graph) -> Graph:
    """Carries that stay zero are zeros within their loops, and where their last values are read."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    zeros = {node: staying_zeros(node) for node in graph.nodes() if node.op in LOOPS}

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


def staying_zeros(loop: Node) -> dict[int, Node]:
    """The carries that start at zero and stay there: their indices, and the zeros."""
    given = [*map(classify, loop.inputs)]
    if Sign.POSITIVE_ZERO not in given[: loop.attrs["carries"]]:
        return {}
    kept = Zeros().given_to_bodies(loop, given)[: loop.attrs["carries"]]
    return {i: loop.inputs[i] for i, one in enumerate(kept) if one is Sign.POSITIVE_ZERO}


def classify(x: Node) -> Sign:
    """What is known of a value by itself."""
    if is_positive_zero(x):
        return Sign.POSITIVE_ZERO
    return Sign.ZERO if is_zero(x) else Sign.NOTHING


class Zeros(Forward[Sign]):
    """What is known of values, given that of the params of a body."""

    unknown = weakest = Sign.NOTHING

    def join(self, node: Node, several: Sequence[Sign]) -> Sign:
        """The least that is known of any."""
        return min(several)

    def reads(self, node: Node) -> Sequence[Node]:
        """Of most ops nothing is known, whatever their operands are."""
        return node.inputs if node.op in FOLLOWED else ()

    def of_node(self, node: Node, given: Sequence[Sign], known: Known[Sign]) -> Sequence[Sign]:
        """What is known of the values of a node, given that of its inputs."""
        match node.op:
            case elementwise.add:
                return [max(given) if min(given) else Sign.NOTHING]
            case elementwise.subtract:
                return [given[0] if min(given) else Sign.NOTHING]
            case elementwise.negative:
                return [min(*given, Sign.ZERO)]
            case tensor.multiply_no_nan:
                return [min(given[0], Sign.ZERO)]
            case elementwise.multiply:
                x, y = node.inputs
                zero = (given[0] and is_finite(y)) or (given[1] and is_finite(x))
                return [Sign.ZERO if zero else Sign.NOTHING]
        if node.op in LINEAR:
            floats = [one for x, one in zip(node.inputs, given) if x.type.dtype.kind in "fc"]
            return [min(floats, default=Sign.NOTHING)]
        return [classify(node)] * len(values(node.type))
