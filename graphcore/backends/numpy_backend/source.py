"""The code of a program: lines and blocks in order, and the one Python function they render as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from graphcore.ir import Graph, Node, TensorType
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import called_often
from graphcore.ir.sizes import code
from graphcore.ir.types import show_dtype
from graphcore.schedule.regions import stands_for

from . import nesting
from .buffers import Buffer
from .nesting import INDENT


class Line(NamedTuple):
    """The node that a line computes or makes room for.

    `operands` are the names of the operands of an op that indexes; `steps` name the counters of
    the loops around the line.
    """

    node: Node
    operands: list[str]
    comment: bool
    steps: dict[str, Node]

    @property
    def computes(self) -> Node:
        """The node outside of regions that errors name."""
        return stands_for(self.node)


class Block(NamedTuple):
    """The rows of a loop or branch that is within no other."""

    start: int
    stop: int
    node: Node


class Source(NamedTuple):
    """A function as text, and the line of code at each line number, from 1 on."""

    text: str
    lines: dict[int, Line]


class Code:
    """A program line by line, and the objects that its global names stand for.

    `steps` counts the steps of the loops that find their own end, of all calls together.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope: dict[str, Any] = {}
        self.params: list[str] = []
        self.rows: list[tuple[str, Line | None]] = []
        self.blocks: list[Block] = []
        self.results: list[str] = []
        self.first: dict[str, str] = {}
        self.sizes: dict[str, str] = {}
        self.buffers: dict[Buffer, str] = {}
        self.places: dict[Node, str] = {}
        self.comments: list[str] = []
        self.kernels: dict[Graph, str] = {}
        self.loops: list[Node] = []
        self.steps: list[int] = []
        self._comments: dict[Any, str] = {}
        self._shared: set[tuple[str, int]] | None = None  # lines of functions called by several

    def comment(self, node: Node) -> str:
        """A node's type, in sizes as no dim may reach the source, and its line, printable."""
        origin = node.origin
        key = (node.type, origin)
        if (text := self._comments.get(key)) is None:
            if self._shared is None:  # the comments say which line has called
                self._shared = called_often(node.origin for node in self.graph.every_node())
            text = str(origin if origin[:2] in self._shared else origin._replace(caller=None))
            if isinstance(node.type, TensorType):
                sizes = ", ".join([code(size, self.sizes) for size in node.type.shape])
                text = f"{show_dtype(node.type.dtype)}[{sizes}]  {text}"
            text = self._comments[key] = (text if text.isprintable() else ascii(text))[:120]
        return text

    def source(self) -> Source:
        """The program as one Python function, with the type and origin of nodes in comments."""

        def add_comment(text: str, line: Line | None) -> str:
            if line is None or not line.comment:
                return text
            return f"{text}  # {self.comment(line.node)}"

        return self.render(add_comment)

    def known_sizes(self) -> list[str]:
        """The names of the sizes that are known before the call: all but trip counts."""
        return [name for name in self.sizes.values() if name.startswith("n")]

    def render(self, shown: Callable[[str, Line | None], str] = lambda text, _: text) -> Source:
        """The program as one Python function, the text of each line as it is to be `shown`."""
        sizes = self.known_sizes()
        text = [
            "def run(inputs, sizes, buffers):",
            *unpacking_line(self.params, "inputs"),
            *unpacking_line(sizes, "sizes"),
            *unpacking_line(list(self.buffers.values()), "buffers"),
            *[f"{INDENT}# {n} = {show_dim(size)}" for size, n in self.sizes.items() if n in sizes],
            *[INDENT + comment for comment in self.comments],
            *[f"{INDENT}{name} = {value}" for value, name in self.first.items()],
        ]
        lines = {at: line for at, (_, line) in enumerate(self.rows, len(text) + 1) if line}
        text += [shown(*row) for row in self.rows]
        text.append(f"{INDENT}return [{', '.join(self.results)}]")
        rows = nesting.shallow(nesting.rows_of(text), self.scope)
        return Source(
            "".join([f"{INDENT * row.level}{row.text}\n" for row in rows]),
            {at: lines[row.number] for at, row in enumerate(rows, 1) if row.number in lines},
        )


def unpacking_line(names: list[str], source: str) -> list[str]:
    """The line that takes a sequence apart."""
    return [f"{INDENT}{', '.join(names)}, = {source}"] if names else []
