"""A closed graph: everything below its outputs down to its params, and nothing else.

A node may hold graphs in its attrs: the bodies of loops and branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from .node import Attrs, Node, toposort
from .op import Op, may_raise
from .provenance import Origin, inherit
from .sizes import Expression
from .types import TensorType

Row = tuple[Op, tuple[int, ...], dict[str, Any], Origin, tuple[str | None, ...] | None]

HOLDING = frozenset({"control", "schedule"})
"""Dialects whose ops hold graphs in their attrs."""


class Graph:
    """`outputs` as a function of `params`; a stage of compilation, or the body of a loop."""

    __slots__ = ("_nodes", "_ops", "outputs", "params")
    text: ClassVar[Callable[[Graph], str]]
    """How a graph is printed; `inspection` says it, as this part knows no other."""

    def __init__(self, params: tuple[Node, ...], outputs: tuple[Node, ...]) -> None:
        self.params, self.outputs = params, outputs
        self._nodes: list[Node] | None = None
        self._ops: frozenset[Op] | None = None

    def nodes(self) -> list[Node]:
        """Every node, inputs before users."""
        if self._nodes is None:
            self._nodes = toposort((*self.params, *self.outputs))
        return self._nodes

    def ops(self) -> frozenset[Op]:
        """The ops of every node, those of the graphs that nodes hold included."""
        if self._ops is None:
            held = [graph.ops() for node in self.nodes() for graph in graphs(node)]
            self._ops = frozenset({node.op for node in self.nodes()}).union(*held)
        return self._ops

    def every_node(self) -> Iterator[Node]:
        """Every node, those of the graphs that nodes hold included."""
        for node in self.nodes():
            yield node
            if node.op.dialect in HOLDING:
                for graph in graphs(node):
                    yield from graph.every_node()

    def __len__(self) -> int:
        return len(self.nodes())

    def __repr__(self) -> str:
        params, outputs = len(self.params), len(self.outputs)
        return f"<Graph: {params:,} params, {len(self):,} nodes, {outputs:,} outputs>"

    def __str__(self) -> str:
        return Graph.text(self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Graph)
            and self.params == other.params
            and self.outputs == other.outputs
        )

    def __hash__(self) -> int:
        return hash((self.params, self.outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        """A flat table, inputs by row number, so that depth is no limit."""
        number: dict[Node, int] = {}
        rows: list[Row] = []
        for node in self.nodes():
            number[node] = len(rows)
            inputs = tuple(number[x] for x in node.inputs)
            rows.append((node.op, inputs, dict(node.attrs), node.origin, node.labels))
        params, outputs = ([number[x] for x in side] for side in (self.params, self.outputs))
        return _rebuild, (rows, params, outputs)


def graphs(node: Node) -> list[Graph]:
    """The graphs that a node holds: the bodies of a loop or of branches."""
    if node.op.dialect not in HOLDING:
        return []
    found = []
    for value in node.attrs.values():
        several = value if isinstance(value, tuple) else (value,)
        found += [graph for graph in several if isinstance(graph, Graph)]
    return found


def may_raise_inside(node: Node) -> bool:
    """Whether a node, or one in a graph that it holds, may refuse values at the call."""
    return may_raise(node) or any(may_raise(x) for held in graphs(node) for x in held.every_node())


def with_graphs(node: Node, change: Callable[[Graph], Graph]) -> Attrs:
    """The attrs of a node with every graph among them changed."""
    if node.op.dialect not in HOLDING:
        return node.attrs
    new: dict[str, Any] = {}
    for name, value in node.attrs.items():
        if isinstance(value, Graph):
            value = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Graph):
            value = tuple(map(change, value))
        new[name] = value
    return node.attrs if new == node.attrs else Attrs(new)


def unknowns_of(node: Node) -> set[str]:
    """The unknown sizes in a node's type and attrs."""
    sizes = list(node.type.shape) if isinstance(node.type, TensorType) else []
    for value in node.attrs.values():
        sizes += value if isinstance(value, tuple) else [value]
    return {name for size in sizes if isinstance(size, Expression) for name in size.unknowns}


def _rebuild(rows: list[Row], params: list[int], outputs: list[int]) -> Graph:
    nodes: list[Node] = []
    for op, inputs, attrs, origin, labels in rows:
        before = inherit(origin)
        try:
            nodes.append(Node(op, tuple(nodes[i] for i in inputs), Attrs(attrs)).label(labels))
        finally:
            inherit(before)
    return Graph(tuple(nodes[i] for i in params), tuple(nodes[i] for i in outputs))
