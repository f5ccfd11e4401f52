"""Ops on the same operands in another order are one: x * y is y * x, to the last bit."""

from __future__ import annotations

from graphcore.ir import Graph, Node, Op, Rule, Trait
from graphcore.ir.transform import transform
from graphcore.ops.elementwise import fmax, fmin, maximum, minimum

BY_PLACE = frozenset({maximum, minimum, fmax, fmin})
"""Ops that tell 0 from -0 by the place where it stands."""


def share_commuted(graph: Graph) -> Graph:
    """The graph in which operands of a commutative op stand in the order in which they came first.

    So printed stages keep the order that was written.
    """
    made: dict[tuple[Op, frozenset[Node]], Node] = {}

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        new = node.with_inputs(*inputs)
        first = made.setdefault((node.op, frozenset(inputs)), new)
        return None if first is new else (share_commuted, first)

    at = {op for op in graph.ops() if Trait.COMMUTATIVE in op.traits} - BY_PLACE
    return transform(graph, visit, at=at, bodies=share_commuted) if at else graph
