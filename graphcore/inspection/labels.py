"""The names of axes on stages that know them by position alone, for people to read.

Lowering leaves `labels` on the nodes it makes. Nodes that later passes make have none: their labels
follow from those of their operands by the kind of the op's axes. An axis that is still unlabelled
takes the label that it has in pointwise ops which use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphcore.analysis.dataflow import Forward, Known, Operands
from graphcore.ir import Node
from graphcore.ir.axes import How, Pointwise, Source, values

Labels = tuple[str | None, ...]


class AxisLabels(Forward[Labels]):
    """Labels for the axes of values, None where unknown."""

    unknown: Labels = ()

    def join(self, node: Node, several: Sequence[Labels]) -> Labels:
        """Axis by axis the first label known."""
        return merge(*several)

    def one_step(self, node: Node, x: Node, fact: Labels) -> Labels:
        """Steps are along the first axis of a sequence."""
        return fact[1:]

    def all_steps(self, node: Node, fact: Labels, given: Sequence[Labels]) -> Labels:
        """They are along the dim of its sequences."""
        n, m = node.attrs["carries"], node.attrs.get("sequences", 0)
        return next((labels[0] for labels in given[n : n + m] if labels[0]), None), *fact

    def after(self, node: Node, given: Operands[Labels], known: Known[Labels]) -> Sequence[Labels]:
        """A value's own labels come first."""
        types = values(node.type)
        found = [(node.labels if type is node.type else type.dims) or () for type in types]
        if all(len(own) == type.ndim and None not in own for own, type in zip(found, types)):
            return found
        return list(map(merge, found, super().after(node, given, known)))

    def of_node(
        self, node: Node, given: Operands[Labels], known: Known[Labels]
    ) -> Sequence[Labels]:
        """Those of the axes of operands that an axis has the elements of."""
        own = self.each(node, given)
        return [
            merge(
                (None,) * type.ndim,
                *[tuple([label(x, source) for source in axes]) for x, axes in zip(own, sources)],
            )
            for type, sources in zip(values(node.type), node.op.axes.sources(node), strict=True)
        ]


LABELS = AxisLabels()


def infer(nodes: Iterable[Node]) -> Known[Labels]:
    """Labels for the axes of each value of every node, None where unknown; inputs come first."""
    known: Known[Labels] = {}
    for node in nodes:
        LABELS.find(node, known)
    for node in reversed([*known]):
        if isinstance(node.op.axes, Pointwise):
            for x in node.inputs:
                if None in known[x][0]:
                    known[x] = [merge(known[x][0], known[node][0])]
    return known


def label(operand: Labels, source: Source | None) -> str | None:
    """The label of an axis that has the elements of an axis of an operand."""
    return None if source is None or source.how is How.PART else operand[source.axes[0]]


def merge(*operands: Labels) -> Labels:
    """Axis by axis the first label known."""
    return tuple(
        next(filter(None, axis), None) for axis in zip(*filter(None, operands), strict=True)
    )
