"""Sums with zeros around a part: the part is added at its place, and the zeros are never made."""

from __future__ import annotations

from collections import Counter

from graphcore.ir.graph import Graph, graphs
from graphcore.ir.node import Node
from graphcore.ops import elementwise, tensor
from graphcore.rewrites.engine import convert


def accumulate(graph: Graph) -> Graph:
    """x + embed(u) = overwrite(x, slice(x) + u) and x + scatter(u) = scatter_add(x, u).

    Only where no other node needs the zeros around u.
    """
    if graph.ops().isdisjoint({tensor.embed, tensor.scatter}):
        return graph
    used = uses(graph)

    def into(node: Node, x: Node, y: Node) -> Node:
        pairs = ((x, y, node.inputs[1]), (y, x, node.inputs[0]))
        for into, part, old in pairs:
            if used[old] == 1 and part.op is tensor.embed:
                (u,) = part.inputs
                at = {name: part.attrs[name] for name in ("starts", "steps")}
                there = tensor.slice_(into, sizes=u.type.shape, **at)
                return tensor.overwrite(into, there + u, **at)
            if used[old] == 1 and part.op is tensor.scatter:
                return tensor.scatter_add(into, *part.inputs, axes=part.attrs["axes"])
        return node.with_inputs(x, y)

    return convert(graph, {elementwise.add: into})


def uses(graph: Graph) -> Counter[Node]:
    """How often each node is needed, in the graphs that nodes hold as well."""
    counts = Counter(graph.outputs)
    for node in graph.nodes():
        counts.update(node.inputs)
        for held in graphs(node):
            counts += uses(held)
    return counts
