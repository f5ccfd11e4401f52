"""Graphs computed one node at a time, every value kept, loops step by step.

A loop keeps what its body was given at each step, so that any step can be computed again with all
its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from graphcore.ir.axes import operands as types_of_operands
from graphcore.ir.axes import values as types_of
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.node import Attrs, Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import evaluate
from graphcore.ir.types import TensorType
from graphcore.ops import autodiff, control, leaf, named, tensor
from graphcore.schedule.order import finders, in_order

Array: TypeAlias = npt.NDArray[Any]
Sizes: TypeAlias = "dict[str, int]"
Compute: TypeAlias = "Callable[[Node, Sequence[Array], Mapping[str, int]], list[Array]]"
"""From a node, its operands and the unknown sizes to its results."""


Outputs: TypeAlias = "Callable[[Graph, Sequence[Array], Mapping[str, int]], list[Array]]"


class Applied(NamedTuple):
    """An op on operands of these types, given as arrays; `sizes` are the unknown ones."""

    op: Op
    attrs: Attrs
    operands: Sequence[TensorType]
    arrays: Sequence[Array]
    sizes: Mapping[str, int]


Again: TypeAlias = "Callable[[Applied], list[Array]]"
"""From an op on some operands to its results."""


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


class Interpreter:
    """Computes graphs by a function that computes single nodes.

    Lazy derivatives have no values of their own: `derivatives` computes the outputs of a graph of
    them from the values of its params.
    """

    def __init__(self, compute: Compute, derivatives: Outputs | None = None) -> None:
        self._compute, self._derivatives = compute, derivatives
        self._orders: dict[Graph, Sequence[Node]] = {}

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
            if node not in results and node.op in autodiff.LAZY and self._derivatives is not None:
                results.update(self._lazy(graph, frame, self._derivatives))
            if node not in results:
                results[node] = self._results(node, frame)
        return frame

    def _lazy(
        self, graph: Graph, frame: Frame, derivatives: Outputs
    ) -> Iterator[tuple[Node, list[Array]]]:
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
            found = iter(derivatives(wanted, given, frame.sizes))
            for node in lazy:
                yield node, [next(found) for _ in node.type.items]

    def step(self, run: Run, at: int) -> Frame:
        """Every value of the body of a loop at its step number `at`."""
        return self.frame(run.body, run.given[at], run.sizes)

    def _results(self, node: Node, frame: Frame) -> list[Array] | Run:
        if node.op is leaf.project:
            return [frame.of(node.inputs[0])[node.attrs["index"]]]
        operands = [array for x in node.inputs for array in frame.of(x)]
        if node.op is leaf.tuple_ or node.op in IDENTITIES:
            return operands
        if node.op in (leaf.after, named.labelled):
            return operands[:1]
        if node.op is leaf.as_size:
            (name,) = node.attrs["size"].unknowns
            frame.sizes[name] = int(operands[0])
            return operands
        if node.op in RUNS:
            return RUNS[node.op](self, node, operands, frame.sizes)
        if not node.inputs:
            return [leaf_value(node, frame.sizes)]
        if node.op is tensor.expand:
            return [expand_view(operands[0], node, frame.sizes)]
        return self._compute(node, operands, frame.sizes)

    def _outputs(
        self, graph: Graph, given: tuple[Array, ...], sizes: Mapping[str, int]
    ) -> list[Array]:
        frame = self.frame(graph, given, sizes)
        return [frame.of(y)[0] for y in graph.outputs]

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
        positions = range(evaluate(attrs["length"], sizes))[:: -1 if attrs["reverse"] else 1]
        stacked = [
            np.empty([evaluate(size, sizes) for size in type.shape], type.dtype)
            for type in types_of(node.type)[n:]
        ]
        given = []
        for at in positions:
            given.append((*carries, *[x[at, ...] for x in sequences], *captured))
            outputs = self._outputs(body, given[-1], sizes)
            carries = tuple(outputs[:n])
            for whole, part in zip(stacked, outputs[n:], strict=True):
                whole[at] = part
        return Run(body, given, positions, [*carries, *stacked], dict(sizes))

    def while_loop(self, node: Node, operands: list[Array], sizes: Sizes) -> Run:
        """All steps of a `while_loop`, whose number becomes a size."""
        attrs = node.attrs
        n, body, trips = attrs["carries"], attrs["body"], attrs["trips"]
        carries, captured = tuple(operands[:n]), tuple(operands[n:])
        given: list[tuple[Array, ...]] = []
        results: list[list[Array]] = []
        before = dict(sizes)
        while self._outputs(attrs["predicate"], (*carries, *captured), before)[0]:
            given.append((*carries, *captured))
            outputs = self._outputs(body, given[-1], before)
            carries = tuple(outputs[:n])
            results.append(outputs[n:])
        stacked = []
        if trips is not None:
            (name,) = trips.unknowns
            sizes[name] = len(results)
            for i, type in enumerate(types_of(node.type)[n:]):
                shape = [evaluate(size, sizes) for size in type.shape]
                whole = np.empty(shape, type.dtype)
                for at, made in enumerate(results):
                    whole[at] = made[i]
                stacked.append(whole)
        return Run(body, given, range(len(given)), [*carries, *stacked], before)

    def branch(self, node: Node, operands: list[Array], sizes: Sizes) -> Run:
        """The branch that is chosen."""
        index, *given = operands
        return self._once(node.attrs["branches"][int(index)], given, sizes)

    def inline(self, node: Node, operands: list[Array], sizes: Sizes) -> Run:
        """A body that is computed once: the first graph that the node holds."""
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
IDENTITIES = frozenset({autodiff.barrier, autodiff.stop_gradient, named.print_, tensor.print_})
"""Ops whose result is their operand; nothing is printed here, as a call did so already."""


def sizes_below(node: Node) -> set[str]:
    """The unknown sizes of a node and of those that it is computed from."""
    return {name for x in Graph((), (node,)).every_node() for name in unknowns_of(x)}


def leaf_value(node: Node, sizes: Mapping[str, int]) -> Array:
    """The value of a node without operands."""
    attrs, type = node.attrs, node.type
    if node.op is leaf.constant:
        found: Array = attrs["value"].array
        return found
    if node.op is leaf.full:
        shape = [evaluate(size, sizes) for size in type.shape]
        return np.broadcast_to(attrs["value"].array, shape)
    size = evaluate(attrs["size"], sizes)
    return np.arange(size, dtype=type.dtype) if node.op is leaf.iota else np.array(size, type.dtype)


def expand_view(x: Array, node: Node, sizes: Mapping[str, int]) -> Array:
    """A view that repeats `x` along new axes."""
    shape = [evaluate(size, sizes) for size in node.type.shape]
    return np.broadcast_to(np.expand_dims(x, node.attrs["axes"]), shape)


def one_node(compute: Again) -> Compute:
    """The function that computes a node from its operands."""

    def run(node: Node, arrays: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
        return compute(Applied(node.op, node.attrs, types_of_operands(node), arrays, sizes))

    return run
