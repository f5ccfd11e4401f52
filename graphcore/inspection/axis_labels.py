"""The names of axes on stages that know them by position alone, for people to read.

Lowering leaves `labels` on the nodes it makes. Nodes that later passes make have none: their labels
follow from those of their operands by the kind of the op's axes. An axis that is still unlabelled
takes the label that it has in pointwise ops which use it. Params of bodies have the labels of what
stands for them outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphcore.ir import Graph, Node
from graphcore.ir.axes import How, Pointwise, values
from graphcore.ops import control

Labels = tuple[str | None, ...]


def infer(nodes: Iterable[Node], given: Mapping[Node, Labels] = {}) -> dict[Node, list[Labels]]:
    """Labels for the axes of each value of every node, None where unknown; inputs come first.

    `given` are labels of the params of a body.
    """
    known: dict[Node, list[Labels]] = {}
    for node in nodes:
        known[node] = labels_of(node, known)
        if node in given:
            known[node] = [merge(known[node][0], given[node])]
    for node in reversed(known):
        if isinstance(node.op.axes, Pointwise):
            for x in node.inputs:
                if None in known[x][0]:
                    known[x] = [merge(known[x][0], known[node][0])]
    return known


def infer_inside(
    graph: Graph, given: Mapping[Node, Labels] = {}
) -> Iterator[tuple[Graph, dict[Node, list[Labels]]]]:
    """A graph and the bodies that it computes, at any depth, each with the labels of its nodes."""
    known = infer(graph.nodes(), given)
    yield graph, known
    for node in known:
        for body in control.computed_bodies(node):
            yield from infer_inside(body, labels_of_params(node, body, known))


def labels_of(node: Node, known: Mapping[Node, list[Labels]]) -> list[Labels]:
    """The labels of each value of one node, given those of its operands."""
    types = values(node.type)
    own = [node.labels if type is node.type else type.dims for type in types]
    if all(labels is not None and None not in labels for labels in own):
        return [labels or () for labels in own]
    if control.computed_bodies(node):
        return of_bodies(node, known, own)
    given = [labels for x in node.inputs for labels in known[x]]
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


def of_bodies(
    node: Node, known: Mapping[Node, list[Labels]], own: Sequence[Labels | None]
) -> list[Labels]:
    """The labels of each value that bodies compute, given those of the node's operands.

    A loop's carries are its operands, and its steps are along the dim of its sequences.
    """
    several = []
    is_loop = node.op in control.LOOPS
    held = control.computed_bodies(node)
    for body in held[-1:] if is_loop else held:  # the condition of a loop computes none
        inner = infer(body.nodes(), labels_of_params(node, body, known))
        several.append([inner[y][0] for y in body.outputs])
    if is_loop:
        (made,), n = several, node.attrs["carries"]
        dim = dim_of_steps(node, known)
        made[n:] = [(dim, *labels) for labels in made[n:]]
        several.insert(0, [*(known[x][0] for x in node.inputs[:n]), *made[n:]])
    return [
        merge(*inferred) if labels is None else merge(labels, *inferred)
        for labels, *inferred in zip(own, *several, strict=True)
    ]


def labels_of_params(
    node: Node, body: Graph, known: Mapping[Node, list[Labels]]
) -> dict[Node, Labels]:
    """The labels of the params of a body that `node` computes, given those of its operands."""
    given = [*control.given_to_bodies(node, [known[x][0] for x in node.inputs])]
    n, m = node.attrs.get("carries", 0), node.attrs.get("sequences", 0)
    given[n : n + m] = [labels[1:] for labels in given[n : n + m]]
    return dict(zip(body.params, given, strict=True))


def dim_of_steps(node: Node, known: Mapping[Node, list[Labels]]) -> str | None:
    """The label of the axis along which a loop takes its steps."""
    n, m = node.attrs["carries"], node.attrs.get("sequences", 0)
    return next((dim for x in node.inputs[n : n + m] if (dim := known[x][0][0])), None)


def places_of(labels: Labels, places: Mapping[str, str]) -> tuple[str | None, ...]:
    """The axis of a mesh for each axis of a value, given that of each dim; each is used once."""
    found: list[str | None] = []
    for label in labels:
        place = None if label is None else places.get(label)
        found.append(None if place in found else place)
    return tuple(found)


def merge(*operands: Labels) -> Labels:
    """Axis by axis the first label known."""
    first, *rest = operands
    if None not in first or not rest:
        return first
    return tuple(next(filter(None, axis), None) for axis in zip(*operands, strict=True))
