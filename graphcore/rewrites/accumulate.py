"""Sums with zeros around a part: the part is added at its place, and the zeros are never made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from graphcore.ir import Graph, Node, Op
from graphcore.ops import elementwise, tensor

from .engine import convert

Adding = Callable[[Node, Node], Node]
"""A rule for x + part, where the part puts zeros around its operand."""


def add_scattered(graph: Graph) -> Graph:
    """The graph in which elements are added at their places."""
    return accumulate(graph, {tensor.scatter: adding_scattered})


def adding_scattered(x: Node, part: Node) -> Node:
    """x + scatter(u) = scatter_add(x, u)."""
    return tensor.scatter_add(x, *part.inputs, axes=part.attrs["axes"])


def accumulate(graph: Graph, rules: Mapping[Op, Adding]) -> Graph:
    """Sums with parts by the rules of their ops, where no other node needs the zeros."""
    if graph.ops().isdisjoint(rules):
        return graph
    used = uses(graph)

    def added(node: Node, x: Node, y: Node) -> Node:
        for into, part, old in ((x, y, node.inputs[1]), (y, x, node.inputs[0])):
            if used[old] == 1 and part.op in rules:
                return rules[part.op](into, part)
        return node.with_inputs(x, y)

    return convert(graph, {elementwise.add: added})


def uses(graph: Graph) -> Counter[Node]:
    """How often each node is needed, in bodies as well."""
    counts = graph.uses()
    for body in graph.bodies():
        counts.update(uses(body))
    return counts
