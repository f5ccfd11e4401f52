"""Graphs computed one node at a time, every value kept, loops step by step.

A loop keeps what its body was given at each step, so that any step can be computed again with all
its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphcore.ir import Array, Graph, Node, TensorType, TupleType
from graphcore.ir.axes import operands as types_of_operands
from graphcore.ir.axes import values as types_of
from graphcore.ir.graph import unknowns_of
from graphcore.ir.sizes import evaluate
from graphcore.ir.trace import Trace, tracing
from graphcore.ops import autodiff, control, leaf, meaning, named
from graphcore.schedule.order import finders, in_order

Sizes: TypeAlias = "dict[str, int]"
Lower: TypeAlias = "Callable[[Graph], Graph]"
"""From a graph to one of plain ops."""


class Run(NamedTuple):
    """The run of a loop or of one branch: the body, its values at each step, and the results.

    `positions` are the places of the steps along the dim of a loop, in the order of the steps.
    """

    body: Graph
    given: list[tuple[Array, ...]]
    positions: Sequence[int]
    results: list[Array]
    sizes: Sizes


class Frame(NamedTuple):
    """A graph that was computed: the results of every node, or the run of a loop."""

    graph: Graph
    results: dict[Node, list[Array] | Run]
    sizes: Sizes

    def of(self, node: Node) -> list[Array]:
        """The results of a node."""
        found = self.results[node]
        return found.results if isinstance(found, Run) else found

    def outputs(self) -> list[Array]:
        """The values of the outputs."""
        return [self.of(y)[0] for y in self.graph.outputs]


class Interpreter:
    """Computes graphs of plain ops by what these mean.

    Those of other ops need `lower`. Each of their nodes is lowered by itself; but lazy derivatives,
    which have no values of their own, together, as functions of the params of their graph.
    """

    def __init__(self, lower: Lower | None = None) -> None:
        self._lower = lower
        self._orders: dict[Graph, Sequence[Node]] = {}
        self._lowered: dict[Any, Graph] = {}
        self._plain = Interpreter() if lower else self

    def order(self, graph: Graph) -> Sequence[Node]:
        """The nodes in the order in which they are computed."""
        if (order := self._orders.get(graph)) is None:
            order = self._orders[graph] = in_order(graph.nodes())
        return order

    def frame(self, graph: Graph, given: Iterable[Array], sizes: Mapping[str, int]) -> Frame:
        """Every value of a graph for the values of its params."""
        results: dict[Node, list[Array] | Run] = {
            param: [value] for param, value in zip(graph.params, given, strict=True)
        }
        frame = Frame(graph, results, dict(sizes))
        for node in self.order(graph):
            if node not in results and node.op in autodiff.LAZY:
                results.update(self._lazy(graph, frame))
            if node not in results:
                results[node] = self._results(node, frame)
        return frame

    def _lazy(self, graph: Graph, frame: Frame) -> Iterator[tuple[Node, list[Array]]]:
        """The values of lazy derivatives, which are computed from the params of the graph.

        Those wait that have sizes which are not computed yet.
        """
        lazy = [node for node in self.order(graph) if node.op in autodiff.LAZY]
        if waiting := finders(graph.nodes()).keys() - frame.sizes.keys():
            lazy = [
                x for x in lazy if x not in frame.results and waiting.isdisjoint(sizes_below(x))
            ]
        if lazy:
            wanted = Graph(graph.params, tuple(y for node in lazy for y in leaf.values(node)))
            given = [frame.of(param)[0] for param in graph.params]
            found = iter(self._by_lowering(wanted, lambda: wanted, given, frame.sizes))
            for node in lazy:
                yield node, [next(found) for _ in node.type.items]

    def _by_lowering(
        self,
        key: object,
        make: Callable[[], Graph],
        arrays: Sequence[Array],
        sizes: Mapping[str, int],
    ) -> list[Array]:
        """The outputs of a graph that is lowered first, once for each key."""
        assert self._lower is not None
        if (graph := self._lowered.get(key)) is None:
            with tracing(Trace()) as trace:
                made = make()
                graph = self._lowered[key] = self._lower(Graph(made.params, made.outputs, trace))
        return self._plain.frame(graph, arrays, sizes).outputs()

    def step(self, run: Run, at: int) -> Frame:
        """Every value of the body of a loop at its step number `at`."""
        return self.frame(run.body, run.given[at], run.sizes)

    def _results(self, node: Node, frame: Frame) -> list[Array] | Run:
        if node.op is leaf.project:
            return [frame.of(node.inputs[0])[node.attrs["index"]]]
        operands = [array for x in node.inputs for array in frame.of(x)]
        if node.op in IDENTITIES:
            return operands
        if node.op in (leaf.after, named.labelled):
            return operands[:1]
        if node.op is leaf.as_size:
            (name,) = node.attrs["size"].unknowns
            frame.sizes[name] = int(operands[0])
            return operands
        if node.op in RUNS:
            return RUNS[node.op](self, node, operands, frame.sizes)
        if node.inputs and self._lower is not None:
            key = (node.op, node.attrs.key, *types_of_operands(node))
            return self._by_lowering(key, lambda: alone(node), operands, frame.sizes)
        return self.compute(node, operands, frame.sizes)

    def compute(self, node: Node, arrays: Sequence[Array], sizes: Sizes) -> list[Array]:
        """The results of a plain node."""
        return meaning.compute(node, arrays, sizes)

    def _outputs(
        self, graph: Graph, given: tuple[Array, ...], sizes: Mapping[str, int]
    ) -> list[Array]:
        return self.frame(graph, given, sizes).outputs()

    def scan(self, node: Node, operands: list[Array], sizes: Sizes) -> Run:
        """All steps of a `scan`."""
        attrs = node.attrs
        n, m, body, dim = attrs["carries"], attrs["sequences"], attrs["body"], attrs["dim"]
        carries, captured = tuple(operands[:n]), tuple(operands[n + m :])
        axes = [
            0 if dim is None else (x.type.dims or ()).index(dim) for x in node.inputs[n : n + m]
        ]
        sequences = [
            np.moveaxis(x, axis, 0) for x, axis in zip(operands[n : n + m], axes, strict=True)
        ]
        order = -1 if attrs["reverse"] else 1
        positions = range(evaluate(attrs["length"], sizes))[::order]
        given, made = [], []
        for at in positions:
            given.append((*carries, *[x[at, ...] for x in sequences], *captured))
            outputs = self._outputs(body, given[-1], sizes)
            carries = tuple(outputs[:n])
            made.append(outputs[n:])
        results = [*carries, *stacked(made[::order], types_of(node.type)[n:], sizes)]
        return Run(body, given, positions, results, dict(sizes))

    def while_loop(self, node: Node, operands: list[Array], sizes: Sizes) -> Run:
        """All steps of a `while_loop`, whose number becomes a size."""
        attrs = node.attrs
        n, body, trips = attrs["carries"], attrs["body"], attrs["trips"]
        carries, captured = tuple(operands[:n]), tuple(operands[n:])
        given: list[tuple[Array, ...]] = []
        made: list[list[Array]] = []
        before = dict(sizes)
        while self._outputs(attrs["predicate"], (*carries, *captured), before)[0]:
            given.append((*carries, *captured))
            outputs = self._outputs(body, given[-1], before)
            carries = tuple(outputs[:n])
            made.append(outputs[n:])
        if trips is not None:
            (name,) = trips.unknowns
            sizes[name] = len(made)
        results = [*carries, *stacked(made, types_of(node.type)[n:], sizes)]
        return Run(body, given, range(len(given)), results, before)

    def branch(self, node: Node, operands: list[Array], sizes: Sizes) -> Run:
        """The branch that is chosen."""
        index, *given = operands
        return self._once(node.attrs["branches"][int(index)], given, sizes)

    def inline(self, node: Node, operands: list[Array], sizes: Sizes) -> Run:
        """A body that is computed once: the first body of the node."""
        return self._once(node.attrs["body"], operands, sizes)

    def _once(self, body: Graph, given: list[Array], sizes: Sizes) -> Run:
        outputs = self._outputs(body, tuple(given), sizes)
        return Run(body, [tuple(given)], range(1), outputs, dict(sizes))


RUNS: dict[Any, Callable[[Interpreter, Node, list[Array], Sizes], Run]] = {
    control.scan: Interpreter.scan,
    control.while_loop: Interpreter.while_loop,
    control.switch: Interpreter.branch,
    control.call: Interpreter.inline,
    control.custom: Interpreter.inline,
    control.linear: Interpreter.inline,
}
IDENTITIES = frozenset({autodiff.barrier, autodiff.stop_gradient})
"""Ops whose results are their operands."""


def stacked(
    steps: Sequence[list[Array]], types: Sequence[TensorType], sizes: Sizes
) -> Iterator[Array]:
    """The results of all steps, one array for each."""
    for i, type in enumerate(types):
        shape = [evaluate(size, sizes) for size in type.shape]
        yield np.stack([made[i] for made in steps]) if steps else np.empty(shape, type.dtype)


def sizes_below(node: Node) -> set[str]:
    """The unknown sizes of a node and of those that it is computed from."""
    return {name for x in Graph((), (node,)).every_node() for name in unknowns_of(x)}


def alone(node: Node) -> Graph:
    """The graph of one node, whose operands are params."""
    types = enumerate(types_of_operands(node))
    params = tuple([leaf.param(f"operand {i}", type) for i, type in types])
    made = Node(node.op, params, node.attrs)
    several = isinstance(made.type, TupleType)
    return Graph(params, tuple(leaf.values(made)) if several else (made,))
