"""The names of axes on stages that know them by position alone, for people to read.

Lowering leaves `labels` on the nodes it makes. Nodes that later passes make have none: their labels
follow from those of their operands by the kind of the op's axes. An axis that is still unlabelled
takes the label that it has in pointwise ops which use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphcore.ir import Graph, Node
from graphcore.ir.axes import How, Pointwise, values
from graphcore.ops import control

Labels = tuple[str | None, ...]


def infer(nodes: Iterable[Node]) -> dict[Node, list[Labels]]:
    """Labels for the axes of each value of every node, None where unknown; inputs come first."""
    known: dict[Node, list[Labels]] = {}
    for node in nodes:
        known[node] = labels_of(node, known)
    for node in reversed(known):
        if isinstance(node.op.axes, Pointwise):
            for x in node.inputs:
                if None in known[x][0]:
                    known[x] = [merge(known[x][0], known[node][0])]
    return known


def labels_of(node: Node, known: Mapping[Node, list[Labels]]) -> list[Labels]:
    """The labels of each value of one node, given those of its operands."""
    types = values(node.type)
    own = [node.labels if type is node.type else type.dims for type in types]
    if all(labels is not None and None not in labels for labels in own):
        return [labels or () for labels in own]
    given = [labels for x in node.inputs for labels in known[x]]
    if held := control.computed_bodies(node):
        return of_body(node, held[-1], given, own)
    found = []
    for type, labels, sources in zip(types, own, node.op.axes.sources(node), strict=True):
        inferred: list[Labels] = [labels or (None,) * type.ndim]
        for operand, axes in zip(given, sources, strict=True):
            inferred.append(
                tuple(
                    None if source is None or source.how is How.PART else operand[source.axes[0]]
                    for source in axes
                )
            )
        found.append(merge(*inferred))
    return found


def of_body(
    node: Node, body: Graph, given: Sequence[Labels], own: Sequence[Labels | None]
) -> list[Labels]:
    """The labels of each value that a body computes: steps are along the dim of its sequences."""
    n, m = node.attrs.get("carries", len(own)), node.attrs.get("sequences", 0)
    dim = next((labels[0] for labels in given[n : n + m] if labels[0]), None)
    made = [y.labels or (None,) * y.type.ndim for y in body.outputs]
    start = given if node.op in control.LOOPS else made
    inferred = [*start[:n], *[(dim, *labels) for labels in made[n:]]]
    return [merge(labels or other, other) for labels, other in zip(own, inferred, strict=True)]


def merge(*operands: Labels) -> Labels:
    """Axis by axis the first label known."""
    first, *rest = operands
    if None not in first or not rest:
        return first
    return tuple(next(filter(None, axis), None) for axis in zip(*operands, strict=True))
