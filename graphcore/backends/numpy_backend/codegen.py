"""The source: one Python function of NumPy calls, a line for each node."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, code
from graphcore.ir.types import DType, show_dtype
from graphcore.ops import leaf, tensor

from .emit import EMIT, shape_of
from .plan import BUFFERED, VIEWS, Buffer, plan

FRESH = frozenset({tensor.argmax, tensor.argmin, tensor.argsort, tensor.searchsorted})
"""Ops for which NumPy makes a new array, if the result has axes."""


class Code(NamedTuple):
    """A generated function: its source, what its names stand for, and the node of each line."""

    source: str
    scope: dict[str, Any]
    lines: dict[int, Node]
    buffers: tuple[Buffer, ...]
    places: dict[Node, str]


class Writer:
    """Spells nodes, sizes and functions; only names it has made itself reach the source."""

    def __init__(self, graph: Graph, unknowns: tuple[str, ...]) -> None:
        self.scope: dict[str, Any] = {}
        self.text: list[str] = []
        self.lines: dict[int, Node] = {}
        self.thins: dict[Node, str] = {}
        self.wholes: dict[Node, str] = {}
        self.unknowns = {name: f"n{i}" for i, name in enumerate(unknowns)}
        self.planned, self.homes = plan(graph.nodes(), graph.outputs)
        self.comments: dict[Any, str] = {}
        self.buffers: dict[Buffer, str] = {}
        self.made: dict[Node, str] = {}
        self.literals: dict[Literal, str] = {}
        self.constants: list[str] = []

    def bind(self, name: str, value: Any) -> str:
        """A global name of the generated function."""
        self.scope.setdefault(name, value)
        return name

    def special(self, name: str) -> str:
        """A SciPy special function, imported when the first graph needs it."""
        import scipy.special

        return self.bind(name, getattr(scipy.special, name))

    def dtype(self, dtype: DType) -> str:
        """A dtype by its short name."""
        return self.bind(show_dtype(dtype), dtype)

    def literal(self, value: Literal) -> str:
        """A value known now, by a name that a comment explains."""
        if (name := self.literals.get(value)) is None:
            name = self.literals[value] = self.bind(f"c{len(self.literals)}", value.array)
            self.constants.append(f"    # {name} = {value!r:.60}".splitlines()[0])
        return name

    def size(self, size: Size) -> str:
        """A size, worked out at the call."""
        return code(size, self.unknowns)

    def line(self, text: str, node: Node) -> None:
        """One statement, with the node's type and origin beside it."""
        key = (node.type, node.origin)
        if (said := self.comments.get(key)) is None:
            said = self.comments[key] = self.comment(node)
        self.text.append(f"    {text}  # {said}")
        self.lines[len(self.text)] = node

    def comment(self, node: Node) -> str:
        """A node's type, in sizes as no dim may reach the source, and its line, printable."""
        sizes = ", ".join(map(self.size, node.type.shape))
        text = f"{show_dtype(node.type.dtype)}[{sizes}]  {node.origin}"
        return (text if text.isprintable() else ascii(text))[:120]

    def thin(self, node: Node) -> str:
        """`node`, or what broadcasts to it."""
        return self.thins[node]

    def whole(self, node: Node) -> str:
        """`node` with all its places."""
        if node in self.wholes:
            return self.wholes[node]
        if self.is_full_shape(node):
            return self.thins[node]
        name = f"w{len(self.wholes)}"
        shape = shape_of(node.type.shape, self)
        broadcast = self.bind("broadcast_to", np.broadcast_to)
        self.line(f"{name} = {broadcast}({self.thins[node]}, {shape})", node)
        self.wholes[node] = name
        return name

    def is_full_shape(self, node: Node) -> bool:
        """Whether the thin spelling of `node` has all its places."""
        return not node.type.shape or node.op not in (leaf.full, tensor.expand)

    def empty(self, node: Node) -> str:
        """A new array for the result."""
        shape = shape_of(node.type.shape, self)
        return f"{self.bind('empty', np.empty)}({shape}, {self.dtype(node.type.dtype)})"

    def emit(self, node: Node, number: int) -> None:
        """The line of one node, unless its value is known by name already."""
        if node.op is leaf.full or node.op is leaf.constant:
            self.thins[node] = self.literal(node.attrs["value"])
            return
        name = f"t{number}"
        out = ""
        if (buffer := self.planned.get(node)) is not None:
            if (out := self.buffers.get(buffer, "")) == "":
                out = self.buffers[buffer] = f"b{len(self.buffers)}"
        elif node.op in BUFFERED:
            home = self.homes.get(node, node)
            if (out := self.made.get(home, "")) == "":
                out = self.made[home] = f"o{len(self.made)}"
                self.text.append(f"    {out} = {self.empty(node)}")
        expression = EMIT[node.op](node, self, out)
        if node.op in VIEWS and expression == self.thins[node.inputs[0]]:
            self.thins[node] = expression
            return
        self.thins[node] = name
        self.line(f"{name} = {expression}", node)


def generate(graph: Graph, unknowns: tuple[str, ...]) -> Code:
    """Source for a plain graph in its final form, whose sizes come in the order of `unknowns`."""
    w = Writer(graph, unknowns)
    params = [f"x{i}" for i in range(len(graph.params))]
    w.thins.update(zip(graph.params, params, strict=True))
    for number, node in enumerate(graph.nodes()):
        if node not in w.thins:
            w.emit(node, number)
    results = returned(graph, w)
    head = [
        "def run(inputs, sizes, buffers):",
        *unpacked(params, "inputs"),
        *unpacked(list(w.unknowns.values()), "sizes"),
        *unpacked(list(w.buffers.values()), "buffers"),
        *w.constants,
    ]
    source = "\n".join([*head, *w.text, f"    return [{', '.join(results)}]", ""])
    return Code(
        source,
        w.scope,
        {len(head) + number: node for number, node in w.lines.items()},
        tuple(w.buffers),
        {node: w.buffers[buffer] for node, buffer in w.planned.items()},
    )


def unpacked(names: list[str], source: str) -> list[str]:
    """The line that takes a sequence apart."""
    return [f"    {', '.join(names)}, = {source}"] if names else []


def returned(graph: Graph, w: Writer) -> list[str]:
    """Each output as an array of the caller's own: views, leaves and repeats are copied."""
    seen: set[Node] = set()
    results = []
    for node in graph.outputs:
        own = node not in seen and (node in w.made or (node.op in FRESH and node.type.shape))
        results.append(w.thins[node] if own else f"{w.bind('array', np.array)}({w.whole(node)})")
        seen.add(node)
    return results
