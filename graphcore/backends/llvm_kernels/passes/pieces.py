"""Long graphs cut into pieces of bounded size, which are kernels within a kernel.

Cuts are chosen by what stands around them, not by counting: where few values cross, and among such
places by a hash of the nodes there. So a structure that repeats itself, whatever its period, is cut
at the same places each time, and its pieces have equal bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from graphcore.ir import Graph, Node, Rule, Type
from graphcore.ir.transform import transform
from graphcore.ops import leaf
from graphcore.ops.schedule import kernel
from graphcore.schedule.order import finders, in_order, updates
from graphcore.schedule.regions import bases, enclose, is_given, is_repeated, leaks, sizes_read

LONG_GRAPH = 500
"""How many nodes a graph that is not cut has at most: LLVM takes longer a node for longer ones."""
LARGEST_PIECE, LEAST_PIECE = 96, 32
"""How many nodes a piece has at most, and at least but for the last.

Repetitions that are no longer than the difference are cut alike at once, longer ones soon.
"""
NEAR = 64
"""Values read within so many nodes are counted where they cross a cut; others are always stored."""


def cut_kernels(graph: Graph) -> Graph:
    """A graph with kernels whose bodies, where they are long, are in pieces."""

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op is not kernel:
            return None
        return cut_kernels, kernel(*inputs, body=in_pieces(node.attrs["body"]))

    return transform(graph, visit, bodies=cut_kernels)


def in_pieces(graph: Graph, carries: int = 0) -> Graph:
    """A graph with kernels for its pieces, if it is long; so are its bodies.

    `graph` may be the body of a loop with so many carries.
    """

    def inside(node: Node, body: Graph) -> Graph:
        return in_pieces(body, node.attrs.get("carries", 0))

    groups = pieces(graph, carries)
    if not groups and not graph.bodies():
        return graph
    return enclose(graph, groups, inside)


def pieces(graph: Graph, carries: int) -> list[list[Node]]:
    """The groups of nodes that become kernels; none if the graph is short.

    Updates of a carry, which are written over it, are in no group, nor anything across them; nor
    are loops that find a size which is needed outside of their group. Prints keep their order, as
    each group follows the one before in the order of the graph.
    """
    nodes = [x for x in in_order(graph.nodes()) if not (is_given(x) or is_repeated(x))]
    if len(nodes) <= LONG_GRAPH:
        return []
    carried = zip(graph.params, graph.outputs[:carries], strict=False)
    alone = {update for param, y in carried for update in updates(y, param)}
    order = together(nodes)
    while True:
        runs: list[list[Node]] = [[]]
        for node in order:
            if node in alone:
                runs.append([])
            else:
                runs[-1].append(node)
        groups = [piece for run in runs if len(run) > 1 for piece in cut(run)]
        if not (leaking := leaks(graph, groups)):
            return groups
        alone.update(leaking)
        alone.update(x for x in order if x.op is leaf.project and x.inputs[0] in alone)


def together(nodes: Sequence[Node]) -> list[Node]:
    """Nodes in an order in which the results of a node with several values follow it."""
    projects: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.op is leaf.project:
            projects.setdefault(node.inputs[0], []).append(node)
    order: list[Node] = []
    for node in nodes:
        if node.op is not leaf.project:
            order += [node, *projects.get(node, ())]
    return order


def cut(nodes: Sequence[Node]) -> list[list[Node]]:
    """Nodes in order, cut into pieces."""
    crossing, context, whole = crossings(nodes), contexts(nodes), undivided_places(nodes)
    start, found = 0, []
    while len(nodes) - start > LARGEST_PIECE:
        places = [i for i in range(start + LEAST_PIECE, start + LARGEST_PIECE + 1) if not whole[i]]
        if not places:
            places = [i for i in range(start + LARGEST_PIECE, len(nodes)) if not whole[i]][:1]
        if not places:
            break
        end = min(places, key=lambda i: (crossing[i], context[i], -i))
        found.append([*nodes[start:end]])
        start = end
    return [*found, [*nodes[start:]]]


def crossings(nodes: Sequence[Node]) -> list[int]:
    """The weight of the values that cross the place before each node and are read nearby."""
    number = {node: i for i, node in enumerate(nodes)}
    last: dict[Node, int] = {}
    for i, node in enumerate(nodes):
        for x in bases(node.inputs):
            if x in number and i - number[x] <= NEAR:
                last[x] = i
    change = [0] * (len(nodes) + 1)
    for x, i in last.items():
        weight = 4 if getattr(x.type, "shape", True) else 1
        change[number[x] + 1] += weight
        change[i + 1] -= weight
    total, found = 0, []
    for step in change:
        total += step
        found.append(total)
    return found


def contexts(nodes: Sequence[Node]) -> list[int]:
    """A hash of the nodes around the place before each node, the same in every process."""
    said: dict[Type, str] = {}

    def signature(node: Node) -> str:
        if node.type not in said:
            said[node.type] = str(node.type)
        return f"{node.op} {said[node.type]}"

    marks = [
        crc32(" ".join([signature(x) for x in (node, *node.inputs)]).encode()) for node in nodes
    ]
    around = [0, 0, *marks, 0, 0]
    return [hash(tuple(around[i : i + 4])) for i in range(len(nodes) + 1)]


def undivided_places(nodes: Sequence[Node]) -> list[bool]:
    """Whether the place before each node is between a loop and what depends on its steps."""
    whole = [False] * (len(nodes) + 1)
    number = {node: i for i, node in enumerate(nodes)}
    finds = finders(nodes)
    until: dict[Node, int] = {}
    for i, node in enumerate(nodes):
        if node.op is leaf.project:
            until[node.inputs[0]] = i
        elif finds:
            for name in sizes_read(node) & finds.keys():
                until.update(dict.fromkeys(finds[name], i))
    for node, i in until.items():
        if node in number:
            whole[number[node] + 1 : i + 1] = [True] * (i - number[node])
    return whole
