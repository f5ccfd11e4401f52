"""Regions: pointwise nodes that can run together, each as one `kernel` node with a closed body.

The params of a body are numbered, so that equal regions, such as the layers of a network or the
blocks of a chain, have equal bodies: a backend compiles each body once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Trait
from graphcore.ir.trace import Rule
from graphcore.ir.transform import substitute, transform
from graphcore.ops import leaf, tensor
from graphcore.ops.schedule import kernel


class Region(NamedTuple):
    """A body, the values it is given, and the nodes that its outputs stand for."""

    body: Graph
    operands: tuple[Node, ...]
    outputs: tuple[Node, ...]


def groups(graph: Graph) -> list[list[Node]]:
    """The pointwise nodes that can run together, in order: joined by values, and of one shape.

    No group waits for itself. Every other op but `expand` begins a new level, as does a shape that
    is only equal at the call, and a group lies within one level; `expand` leads to shapes of
    more axes, from which no pointwise op leads back.
    """
    level: dict[Node, int] = {}
    parent: dict[Node, Node] = {}

    def representative(node: Node) -> Node:
        while (above := parent[node]) is not node:
            parent[node] = node = parent[above]
        return node

    for node in graph.nodes():
        level[node] = max((level[x] + separates(x, node) for x in node.inputs), default=0)
        if node.op.pointwise:
            parent[node] = node
            for x in node.inputs:
                if x in parent and level[x] == level[node]:
                    parent[representative(x)] = representative(node)
    found: dict[Node, list[Node]] = {}
    for node in parent:
        found.setdefault(representative(node), []).append(node)
    return list(found.values())


def separates(x: Node, node: Node) -> bool:
    """Whether a node cannot run in the same region as its operand `x`, nor in any before it."""
    if x.op.pointwise and node.op.pointwise:
        return bool(x.type.shape != node.type.shape)
    return bool(x.inputs) and not x.op.pointwise and x.op is not tensor.expand


def is_repeated(node: Node) -> bool:
    """Whether a node costs nothing inside a region: every one that reads it has it in its body."""
    free = Trait.FREE in node.op.traits and node.op is not leaf.constant  # which lies in memory
    return free or node.op is tensor.expand


def operands_of(nodes: Sequence[Node]) -> list[Node]:
    """The values that a region of these nodes is given, in order of first use."""
    own, found = set(nodes), dict[Node, None]()
    for node in nodes:
        waiting = [*node.inputs[::-1]]
        while waiting:
            x = waiting.pop()
            if is_repeated(x):
                waiting += x.inputs[::-1]
            elif x not in own:
                found[x] = None
    return list(found)


def body_of(operands: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """The closed graph from operands to outputs, with params that only their number tells apart."""
    done = {
        x: leaf.input_(name=f"operand {i}", dtype=x.type.dtype, shape=x.type.shape, dims=None)
        for i, x in enumerate(operands)
    }
    params = tuple(done.values())
    return Graph(params, substitute(outputs, done))


def regions(graph: Graph, least: int = 2) -> list[Region]:
    """The regions of a graph that hold at least so many pointwise nodes."""
    readers: dict[Node, set[Node]] = {}
    for node in graph.nodes():
        for x in node.inputs:
            readers.setdefault(x, set()).add(node)
    held = set(graph.outputs)
    bodies: dict[Graph, Graph] = {}
    found = []
    for nodes in groups(graph):
        if len(nodes) >= least:
            own = set(nodes)
            outputs = tuple([y for y in nodes if y in held or not readers.get(y, own) <= own])
            operands = operands_of(nodes)
            body = body_of(operands, outputs)
            found.append(Region(bodies.setdefault(body, body), tuple(operands), outputs))
    return found


def with_kernels(graph: Graph) -> Graph:
    """The same graph with every region as one `kernel` node, in the bodies of loops as well."""
    region_of = {y: region for region in regions(graph) for y in region.outputs}

    def operands(node: Node) -> tuple[Node, ...]:
        return region_of[node].operands if node in region_of else node.inputs

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if (region := region_of.get(node)) is None:
            return None
        return with_kernels, kernel(*inputs, body=region.body)[region.outputs.index(node)]

    return transform(graph, visit, bodies=with_kernels, operands=operands)


def without_kernels(graph: Graph) -> Graph:
    """The same graph with the nodes of every kernel's body in its place."""
    if kernel not in graph.ops():
        return graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op is kernel:
            body = node.attrs["body"]
            values = substitute(body.outputs, dict(zip(body.params, inputs, strict=True)))
            return without_kernels, leaf.tuple_(*values)
        if node.op is leaf.project and node.inputs[0].op is kernel:
            return without_kernels, inputs[0].inputs[node.attrs["index"]]
        return None

    inlined = transform(graph, visit, bodies=without_kernels)
    return Graph(inlined.params, inlined.outputs, graph.trace)
