"""A closed graph: everything below its outputs down to its params, and nothing else.

A node may hold graphs in its attrs: the bodies of loops and branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any, ClassVar

from .node import Attrs, Node, inputs_of, toposort, type_of
from .op import Op, Trait, may_raise
from .provenance import Origin, built_before, described_by, inheriting, thread_state
from .sizes import Expression
from .trace import Trace
from .types import TensorType, Type

Row = tuple[Op, tuple[int, ...], dict[str, Any], Origin, tuple[str | None, ...] | None]

op_of = attrgetter("op")

WITH_BODIES = frozenset({"control", "schedule"})
"""Dialects whose ops have bodies."""


class Graph:
    """`outputs` as a function of `params`; a stage of compilation, or the body of a loop."""

    __slots__ = ("_bodies", "_nodes", "_ops", "_types", "outputs", "params", "trace")
    text: ClassVar[Callable[[Graph], str]]
    """The function that prints a graph; `inspection` sets it, as `ir` imports no other part."""
    written: ClassVar[Callable[[Graph], str]]
    """The function that writes a graph as JSON, and the one that reads it, set there as well."""
    read: ClassVar[Callable[[str | bytes], Graph]]
    network: ClassVar[Callable[[Graph], Any]]
    """The function that makes a graph for networkx."""
    folded: ClassVar[Callable[[str, Mapping[str, Graph]], str]]
    """The function that makes HTML of a title and, folded below it, graphs by name."""

    def __init__(
        self, params: tuple[Node, ...], outputs: tuple[Node, ...], trace: Trace | None = None
    ) -> None:
        self.params, self.outputs = params, outputs
        self.trace = trace  # of the compilation in which the graph is a stage
        self._nodes: list[Node] | None = None
        self._bodies: list[Graph] | None = None
        self._ops: frozenset[Op] | None = None
        self._types: frozenset[Type] | None = None

    def nodes(self) -> list[Node]:
        """Every node, inputs before users."""
        if self._nodes is None:
            self._nodes = toposort((*self.params, *self.outputs))
        return self._nodes

    def bodies(self) -> list[Graph]:
        """The bodies of its nodes, but not those inside of bodies."""
        if self._bodies is None:
            with_some = {op for op in set(map(op_of, self.nodes())) if op.dialect in WITH_BODIES}
            nodes = [node for node in self.nodes() if node.op in with_some] if with_some else []
            self._bodies = [body for node in nodes for body in bodies_of(node)]
        return self._bodies

    def ops(self) -> frozenset[Op]:
        """The ops of every node, those in bodies included."""
        if self._ops is None:
            inner = [body.ops() for body in self.bodies()]
            self._ops = frozenset(map(op_of, self.nodes())).union(*inner)
        return self._ops

    def uses(self) -> Counter[Node]:
        """How often each node is an operand or an output, bodies aside."""
        return Counter(chain(self.outputs, *map(inputs_of, self.nodes())))

    def types(self) -> frozenset[Type]:
        """The types of every node, those in bodies included."""
        if self._types is None:
            inner = [body.types() for body in self.bodies()]
            self._types = frozenset(map(type_of, self.nodes())).union(*inner)
        return self._types

    def every_node(self) -> Iterator[Node]:
        """Every node, those in bodies included."""
        for node in self.nodes():
            yield node
            if node.op.dialect in WITH_BODIES:
                for body in bodies_of(node):
                    yield from body.every_node()

    def lines(self) -> dict[Node, Origin]:
        """The user's line for each node.

        Equal programs share nodes, so each may have been built several times. A node without inputs
        has the line of the last build before any node was built that uses it, any other the line of
        the first build after its inputs.
        """
        every = set(self.every_node())
        found = {node: node.last_line for node in every if len(node.builds) == 1}
        if len(found) < len(every):
            find_lines(self, inf, found)
        return found

    def to_json(self) -> str:
        """The graph as JSON text, bodies, lines and labels included.

        `Graph.from_json` reads the same nodes back. The form is documented in
        `graphcore.inspection.json_form`.

        Raises
        ------
        GraphTypeError
            If a node holds something that is no data, such as a Python function.

        Examples
        --------
        >>> import graphcore as gc
        >>> f = gc.compile([x := gc.tensor("x", {"row": None})], x.sum())
        >>> graph = f.stages["scheduled"]
        >>> Graph.from_json(graph.to_json()) == graph
        True
        """
        return Graph.written(self)

    @staticmethod
    def from_json(text: str | bytes) -> Graph:
        """The graph that `to_json` wrote: in one process the very same nodes.

        Text from anywhere may be given: nothing in it is run or imported.

        Raises
        ------
        GraphValueError
            If the text is no graph, or one of another version; the error says where.
        """
        return Graph.read(text)

    def to_networkx(self) -> Any:
        """The graph as a `networkx.MultiDiGraph`, for networkx's algorithms and drawings.

        Nodes are named by a digest of what they compute, which is the same in all stages. Their
        facts are `node` (the node itself), `name` (its printed name), `op`, `attrs`, `type`,
        `dtype`, `shape`, `dims` (labels of axes, where they are known), `origin` (the user's line),
        `flops` and `bytes` (estimates). A body among the attrs is a graph of the same form. An edge
        leads from an operand to the node that uses it; its key and its fact `operand` are the
        operand's position. The graph's own facts are `params` and `outputs`.

        Examples
        --------
        >>> import graphcore as gc
        >>> x = gc.tensor("x", {"row": 3})
        >>> network = Graph((), ((x * x).sum().node,)).to_networkx()
        >>> [(network.nodes[a]["op"], position) for a, _, position in network.edges(keys=True)]
        [('leaf.input', 0), ('leaf.input', 1), ('elementwise.multiply', 0)]
        """
        return Graph.network(self)

    def __len__(self) -> int:
        return len(self.nodes())

    def __repr__(self) -> str:
        params, outputs = len(self.params), len(self.outputs)
        return f"<Graph: {params:,} params, {len(self):,} nodes, {outputs:,} outputs>"

    def __str__(self) -> str:
        return Graph.text(self)

    def _repr_html_(self) -> str:
        return Graph.folded(repr(self), {"graph": self})

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Graph)
            and self.params == other.params
            and self.outputs == other.outputs
        )

    def __hash__(self) -> int:
        return hash((self.params, self.outputs))

    def __reduce__(self) -> tuple[Any, ...]:
        """A flat table, inputs by row number, so that depth is no limit.

        From the trace of a stage, the lines and labels of its nodes are kept.
        """
        number: dict[Node, int] = {}
        rows: list[Row] = []
        with described_by(self.trace or thread_state.trace):
            for node in self.nodes():
                number[node] = len(rows)
                inputs = tuple(number[x] for x in node.inputs)
                attrs = {name: self._beside(value) for name, value in node.attrs.items()}
                rows.append((node.op, inputs, attrs, node.origin, node.labels))
        params, outputs = ([number[x] for x in side] for side in (self.params, self.outputs))
        return _rebuild, (rows, params, outputs, self.trace is not None)

    def _beside(self, value: Any) -> Any:
        """An attr of one of the nodes; graphs in it are described by the same trace."""
        if isinstance(value, tuple) and value and isinstance(value[0], Graph):
            return tuple(map(self._beside, value))
        if self.trace is None or not isinstance(value, Graph):
            return value
        return Graph(value.params, value.outputs, self.trace)


def find_lines(graph: Graph, bound: float, found: dict[Node, Origin]) -> None:
    """Enter the line of each node of a graph that was complete at the build numbered `bound`.

    It is the last line that built the node before a node that uses it: a program that is written
    again, as the cell of a notebook is, has its new lines.
    """
    first_use: dict[Node, float] = {}
    for node in reversed(graph.nodes()):
        if node.builds:
            use = first_use.get(node, bound)
            build = built_before(node.builds, use)
            last = min(build.last, use)
            for x in node.inputs:
                first_use[x] = min(first_use.get(x, last), last)
            found.setdefault(node, build.origin)
            for body in bodies_of(node):
                find_lines(body, last, found)


def bodies_of(node: Node) -> list[Graph]:
    """The bodies of a node, which are graphs among its attrs: of a loop, of branches, ..."""
    return bodies_among(node.attrs.values()) if node.op.dialect in WITH_BODIES else []


def bodies_among(attrs: Iterable[Any]) -> list[Graph]:
    """The bodies among attrs, alone or in tuples."""
    found = []
    for value in attrs:
        several = value if isinstance(value, tuple) else (value,)
        found += [graph for graph in several if isinstance(graph, Graph)]
    return found


def may_raise_inside(node: Node) -> bool:
    """Whether a node, or one in a body of it, may refuse values at the call."""
    every = (x for body in bodies_of(node) for x in body.every_node())
    return may_raise(node) or any(map(may_raise, every))


def has_effect(node: Node) -> bool:
    """Whether the outside notices that a node, or one in a body of it, is computed."""
    if node.op.dialect not in WITH_BODIES:  # as nearly all, so that this must be quick
        return Trait.EFFECT in node.op.traits
    return any(Trait.EFFECT in op.traits for body in bodies_of(node) for op in body.ops())


def with_bodies(node: Node, change: Callable[[Graph], Graph]) -> Attrs:
    """The attrs of a node with every body among them changed."""
    if node.op.dialect not in WITH_BODIES:
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


def _rebuild(
    rows: list[Row], params: list[int], outputs: list[int], is_stage: bool = False
) -> Graph:
    nodes: list[Node] = []
    trace = Trace() if is_stage else None
    for op, inputs, attrs, origin, labels in rows:
        with inheriting(origin):
            node = Node(op, tuple(nodes[i] for i in inputs), Attrs(attrs))
        if trace is not None:
            for body in bodies_among(attrs.values()):  # described by the same trace
                if body.trace is not None:
                    trace.lines.update(body.trace.lines)
                    trace.labels.update(body.trace.labels)
            trace.lines[node] = origin
            if labels is not None:
                trace.labels[node] = labels
        nodes.append(node)
    return Graph(tuple(nodes[i] for i in params), tuple(nodes[i] for i in outputs), trace)
