"""Steps record the parts of their results that are read, where these are smaller.

    (y,) = scan(... return a); b = y[:, part]  ->  (b,) = scan(... return a[part])

A derivative may read only one element of a state that a loop carries, as one season of twelve.
What needs no carry is computed of all steps at once, after the loop, so that steps record what it
reads, and the slice is taken then: here it goes back into the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.ir import Graph, Node, Rule
from graphcore.ir.provenance import inheriting
from graphcore.ir.transform import transform
from graphcore.ops import leaf, tensor
from graphcore.ops.control import LOOPS, Loop

from . import view
from .placement import count_of, no_more


def record_parts(graph: Graph) -> Graph:
    """The graph whose loops record parts of results, those in bodies too.

    What they recorded before is left to be pruned.
    """
    graph = view.inside_as_well(record_parts, graph)
    readers: dict[Node, list[Node]] = {y: [] for y in graph.nodes() if is_recorded(y)}
    for x in graph.nodes():
        for y in x.inputs:
            if y in readers:
                readers[y].append(x)
    found: dict[Node, list[Node]] = {}
    for y, parts in readers.items():
        if y not in graph.outputs and are_parts(y, parts):
            found.setdefault(y.inputs[0], []).extend(parts)
    return with_parts(graph, found) if found else graph


def is_recorded(node: Node) -> bool:
    """Whether a node has what all steps of a loop recorded."""
    if node.op is not leaf.project or node.inputs[0].op not in LOOPS:
        return False
    carries: int = node.inputs[0].attrs["carries"]
    return bool(node.attrs["index"] >= carries)


def are_parts(y: Node, readers: Sequence[Node]) -> bool:
    """Whether all that reads a result takes a part of every step, and these are not larger."""
    own = all(x.op is tensor.slice_ and has_all_steps(x) for x in readers)
    return own and (len(readers) == 1 or no_more(count_of(readers), y.type.count))


def has_all_steps(x: Node) -> bool:
    """Whether a slice has a part of each step, in their order."""
    first, size, distance = [x.attrs[name][0] for name in ("starts", "sizes", "steps")]
    return bool(first == 0 and distance == 1 and size == x.inputs[0].type.shape[0])


def with_parts(graph: Graph, parts: dict[Node, list[Node]]) -> Graph:
    """The graph whose loops return these slices of their results as well."""
    places = {
        x: len(Loop.of(loop).outputs) + k
        for loop, some in parts.items()
        for k, x in enumerate(some)
    }

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node in parts:
            loop = Loop.of(Node(node.op, inputs, node.attrs))
            more = [part_of_step(x, loop) for x in parts[node]]
            return record_parts, loop._replace(results=(*loop.results, *more)).build()
        if node in places:
            return record_parts, inputs[0].inputs[0][places[node]]
        return None

    return transform(graph, visit)


def part_of_step(x: Node, loop: Loop) -> Node:
    """What a step records in place of the whole of which `x` is a part."""
    (y,) = x.inputs
    attrs = {name: value[1:] for name, value in x.attrs.items()}
    with inheriting(x):
        return tensor.slice_(loop.outputs[y.attrs["index"]], **attrs)
