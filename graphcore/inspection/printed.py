"""Nodes by their printed names: `%12`, `x`, and `%7 body %3` inside of the loop `%7`."""

from __future__ import annotations

from typing import NamedTuple

from graphcore.ir import Graph, Node
from graphcore.ir.provenance import described_by, thread_state

from .op_text import call
from .text import one_line
from .view import Body, View, bodies, stands_inline


class PrintedNode(NamedTuple):
    """A node and the name by which its stage prints it.

    The name of a node in a body is the way there: the name of the node that holds the body, the
    body's heading, and the name in the body.
    """

    name: str
    node: Node
    view: View

    @property
    def line(self) -> str:
        """The line that `debug_print` prints, without the origin: `%3: f64[row=3] = exp(%2)`."""
        return f"{self.name}: {self.view.type(self.node)} = {call(self.node, self.view)}"


class PrintedNodes:
    """Every node of a stage by its printed name, those of bodies included."""

    def __init__(self, graph: Graph) -> None:
        self.named: dict[str, PrintedNode] = {}
        self.of: dict[Node, PrintedNode] = {}
        with described_by(graph.trace or thread_state.trace):
            self.enter(Body("", graph), "")

    def enter(self, body: Body, way: str) -> None:
        """Enter the nodes of a graph, whose own names come after `way`."""
        view = body.view({})
        for node in body.graph.nodes():
            printed = PrintedNode(f"{way}{one_line(view.name(node))}", node, view)
            if not stands_inline(node) or node.inputs or node in view.numbers:
                self.named.setdefault(printed.name, printed)
            self.of.setdefault(node, printed)
            for held in bodies(node, view):
                self.enter(held, f"{printed.name} {held.heading.partition(',')[0]} ")
