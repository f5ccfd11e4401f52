"""Facts about the dims of tensors, followed from operands to results by the kinds of axes of ops.

Loops, branches and functions of several results are followed inside.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from graphcore.ir import Graph, Node
from graphcore.ir.axes import values

from .dataflow import Forward, Known

Fact = TypeVar("Fact")
Facts = dict[str, Fact]
"""Facts about dims of a value; nothing is known about a dim that is missing."""
NOTHING: Facts[Any] = {}


class Follower(Forward[Facts[Fact]]):
    """Follows facts about dims down a graph whose tensors are named."""

    unknown = NOTHING

    @abstractmethod
    def by_kind(self, node: Node, given: Sequence[Facts[Fact]]) -> list[Facts[Fact]]:
        """The facts of each result of an op, given those of `operands(node)`."""

    def follow(
        self, roots: Sequence[Node], sources: Mapping[Node, Facts[Fact]]
    ) -> Known[Facts[Fact]]:
        """The facts of each value of every node below the roots."""
        found: Known[Facts[Fact]] = {node: [facts] for node, facts in sources.items()}
        for root in roots:
            self.find(root, found)
        return found

    def of_node(
        self, node: Node, given: Sequence[Facts[Fact]], known: Known[Facts[Fact]]
    ) -> Sequence[Facts[Fact]]:
        """Of what depends on no source nothing is known."""
        return self.by_kind(node, given) if any(given) else [{} for _ in values(node.type)]

    def of_outputs(self, graph: Graph, given: Iterable[Facts[Fact]]) -> list[Facts[Fact]]:
        """The facts of a body's outputs."""
        found = self.follow(graph.outputs, dict(zip(graph.params, given, strict=True)))
        return [found[y][0] for y in graph.outputs]

    def one_step(self, node: Node, x: Node, fact: Facts[Fact]) -> Facts[Fact]:
        """A step lacks the dim of the loop."""
        return {dim: own for dim, own in fact.items() if dim != node.attrs["dim"]}

    def last(
        self,
        node: Node,
        given: Sequence[Facts[Fact]],
        params: Sequence[Facts[Fact]],
        made: Sequence[Facts[Fact]],
    ) -> Sequence[Facts[Fact]]:
        """What a step makes."""
        return made[: node.attrs["carries"]]

    def chosen(self, node: Node, index: Facts[Fact], several: Sequence[Facts[Fact]]) -> Facts[Fact]:
        """What decides counts as well."""
        return self.join(node, [index, *several])
