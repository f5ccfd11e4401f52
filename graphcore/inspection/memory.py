"""The bytes that a call holds over time, by the order of its steps and the sizes of the call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from graphcore.analysis.cost import Number, bytes_of
from graphcore.ir import Graph, Node, Trait
from graphcore.ir.graph import bodies_of
from graphcore.ir.help_text import attributes
from graphcore.ir.provenance import Origin
from graphcore.ops import control, leaf
from graphcore.schedule.buffers import can_overwrite, roots
from graphcore.schedule.order import in_order

from .printed import PrintedNodes


class Held(NamedTuple):
    """A value in memory: its step, its bytes, and the user's line."""

    name: str
    bytes: int
    line: Origin | None


@attributes(
    peak="The most bytes.",
    at="The step at which they are held.",
    holders="The values that are held there, the largest first.",
    timeline="The bytes held at each step, in order.",
)
@dataclass(frozen=True)
class Memory:
    """The bytes of the values that a call holds at the same time, arguments and constants aside.

    They follow from the order of the steps and from the sizes of the call, each step as one call
    of NumPy; machine code keeps fewer values.
    """

    peak: int
    at: str
    holders: tuple[Held, ...]
    timeline: tuple[tuple[str, int], ...]


def memory(graph: Graph, number: Number) -> Memory:
    """The values that a call holds over time."""
    printed = PrintedNodes(graph)

    def describe(node: Node) -> Held:
        found = printed.of.get(node)
        name = node.said if found is None else found.name
        return Held(name, bytes_of(node.type, number), node.origin)

    timeline: list[tuple[str, int]] = []
    most, at, holders = 0, "", [*()]
    for node, nodes in moments(graph, number):
        total = bytes_held(nodes, number)
        timeline.append((describe(node).name, total))
        if total > most:
            most, at, holders = total, timeline[-1][0], nodes
    ordered = sorted([x for x in map(describe, holders) if x.bytes], key=lambda x: -x.bytes)
    return Memory(most, at, tuple(ordered), tuple(timeline))


def moments(graph: Graph, number: Number) -> Iterator[tuple[Node, list[Node]]]:
    """Each step of a graph, and the nodes whose values are in memory while it runs.

    While a loop runs, these are its results, and what its body holds at most.
    """
    nodes = in_order(graph.nodes())
    root = roots(nodes)
    last = {root[x]: step for step, node in enumerate(nodes) for x in node.inputs}
    last |= {root[x]: len(nodes) for x in graph.outputs}
    alive: dict[Node, None] = {}
    for step, node in enumerate(nodes):
        dying = [x for x in dict.fromkeys([root[x] for x in node.inputs]) if last[x] == step]
        if root[node] is node and takes_memory(node, graph):
            over = next((x for x in dying if x in alive and can_overwrite(node, x, root)), None)
            if over is not None:
                del alive[over]
            alive[node] = None
            held = [most_held(body, number) for body in bodies_of(node)]
            if node.op is control.scan and number(node.attrs["length"]) == 0:
                held = []
            elif node.op is control.switch:
                held = [max(held, key=lambda nodes: bytes_held(nodes, number))]
            inner = [x for nodes in held for x in nodes]
            yield node, [*alive, *inner]
        for x in dying:
            alive.pop(x, None)
        if node not in last:
            alive.pop(node, None)


def takes_memory(node: Node, graph: Graph) -> bool:
    """Whether a node that is not a view has new memory: not an argument and not a constant."""
    given = node.op in (leaf.input_, leaf.constant) or node in graph.params
    return not given and Trait.FREE not in node.op.traits


def most_held(body: Graph, number: Number) -> list[Node]:
    """The nodes of a body whose values are in memory when these take the most."""
    return max(
        [nodes for _, nodes in moments(body, number)],
        key=lambda nodes: bytes_held(nodes, number),
        default=[],
    )


def bytes_held(nodes: Iterable[Node], number: Number) -> int:
    """The bytes of the values of some nodes together."""
    return sum([bytes_of(x.type, number) for x in nodes])
