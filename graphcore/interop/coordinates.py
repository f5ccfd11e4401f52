"""Which dims of a program's results are dims of its inputs, element by element.

A dim keeps the coordinate of an input where each of its elements still stands for the same element
of that input. Decided from the user's graph alone, by the kinds of axes of its ops.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.ir.axes import How, operands, values
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops.following import Facts, Follower

Source = tuple[int, str]
"""The number of a param, and one of its dims."""

Origin = frozenset[Source] | None
"""The dims of inputs that a dim equals element by element; None where its elements are others."""


def sources(graph: Graph) -> list[Facts[Origin]]:
    """The sources of each output; a dim that is missing is new, and takes any coordinate."""
    given: dict[Node, Facts[Origin]] = {
        node: {dim: frozenset([(number, dim)]) for dim in node.type.dims}
        for number, node in enumerate(graph.params)
    }
    found = Origins().follow(graph.outputs, given)
    return [found.get(y, [{}])[0] for y in graph.outputs]


class Origins(Follower[Origin]):
    """Follows dims to the inputs that they come from."""

    def by_kind(self, node: Node, given: Sequence[Facts[Origin]]) -> list[Facts[Origin]]:
        """Elements that an op moves are lost, unless another operand keeps its own in place."""
        types = operands(node)
        results: list[Facts[Origin]] = []
        for y, by_operand in zip(values(node.type), node.op.axes.sources(node), strict=True):
            new: Facts[Origin] = {}
            for axis, dim in enumerate(y.dims or ()):
                kept: list[Origin] = []
                moved = False
                for x, facts, axes in zip(types, given, by_operand, strict=True):
                    match axes[axis]:
                        case (own, How.EACH | How.ALONG):
                            kept.append(facts.get((x.dims or ())[own[0]], frozenset()))
                        case (_, How.MOVED | How.PART):
                            moved = True
                new[dim] = both(kept) if kept or not moved else None
            results.append(new)
        return results

    def joined(self, node: Node, several: Sequence[Facts[Origin]]) -> Facts[Origin]:
        """A dim has the sources that it has in all values together."""
        dims = dict.fromkeys(dim for facts in several for dim in facts)
        return {dim: both([facts[dim] for facts in several if dim in facts]) for dim in dims}

    def of_steps(self, node: Node, dim: str, sequences: Sequence[Facts[Origin]]) -> Facts[Origin]:
        """The results of all steps are at the positions of the sequences' elements."""
        return {dim: both([facts[dim] for facts in sequences if dim in facts])}


def both(some: Sequence[Origin]) -> Origin:
    """The sources of a dim along which several values are aligned."""
    return None if None in some else frozenset().union(*filter(None, some))
