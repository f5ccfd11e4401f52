"""What the page of a compiled program shows, as data for JSON.

Nodes are shared by the stages, so that a node is described once, under its number; the lines of
each stage refer to it. The form is an object with

``title``
    The inputs and outputs in a line, and which target runs the program.
``stages``
    The stages in order, each {"name", "nodes", "total", "lines"}: how many nodes it has, the cost
    of all of its steps, and its printed lines. A line is [name, text, node, depth, held, times]:
    the name and the rest of what `debug_print` prints; the number of the node, or -1 for a heading,
    the results or a long size; how deep it stands in bodies; how many lines the bodies below it
    have; and how many times a call of the program computes it, by estimate.
``nodes``
    Each [op, operands, ancestors, steps, gone, line, flops, bytes]: the numbers of its operands,
    and of the nodes of these stages that it was made of; the numbers of the steps that made it; for
    a user's node that vanished, of the steps that left it out; the number of its line; its cost.
``passes``
    The names of all passes, in order.
``steps``
    Each [pass, text], as `f.why` words them: what a rule made of what, and where it stands.
``lines``
    The user's lines, each [place, code].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from graphcore.analysis.cost import repetitions
from graphcore.ir import Graph, Node, Size
from graphcore.ir.provenance import Origin, described_by

from .ancestry import Link, askers_of
from .network import cost_of
from .op_text import call
from .printer import legend, return_line
from .text import one_line
from .view import Body, bodies
from .why import Explained

LONGEST = 1000
"""The most characters of a line."""


def page_data(compiled: Any) -> dict[str, Any]:
    """The data of the page of a compiled program."""
    return Data(compiled).document()


class Data:
    """The tables of one page, filled stage by stage."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.found = Explained(compiled)
        self.stages: Mapping[str, Graph] = compiled.stages
        self.numbers: dict[Node, int] = {}
        for graph in self.stages.values():
            for node in graph.every_node():
                self.numbers.setdefault(node, len(self.numbers))
        self.steps: dict[tuple[str, str], int] = {}
        self.lines: dict[tuple[str, str], int] = {}
        self.known_steps: dict[Link, int] = {}

    def document(self) -> dict[str, Any]:
        """The whole."""
        with described_by(self.found.trace):
            stages = [self.stage(name, graph) for name, graph in self.stages.items()]
            nodes = self.nodes()
        return {
            "title": one_line(repr(self.compiled)[1:-1], LONGEST),
            "stages": stages,
            "nodes": nodes,
            "passes": self.found.names,
            "steps": [*self.steps],
            "lines": [*self.lines],
        }

    # ---- lines

    def stage(self, name: str, graph: Graph) -> dict[str, Any]:
        """The lines of a stage."""
        sizes: dict[Size, str] = {}
        lines = self.print_lines(Body("", graph), sizes, 0, 1)
        for line in legend(sizes):
            long, _, size = line.partition(" = ")
            lines.append([long, f"= {one_line(size, LONGEST)}", -1, 0, 0, 0])
        total = sum(finite(x) for node in graph.nodes() for x in cost_of(node))
        return {"name": name, "nodes": len(graph), "total": total, "lines": lines}

    def print_lines(
        self, body: Body, sizes: dict[Size, str], depth: int, times: int
    ) -> list[list[Any]]:
        """The lines of a graph and, after that of each node, those of its bodies."""
        view = body.view(sizes)
        lines = []
        for node in view.lines:
            held = []
            for inner in bodies(node, view):
                held.append(["", f"{inner.heading}:", -1, depth + 1, 0, 0])
                again = times * repetitions(node)
                held += self.print_lines(inner, sizes, depth + 1, again)
            text = one_line(f": {view.type(node)} = {call(node, view)}", LONGEST)
            shown = one_line(view.name(node), LONGEST)
            lines.append([shown, text, self.numbers[node], depth, len(held), times])
            lines += held
        lines.append(["", one_line(return_line(body.graph, view), LONGEST), -1, depth, 0, 0])
        return lines

    # ---- nodes

    def nodes(self) -> list[list[Any]]:
        """The facts of every node, in the order of their numbers."""
        rows = []
        for node in self.numbers:
            ancestors, links = self.made_of(node)
            spent = cost_of(node)
            rows.append(
                [
                    node.op.name,
                    self.node_numbers(node.inputs),
                    self.node_numbers(ancestors),
                    list(dict.fromkeys(map(self.step, self.rule_changes(links)))),
                    [],
                    self.line(self.found.trace.origin(node)),
                    finite(spent.flops),
                    finite(spent.bytes),
                ]
            )
        self.enter_images(rows)
        return rows

    def node_numbers(self, nodes: Iterable[Node]) -> list[int]:
        """The numbers of nodes, each once."""
        return [self.numbers[x] for x in dict.fromkeys(nodes)]

    def made_of(self, node: Node) -> tuple[list[Node], list[Link]]:
        """The nearest nodes of the stages that a node was made of, and the changes on the way."""
        ancestry = self.found.ancestry
        ancestors: dict[Node, None] = {}
        links: dict[Link, None] = {}
        seen, stack = {node}, [node]
        while stack:
            for link in ancestry.parents(stack.pop()):
                links[link] = None
                for x in (link.before, *askers_of(link.asked)):
                    if x in self.numbers and x is not node:
                        ancestors[x] = None
                    elif x not in seen:
                        seen.add(x)
                        stack.append(x)
        return list(ancestors), sorted(links, key=lambda link: link.at)

    def enter_images(self, rows: list[list[Any]]) -> None:
        """Enter nodes that became equal to others, and the steps that left out the user's nodes."""
        ancestry, names = self.found.ancestry, self.found.names
        places = [names.index(name) for name in self.stages]
        for start, end in pairwise(places):
            for node in self.numbers:
                if node in ancestry.present[start] and node not in ancestry.present[end]:
                    for image, way in ancestry.images(node, start, end).found.items():
                        self.join(rows[self.numbers[image]], node, way)
        for node in ancestry.written:
            images = ancestry.images(node, 0, places[-1])
            if not images.found:
                step, _ = self.found.removal(images.last, images.at, places[-1])
                rows[self.numbers[node]][4] = [self.step_number(step.stage, f"left out by {step}")]

    def join(self, row: list[Any], node: Node, way: Iterable[Link]) -> None:
        """Enter one more ancestor of a node."""
        if self.numbers[node] not in row[2]:
            row[2].append(self.numbers[node])
            new = map(self.step, self.rule_changes(way))
            row[3] = list(dict.fromkeys([*row[3], *new]))

    # ---- tables

    def rule_changes(self, links: Iterable[Link]) -> list[Link]:
        """The changes that rules made."""
        return [link for link in links if link.rule is not None]

    def step(self, link: Link) -> int:
        """The number of a step."""
        if (known := self.known_steps.get(link)) is None:
            step = self.found.step(link)
            known = self.known_steps[link] = self.step_number(step.stage, str(step))
        return known

    def step_number(self, stage: str, text: str) -> int:
        """The number of a step in words."""
        return self.steps.setdefault((stage, one_line(text, LONGEST)), len(self.steps))

    def line(self, origin: Origin) -> int:
        """The number of a user's line."""
        shown = one_line(str(origin), LONGEST), one_line(origin.code, LONGEST)
        return self.lines.setdefault(shown, len(self.lines))


def finite(x: float) -> float:
    """A number that JSON can hold."""
    return min(x, 1e300)
