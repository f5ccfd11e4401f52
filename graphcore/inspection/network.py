"""Graphs for networkx, and questions that its algorithms answer.

>>> import graphcore as gc
>>> from graphcore.inspection.network import critical_path
>>> x = gc.tensor("x", {"row": 4, "col": 4})
>>> f = gc.compile([x], gc.exp(x).sum() + x.min())
>>> [node.op.name for node in critical_path(f.stages["scheduled"]).nodes]
['input', 'exp', 'sum', 'add']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import networkx as nx

from graphcore.analysis.cost import Cost, bytes_of, cost, elements
from graphcore.ir.digests import digests
from graphcore.ir.errors import GraphKeyError, GraphTypeError
from graphcore.ir.graph import Graph
from graphcore.ir.names import spell_name
from graphcore.ir.node import Node
from graphcore.ir.provenance import described_by, state
from graphcore.ir.types import TensorType

from .printed import PrintedNode, PrintedNodes
from .text import fold, one_line

Weight = Callable[[Node], float]
LEAST = 1e-9
"""The cost of what is free, by which a path does not end before an output."""
START = "start"
"""The node before all nodes without inputs, where a question is about all of them."""


# ---- graphs for networkx


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """The graph of `Graph.to_networkx`."""
    return export_graph(graph, digests(graph, {}), PrintedNodes(graph))


def export_graph(graph: Graph, ids: Mapping[Node, str], nodes: PrintedNodes) -> nx.MultiDiGraph:
    """One graph; those that its nodes hold are facts of these nodes."""
    made = nx.MultiDiGraph(
        params=[ids[x] for x in graph.params], outputs=[ids[x] for x in graph.outputs]
    )
    with described_by(graph.trace or state.trace):
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


def weight(node: Node) -> float:
    """Operations and bytes in one number: a core does about one of either in the same time."""
    spent = cost_of(node)
    return spent.flops + spent.bytes


# ---- questions


class Path(NamedTuple):
    """A path through a graph: each of its `nodes` waits for the one before.

    `costs` are theirs, `total` is that of all nodes of the graph, and `lines` are as printed.
    """

    nodes: tuple[Node, ...]
    costs: tuple[float, ...]
    total: float
    lines: tuple[str, ...]

    @property
    def cost(self) -> float:
        """The cost of the path."""
        return sum(self.costs)

    def text(self, limit: int | None = 200, width: int | None = 120) -> str:
        """The path as text: at most `limit` lines, cut at `width`; None leaves out nothing."""
        rows = [
            f"{share(cost, self.total)}  {line}"
            for cost, line in zip(self.costs, self.lines, strict=True)
        ]
        return fold_lines(rows, limit, width, f"{share(self.cost, self.total)}  of the cost")

    def __str__(self) -> str:
        return self.text()


def critical_path(graph: Graph, cost: Weight = weight) -> Path:
    """The path of greatest cost from the inputs to an output: no order of steps is shorter.

    Parameters
    ----------
    graph
        A stage; a node that holds bodies counts as all of their steps.
    cost
        The cost of a node; its estimated operations and bytes by default.
    """
    network = plain(graph)
    costs = {node: float(cost(node)) for node in network}
    network.add_edges_from((START, node) for node in list(network) if not node.inputs)
    for _, node, edge in network.edges(data=True):
        edge["cost"] = costs[node] or LEAST
    nodes = tuple(nx.dag_longest_path(network, weight="cost", default_weight=0)[1:])
    lines = node_lines(graph, nodes)
    return Path(nodes, tuple(costs[x] for x in nodes), sum(costs.values()), lines)


class Dominators(NamedTuple):
    """The immediate dominator of each node that depends on an input; `start` has none.

    Everything between the input and a node passes through its dominators.
    """

    start: Node | None
    above: dict[Node, Node | None]
    lines: dict[Node, str]

    def through(self, node: Node) -> tuple[Node, ...]:
        """The nodes that depend on the input only through this one."""
        tree = nx.DiGraph((above, x) for x, above in self.above.items() if above is not None)
        found = nx.descendants(tree, node) if node in tree else set()
        return tuple(x for x in self.above if x in found)

    def text(self, limit: int | None = 200, width: int | None = 120) -> str:
        """The dominators as text: at most `limit` lines, cut at `width`, or all for None."""
        names: dict[Node | None, str] = {None: "no single node"}
        names |= {node: line.partition(":")[0] for node, line in self.lines.items()}
        rows = [
            f"through {names[above]}: {self.lines[node]}"
            for node, above in self.above.items()
            if node is not self.start
        ]
        return fold_lines(rows, limit, width)

    def __str__(self) -> str:
        return self.text()


def dominators(graph: Graph, start: Any = None) -> Dominators:
    """For each node the nearest one through which everything from an input to it passes.

    Parameters
    ----------
    start
        The input, as a tensor, a node or by its name; all nodes without inputs by default.

    Raises
    ------
    GraphError
        If the graph has no such node.
    """
    network = plain(graph)
    first = None if start is None else found_in(graph, start)
    root = first or START
    if first is None:
        network.add_edges_from((START, node) for node in list(network) if not node.inputs)
    known = {root: root, **nx.immediate_dominators(network, root)}  # some releases leave it out
    order = [node for node in graph.nodes() if node in known]
    above = {node: known[node] for node in order}
    direct = {x: None if y is START or x is root else y for x, y in above.items()}
    lines = dict(zip(order, node_lines(graph, order), strict=True))
    return Dominators(first, direct, lines)


class Again(NamedTuple):
    """The nodes to compute again, and their share of the cost of all."""

    nodes: tuple[Node, ...]
    cost: float
    total: float
    lines: tuple[str, ...]

    def text(self, limit: int | None = 200, width: int | None = 120) -> str:
        """The nodes as text: at most `limit` lines, cut at `width`; None leaves out nothing."""
        return fold_lines(self.lines, limit, width, f"{share(self.cost, self.total)} of the cost")

    def __str__(self) -> str:
        return self.text()


def computed_again(graph: Graph, changed: Any, cost: Weight = weight) -> Again:
    """What must be computed again if inputs change: all nodes that depend on one of them.

    Parameters
    ----------
    changed
        One or several inputs, as tensors, as nodes or by their names.
    cost
        The cost of a node, as for `critical_path`.
    """
    network = plain(graph)
    one = isinstance(changed, str | Node) or hasattr(changed, "node")
    some = [changed] if one else list(changed)
    nodes = {y for x in some for y in nx.descendants(network, found_in(graph, x))}
    order = tuple(node for node in graph.nodes() if node in nodes)
    total = sum(map(cost, graph.nodes()))
    return Again(order, sum(map(cost, order)), total, node_lines(graph, order))


def plain(graph: Graph) -> nx.DiGraph:
    """The nodes themselves, an edge from each to those that use it."""
    network = nx.DiGraph()
    network.add_nodes_from(graph.nodes())
    network.add_edges_from((x, node) for node in graph.nodes() for x in node.inputs)
    return network


def found_in(graph: Graph, wanted: Any) -> Node:
    """A node of a graph, given as itself, as a tensor or by the name of an input."""
    wanted = getattr(wanted, "node", wanted)
    if isinstance(wanted, str):
        for node in graph.params:
            if node.attrs["name"] == wanted:
                return node
        names = ", ".join(one_line(spell_name(x.attrs["name"])) for x in graph.params[:20])
        cure = f"give one of its inputs: {names}"
        raise GraphKeyError(f"the graph has no input {wanted!r:.60}\n  cure: {cure}")
    if not isinstance(wanted, Node) or wanted not in set(graph.nodes()):
        cure = "give a node of this stage, or the name of an input"
        raise GraphTypeError(f"{wanted!r:.60} is not a node of the graph\n  cure: {cure}")
    return wanted


def node_lines(graph: Graph, nodes: Iterable[Node]) -> tuple[str, ...]:
    """The lines of nodes as the stage prints them."""
    found: dict[Node, PrintedNode] = PrintedNodes(graph).of
    with described_by(graph.trace or state.trace):
        return tuple(found[node].line for node in nodes)


def fold_lines(
    lines: Iterable[str], limit: int | None, width: int | None, last: str | None = None
) -> str:
    """The lines, folded, and a last one."""
    return "\n".join([*fold([*lines], limit, width), *([] if last is None else [last])])


def share(part: float, whole: float) -> str:
    """A part of a whole, in per cent."""
    return f"{part / whole if whole else 0:6.1%}"
