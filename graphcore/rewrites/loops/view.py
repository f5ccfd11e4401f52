"""Changes of loops in a graph: of nodes in their bodies, and of whole loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from graphcore.ir import Expression, Graph, Node, Rule
from graphcore.ir.graph import unknowns_of
from graphcore.ir.trace import Record, current_trace
from graphcore.ir.transform import keep_node, substitute, transform
from graphcore.ops import control, leaf
from graphcore.ops.control import LOOPS, Loop


def replaced(loop: Loop, new: Mapping[Node, Node], rule: Rule) -> Loop:
    """The loop with other nodes in place of some in its body, by a rule."""
    current_trace().records.extend([Record(rule, before, after) for before, after in new.items()])
    return loop.with_roots(substitute(loop.roots, new)) if new else loop


def unused_names(name: str, loop: Loop) -> Iterator[str]:
    """Names for new params of a loop: `name 0`, `name 1`, ..."""
    in_use = {param.attrs["name"] for param in loop.params.all}
    return (numbered for i in count() if (numbered := f"{name} {i}") not in in_use)


def new_params(name: str, loop: Loop, nodes: Iterable[Node]) -> dict[Node, Node]:
    """For each node of a body a new param that stands for its value."""
    pairs = zip(unused_names(name, loop), nodes, strict=False)
    return {node: new_param(name, node) for name, node in pairs}


def new_param(name: str, node: Node) -> Node:
    """A param for the value of `node`."""
    return leaf.param(name, node.type).label(node.labels)


def trip_counts_inside(body: Graph) -> set[str]:
    """The trip counts that loops inside a body find anew at each step."""
    found: set[str] = set()
    if control.while_loop in body.ops():
        for node in body.every_node():
            if isinstance(trips := node.attrs.get("trips"), Expression):
                found |= trips.unknowns
    return found


def depends_on(node: Node, sizes: set[str]) -> bool:
    """Whether the type or the attrs of a node contain one of some unknown sizes."""
    return bool(sizes) and not sizes.isdisjoint(unknowns_of(node))


def wanted_below(
    roots: Iterable[Node], wanted: Callable[[Node], bool], beyond: Callable[[Node], bool]
) -> list[Node]:
    """The nodes below `roots` that are wanted, without what only these, or nodes beyond, need."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen or beyond(node):
            continue
        seen.add(node)
        if wanted(node):
            found[node] = None
        else:
            stack.extend(node.inputs)
    return list(found)


class Moved(NamedTuple):
    """The place of a loop's results: the new loop that returns them, and their indices there."""

    key: Node
    indices: Mapping[int, int]


def with_loops(graph: Graph, loops: Mapping[Node, Loop], moved: Mapping[Node, Moved]) -> Graph:
    """The graph with other loops; one may take the place of several.

    `loops` are the new ones; `moved` says for each node that is replaced which of them returns its
    results.
    """
    needed = {node: loops[place.key].operands.all for node, place in moved.items()}

    def operands(node: Node) -> tuple[Node, ...]:
        return needed.get(node, node.inputs)

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node in moved:
            return with_loops, loops[moved[node].key].build(inputs)
        if node.op is leaf.project and node.inputs[0] in moved:
            index = moved[node.inputs[0]].indices[node.attrs["index"]]
            return with_loops, inputs[0][index]
        return None

    return transform(graph, visit, at={*LOOPS, leaf.project}, operands=operands)


def inside_as_well(change: Callable[[Graph], Graph], graph: Graph) -> Graph:
    """The graph with its bodies changed."""
    return transform(graph, keep_node, at=(), bodies=change)
