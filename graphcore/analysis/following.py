"""Facts about the dims of tensors, followed from operands to results by the kinds of axes of ops.

Loops, branches and functions of several results are followed inside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from graphcore.ir.axes import values
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node, toposort

from . import control, leaf
from .control import Loop

Fact = TypeVar("Fact")
Facts = dict[str, Fact]
"""Facts about dims of a value; nothing is known about a dim that is missing."""


class Follower(ABC, Generic[Fact]):
    """Follows facts about dims down a graph whose tensors are named."""

    @abstractmethod
    def by_kind(self, node: Node, given: Sequence[Facts[Fact]]) -> list[Facts[Fact]]:
        """The facts of each result of an op; `given` are those of `operands(node)`."""

    @abstractmethod
    def join_facts(self, node: Node, several: Sequence[Facts[Fact]]) -> Facts[Fact]:
        """The facts of a value that is one of several, as steps or branches of `node` decide."""

    @abstractmethod
    def of_steps(self, node: Node, dim: str, sequences: Sequence[Facts[Fact]]) -> Facts[Fact]:
        """The facts about the dim of a loop's steps, in the results of all steps."""

    def follow(
        self, roots: Sequence[Node], sources: Mapping[Node, Facts[Fact]]
    ) -> dict[Node, list[Facts[Fact]]]:
        """The facts of each value of every node that depends on `sources`."""
        found = {node: [facts] for node, facts in sources.items()}
        for node in self.order(roots):
            if node not in found and any(x in found for x in node.inputs):
                found[node] = self.after(node, found, sources)
        return found

    def order(self, roots: Sequence[Node]) -> Sequence[Node]:
        """The nodes to follow, inputs before users."""
        return toposort(roots)

    def after(
        self,
        node: Node,
        found: Mapping[Node, list[Facts[Fact]]],
        sources: Mapping[Node, Facts[Fact]],
    ) -> list[Facts[Fact]]:
        """The facts of each value of a node."""
        given = [facts for x in node.inputs for facts in found.get(x, [{}] * len(values(x.type)))]
        match node.op:
            case leaf.project:
                return [given[node.attrs["index"]]]
            case leaf.tuple_:
                return given
            case control.scan | control.while_loop:
                return self.loop(node, given)
            case control.switch:
                branches = [self.inside(branch, given[1:]) for branch in node.attrs["branches"]]
                return [
                    self.join_facts(node, [given[0], *ys]) for ys in zip(*branches, strict=True)
                ]
            case control.call | control.custom | control.linear:
                return self.inside(node.attrs["body"], given)
        return self.by_kind(node, given)

    def inside(self, body: Graph, given: Sequence[Facts[Fact]]) -> list[Facts[Fact]]:
        """The facts of a body's outputs."""
        sources = {param: facts for param, facts in zip(body.params, given, strict=True) if facts}
        found = self.follow(body.outputs, sources)
        return [found.get(y, [{}])[0] for y in body.outputs]

    def loop(self, node: Node, given: Sequence[Facts[Fact]]) -> list[Facts[Fact]]:
        """The facts of a loop's results; a carry keeps only facts that hold after each step."""
        loop, params = Loop.of(node), list(given)
        n, dim = len(loop.carries), loop.settings.get("dim")
        steps: Facts[Fact] = {}
        if dim is not None:
            groups = loop.params.split(given)
            steps = self.of_steps(node, dim, groups.sequences)
            inner = [{d: fact for d, fact in x.items() if d != dim} for x in groups.sequences]
            params[n : n + len(inner)] = inner
        while True:
            made = self.inside(node.attrs["body"], params)
            carried = [self.join_facts(node, pair) for pair in zip(params[:n], made, strict=False)]
            if carried == params[:n]:
                return [*made[:n], *[{**steps, **facts} for facts in made[n:]]]
            params[:n] = carried
