"""The names of nodes in a printed graph, and the labels of their axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from graphcore.ir import Graph, Node, Size, TensorType
from graphcore.ir.provenance import called_often
from graphcore.ir.types import spell_tensor
from graphcore.ops import control, leaf
from graphcore.ops.control import LOOPS, Loop

from .axis_labels import Labels, infer, labels_of_params, places_of
from .text import few, show_literal, show_name

MOST_TYPES = 2
LONGEST_SIZE = 24


class View:
    """Nodes with a line of their own are numbered; the others stand where they are used.

    `nodes` are all of them in the order of their lines, inputs first; `inputs` is how each input is
    called. `outputs` have a line even if they are numbers. `sizes` are the names of sizes too long
    for a line, to which this view adds its own. `labels` are those of params of a body, `places`
    the axes of a mesh along which dims lie.
    """

    __slots__ = ("inputs", "items", "labels", "lines", "numbers", "places", "shared", "sizes")

    def __init__(
        self,
        nodes: Iterable[Node],
        inputs: Mapping[Node, str],
        outputs: Collection[Node],
        sizes: dict[Size, str],
        labels: Mapping[Node, Labels] = {},
        places: Mapping[str, str] = {},
    ) -> None:
        every = list(nodes)
        self.inputs, self.sizes, self.places = inputs, sizes, places
        self.items = infer(every, labels)
        self.labels: dict[Node, Labels] = {
            node: labels[0] for node, labels in self.items.items() if labels
        }
        self.lines = [node for node in every if node in outputs or not stands_inline(node)]
        numbered = (node for node in self.lines if node not in inputs)
        self.numbers = {node: number for number, node in enumerate(numbered)}
        self.shared = called_often(node.origin for node in self.lines)

    def name(self, node: Node) -> str:
        """How `node` is called where it is used."""
        if (number := self.numbers.get(node)) is not None:
            return f"%{number}"
        if node.op is leaf.project:
            return f"{self.name(node.inputs[0])}[{node.attrs['index']}]"
        return self.inputs.get(node) or show_literal(node.attrs["value"])

    def names(self, nodes: Iterable[Node]) -> str:
        """Several names between commas."""
        return few(map(self.name, nodes))

    def type(self, node: Node) -> str:
        """The type, with the labels of its axes."""
        if isinstance(node.type, TensorType):
            return self.tensor(node.type, self.labels[node])
        items = zip(node.type.items, self.items[node], strict=True)
        return f"({few((self.tensor(*item) for item in items), MOST_TYPES)})"

    def tensor(self, type: TensorType, labels: Labels) -> str:
        """The type of a tensor with such labels."""
        places = places_of(labels, self.places) if self.places else ()
        return spell_tensor(type, labels, self.size, places)

    def size(self, size: Size) -> str:
        """A size, or the name that stands for a long one."""
        shown = str(size)
        if len(shown) <= LONGEST_SIZE:
            return shown
        return self.sizes.setdefault(size, f"#{len(self.sizes)}")


def stands_inline(node: Node) -> bool:
    """Whether a node is read best where it is used: a number, or one value of several."""
    scalar = node.op is leaf.constant and not node.type.shape
    return scalar or node.op is leaf.full or node.op is leaf.project


def input_names(nodes: Iterable[Node], given: Mapping[Node, str] = {}) -> dict[Node, str]:
    """The names of inputs, unless they are `given`; names that would look alike are numbered."""
    names: dict[Node, str] = {}
    seen: dict[str, int] = {}
    for node in leaf.inputs_among(nodes):
        if node not in given:
            shown = show_name(node.attrs["name"])
            seen[shown] = seen.get(shown, 0) + 1
            names[node] = shown if seen[shown] == 1 else f"{shown}#{seen[shown]}"
    return names | {x: f"outer {given[x]}" if given[x] in seen else given[x] for x in given}


class Body(NamedTuple):
    """A body under its heading: the names of params for captured values, and labels of params."""

    heading: str
    graph: Graph
    names: Mapping[Node, str] = {}
    labels: Mapping[Node, Labels] = {}

    def view(self, sizes: dict[Size, str], places: Mapping[str, str] = {}) -> View:
        """The names and lines of its nodes."""
        nodes = list(self.graph.nodes())
        names = input_names(nodes, self.names)
        return View(nodes, names, set(self.graph.outputs), sizes, self.labels, places)


def bodies(node: Node, view: View) -> list[Body]:
    """The bodies of a node; they name captured values as `view` does, marked `outer`.

    The params stand for the node's operands in order; carries and sequences keep their own names.
    """
    operands = control.given_to_bodies(node, node.inputs)
    computed = control.computed_bodies(node)
    own = 0
    if node.op in LOOPS:
        own = len(operands) - len(Loop.of(node).captured)
    found = []
    for key, value in node.attrs.items():
        held = {key: value}
        if isinstance(value, tuple):
            said = COND if node.origin.function == "cond" else {}
            held = {f"{key}[{i}]{said.get(i, '')}": part for i, part in enumerate(value)}
        for heading, graph in held.items():
            if isinstance(graph, Graph):
                pairs = zip(graph.params[own:], operands[own:], strict=False)
                names = {param: outer(view.name(x)) for param, x in pairs}
                inside = graph in computed
                labels = labels_of_params(node, graph, view.items) if inside else {}
                found.append(Body(heading, graph, names, labels))
    return found


COND = {0: ", otherwise", 1: ", then"}
"""The words after the headings of the branches of `gc.cond`."""


def outer(name: str) -> str:
    """A name as bodies show it: `outer %4`, as lines are numbered anew in each graph."""
    return f"outer {name}" if name.startswith(("%", "outer ")) else name
