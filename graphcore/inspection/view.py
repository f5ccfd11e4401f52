"""What a printed graph calls each node, and the labels of its axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from graphcore.ir.node import Node
from graphcore.ir.types import TensorType, show_tensor
from graphcore.ops import leaf

from .labels import Labels, infer, items_of
from .text import few, show_literal, show_name

MOST_TYPES = 2


class View:
    """Nodes with a line of their own are numbered; the others stand where they are used.

    Parameters
    ----------
    nodes
        All nodes in the order of their lines, inputs first.
    inputs
        How each input is called.
    outputs
        Nodes that have a line even if they are numbers.
    """

    __slots__ = ("inputs", "labels", "lines", "numbers")

    def __init__(
        self, nodes: Iterable[Node], inputs: Mapping[Node, str], outputs: Collection[Node]
    ) -> None:
        every = list(nodes)
        self.inputs = inputs
        self.labels: dict[Node, Labels] = infer(every)
        self.lines = [node for node in every if node in outputs or not stands_inline(node)]
        numbered = (node for node in self.lines if node not in inputs)
        self.numbers = {node: number for number, node in enumerate(numbered)}

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
            return show_tensor(node.type, self.labels[node])
        items = zip(node.type.items, items_of(node, self.labels), strict=True)
        return f"({few((show_tensor(*item) for item in items), MOST_TYPES)})"


def stands_inline(node: Node) -> bool:
    """Whether a node is read best where it is used: a number, or one value of several."""
    scalar = node.op is leaf.constant and not node.type.shape
    return scalar or node.op is leaf.full or node.op is leaf.project


def input_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """What each input is called; those that would look alike are told apart."""
    names: dict[Node, str] = {}
    seen: dict[str, int] = {}
    for node in nodes:
        if node.op is leaf.input_:
            shown = show_name(node.attrs["name"])
            seen[shown] = seen.get(shown, 0) + 1
            names[node] = shown if seen[shown] == 1 else f"{shown}#{seen[shown]}"
    return names
