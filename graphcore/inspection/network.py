"""Graphs for networkx, whose algorithms answer questions about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from graphcore.analysis.cost import Cost, bytes_of, cost, elements
from graphcore.ir import Graph, Node, TensorType
from graphcore.ir.digests import digests
from graphcore.ir.provenance import described_by, thread_state

from .printed import PrintedNodes


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """The graph of `Graph.to_networkx`."""
    return export_graph(graph, digests(graph, {}), PrintedNodes(graph))


def export_graph(graph: Graph, ids: Mapping[Node, str], nodes: PrintedNodes) -> nx.MultiDiGraph:
    """One graph; those that its nodes hold are facts of these nodes."""
    made = nx.MultiDiGraph(
        params=[ids[x] for x in graph.params], outputs=[ids[x] for x in graph.outputs]
    )
    with described_by(graph.trace or thread_state.trace):
        for node in graph.nodes():
            made.add_node(ids[node], **facts(node, ids, nodes))
            for at, x in enumerate(node.inputs):
                made.add_edge(ids[x], ids[node], key=at, operand=at)
    return made


def facts(node: Node, ids: Mapping[Node, str], nodes: PrintedNodes) -> dict[str, Any]:
    """The facts of a node."""

    def export_value(value: Any) -> Any:
        if isinstance(value, Graph):
            return export_graph(value, ids, nodes)
        if isinstance(value, tuple) and value and isinstance(value[0], Graph):
            return tuple(map(export_value, value))
        return value

    one = node.type if isinstance(node.type, TensorType) else None
    spent = cost_of(node)
    return {
        "node": node,
        "name": nodes.of[node].name,
        "op": repr(node.op),
        "attrs": {name: export_value(value) for name, value in node.attrs.items()},
        "type": str(node.type),
        "dtype": one and one.dtype,
        "shape": one and one.shape,
        "dims": node.labels,
        "origin": node.origin,
        "flops": spent.flops,
        "bytes": spent.bytes,
    }


def cost_of(node: Node) -> Cost:
    """The estimated cost of a node; where axes have names, one operation for each element."""
    if node.op.dialect in ("named", "autodiff") or node.type.dims is not None:
        return Cost(elements(node.type), sum(bytes_of(x.type) for x in (*node.inputs, node)))
    return cost(node)
