"""The source: one Python function of NumPy calls, a line for each node, a block for each loop."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ir.provenance import called_often
from graphcore.ir.size_text import show_dim
from graphcore.ir.sizes import Size, code, unknowns
from graphcore.ir.types import DType, TensorType, show_dtype
from graphcore.ops import leaf, tensor
from graphcore.schedule.buffers import VIEWS, Buffer, plan
from graphcore.schedule.order import in_order

from . import nesting
from .emit import BUFFERED, EMIT, shape_of
from .loops import CONTROL
from .nesting import INDENT
from .scalars import is_spelled, repeats_number, spell

FRESH = frozenset(
    {
        *(tensor.argmax, tensor.argmin, tensor.argsort, tensor.searchsorted),
        *(tensor.fft, tensor.rfft, tensor.irfft),
    }
)
"""Ops for which NumPy makes a new array, if the result has axes."""


DTYPES = frozenset(show_dtype(np.dtype(c)) for c in np.typecodes["AllInteger"] + "efdFD")
"""Names that stand for dtypes: i64, c128."""

OF_SIZES = frozenset({leaf.iota, leaf.extent})
"""Ops that have no operands but a size."""


class Line(NamedTuple):
    """What a line of the source computes, and the names there of operands and of loops' steps."""

    node: Node
    operands: tuple[str, ...]
    steps: dict[str, Node]


class Code(NamedTuple):
    """A generated function: its source, what its names stand for, and what its lines compute."""

    source: str
    scope: dict[str, Any]
    lines: dict[int, Line]
    buffers: tuple[Buffer, ...]
    places: dict[Node, str]
    sizes: dict[str, str]


class Sheet:
    """The text of the function being written, and all names in it that are known throughout."""

    def __init__(self, sizes: Sequence[str], shared: Collection[tuple[str, int]]) -> None:
        self.shared = shared  # lines of functions that were called from several lines
        self.scope: dict[str, Any] = {}
        self.text: list[str] = []
        self.lines: dict[int, Line] = {}
        self.comments: dict[Any, str] = {}
        self.literals: dict[Literal, str] = {}
        self.constants: list[str] = []
        self.fixed: dict[str, str] = {}
        self.buffers: dict[Buffer, str] = {}
        self.places: dict[Node, str] = {}
        self.known = frozenset(sizes)
        self.sizes = {name: f"n{i}" for i, name in enumerate(sizes)}
        self.numbers: dict[str, int] = {}
        self.blocks = 0
        self.indent = INDENT
        self.steps: dict[str, Node] = {}

    def name(self, prefix: str) -> str:
        """A new name, other than a dtype's."""
        number = self.numbers.get(prefix, -1) + 1
        while f"{prefix}{number}" in DTYPES:
            number += 1
        self.numbers[prefix] = number
        return f"{prefix}{number}"


class Writer:
    """Spells the nodes of one graph, single numbers as Python's.

    Only names it has made itself reach the source. The body of a loop has a writer of its own, on
    the same sheet.
    """

    def __init__(
        self,
        graph: Graph,
        sheet: Sheet,
        sizes: Mapping[str, str],
        schedule: Sequence[Node] = (),
        homes: Sequence[Node] | None = None,
    ) -> None:
        self.graph, self.sheet, self.scope = graph, sheet, sheet.scope
        self.sizes = dict(sizes)  # with the numbers of trips that this graph finds out
        self.thins: dict[Node, str] = {}
        self.wholes: dict[Node, str] = {}
        self.numbers: dict[Node, str] = {}
        self.made: dict[Node, str] = {}
        self.schedule = schedule or in_order(graph.nodes())
        self.block, sheet.blocks = sheet.blocks, sheet.blocks + 1
        held = graph.outputs if homes is None else homes
        kept = [x for x in graph.outputs if x not in held]
        self.planned, self.homes = plan(self.schedule, held, kept, self.block, sheet.known, writes)

    def inside(self, graph: Graph, homes: Sequence[Node], schedule: Sequence[Node] = ()) -> Writer:
        """The writer of a body, whose nodes may come in an order of their own.

        It is told where to write the outputs `homes`; the others are read when all is done.
        """
        return Writer(graph, self.sheet, self.sizes, schedule, homes)

    def bind(self, name: str, value: Any) -> str:
        """A global name of the generated function."""
        self.scope.setdefault(name, value)
        return name

    def special(self, name: str) -> str:
        """A special function, of ours or SciPy's, imported when the first graph needs it."""
        import scipy.special

        from .special import ROUTINES

        return self.bind(name, ROUTINES.get(name) or getattr(scipy.special, name))

    def dtype(self, dtype: DType) -> str:
        """A dtype by its short name."""
        return self.bind(show_dtype(dtype), dtype)

    def literal(self, value: Literal) -> str:
        """A value known now, by a name that a comment explains."""
        sheet = self.sheet
        if (name := sheet.literals.get(value)) is None:
            name = sheet.literals[value] = self.bind(sheet.name("c"), value.array)
            sheet.constants.append(f"    # {name} = {value!r:.60}".splitlines()[0])
        return name

    def size(self, size: Size) -> str:
        """A size, worked out at the call."""
        return code(size, self.sizes)

    def from_sizes(self, text: str, *sizes: Size) -> str:
        """An expression in sizes: inside of a block it is worked out once, before everything."""
        sheet = self.sheet
        if sheet.indent == INDENT or not all(unknowns(size) <= sheet.known for size in sizes):
            return text
        if text not in sheet.fixed:
            sheet.fixed[text] = sheet.name("k")
        return sheet.fixed[text]

    def fixed(self, node: Node, text: str) -> str:
        """The name of a leaf made of a size, if it is worked out before everything."""
        if node.op not in OF_SIZES:
            return ""
        name = self.from_sizes(text, node.attrs["size"])
        return "" if name == text else name

    def write(self, text: str, node: Node | None = None) -> None:
        """One statement, which fails in the name of `node`."""
        self.sheet.text.append(self.sheet.indent + text)
        if node is not None:
            self.sheet.lines[len(self.sheet.text)] = Line(node, (), self.sheet.steps)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """What is written here belongs to the statement before."""
        before, self.sheet.indent = self.sheet.indent, self.sheet.indent + INDENT
        yield
        self.sheet.indent = before

    @contextmanager
    def stepping(self, step: str, loop: Node) -> Iterator[None]:
        """What is written here belongs to a loop that counts its steps by the name `step`."""
        before, self.sheet.steps = self.sheet.steps, {step: loop, **self.sheet.steps}
        with self.indented():
            yield
        self.sheet.steps = before

    def line(self, text: str, node: Node) -> None:
        """One statement, with the node's type and origin beside it."""
        sheet = self.sheet
        key = (node.type, node.origin)
        if (said := sheet.comments.get(key)) is None:
            said = sheet.comments[key] = self.comment(node)
        sheet.text.append(f"{sheet.indent}{text}  # {said}")
        operands = tuple(self.thins.get(x, "") for x in node.inputs)
        sheet.lines[len(sheet.text)] = Line(node, operands, sheet.steps)

    def comment(self, node: Node) -> str:
        """A node's type, in sizes as no dim may reach the source, and its line, printable."""
        origin = node.origin
        text = str(origin if origin[:2] in self.sheet.shared else origin._replace(caller=None))
        if isinstance(node.type, TensorType):
            sizes = ", ".join(map(self.size, node.type.shape))
            text = f"{show_dtype(node.type.dtype)}[{sizes}]  {text}"
        return (text if text.isprintable() else ascii(text))[:120]

    def number(self, node: Node) -> str:
        """`node`, which is one number, as Python's."""
        if node not in self.numbers:
            if node.op is leaf.full or node.op is leaf.constant:
                value = node.attrs["value"]
                self.numbers[node] = self.bind(f"{self.literal(value)}_", value.item())
            else:
                self.numbers[node] = self.sheet.name("v")
                self.write(f"{self.numbers[node]} = {self.thins[node]}.item()")
        return self.numbers[node]

    def take(self, node: Node, number: str) -> None:
        """Know `node` as one of Python's numbers."""
        self.numbers[node] = self.thins[node] = number

    def thin(self, node: Node) -> str:
        """`node`, or what broadcasts to it, as an array."""
        if repeats_number(node):
            return self.thin(node.inputs[0])
        if self.thins[node] == self.numbers.get(node):
            text = f"{self.bind('array', np.array)}({self.numbers[node]})"
            if (name := self.fixed(node, text)) == "":
                name = self.sheet.name("a")
                self.write(f"{name} = {text}")
            self.thins[node] = name
        return self.thins[node]

    def operand(self, node: Node) -> str:
        """`node` as a ufunc takes it: an array, or one number."""
        return self.thin(node) if repeats_number(node) else self.thins[node]

    def whole(self, node: Node) -> str:
        """`node` with all its places."""
        if node in self.wholes:
            return self.wholes[node]
        if self.is_full_shape(node):
            return self.thin(node)
        name = self.sheet.name("w")
        shape = shape_of(node.type.shape, self)
        broadcast = self.bind("broadcast_to", np.broadcast_to)
        self.line(f"{name} = {broadcast}({self.thin(node)}, {shape})", node)
        self.wholes[node] = name
        return name

    def is_full_shape(self, node: Node) -> bool:
        """Whether the thin spelling of `node` has all its places."""
        return not node.type.shape or node.op not in (leaf.full, tensor.expand)

    def empty(self, type: TensorType) -> str:
        """A new array."""
        shape = shape_of(type.shape, self)
        return f"{self.bind('empty', np.empty)}({shape}, {self.dtype(type.dtype)})"

    def room(self, type: TensorType) -> str:
        """An array of this type that nothing else uses: kept between calls if its size is known."""
        if not all(unknowns(size) <= self.sheet.known for size in type.shape):
            name = self.sheet.name("r")
            self.write(f"{name} = {self.empty(type)}")
            return name
        return self.buffer(Buffer((self.block, f"room {len(self.sheet.buffers)}"), type))

    def buffer(self, buffer: Buffer) -> str:
        """The name of a buffer."""
        buffers = self.sheet.buffers
        if buffer not in buffers:
            buffers[buffer] = f"b{len(buffers)}"
        return buffers[buffer]

    def emit_all(self, nodes: Sequence[Node] = ()) -> None:
        """Every node that has no name yet, or of some nodes each."""
        for node in nodes or self.schedule:
            if node not in self.thins:
                self.emit(node)

    def emit(self, node: Node) -> None:
        """The line of one node, or the block of a loop."""
        if node.op is leaf.full or node.op is leaf.constant:
            self.thins[node] = self.literal(node.attrs["value"])
            return
        if repeats_number(node):
            return  # whoever needs an array makes it of the number
        if node.op in CONTROL:
            self.thins[node] = ""  # its values have names of their own
            return CONTROL[node.op](node, self)
        if is_spelled(node):
            text = spell(node, self)
            if (name := self.fixed(node, text)) != "":
                return self.take(node, name)
            name = self.sheet.name("t")
            self.take(node, name)
            return self.line(f"{name} = {text}", node)
        out = ""
        if (buffer := self.planned.get(node)) is not None:
            out = self.sheet.places[node] = self.buffer(buffer)
        elif node.op in BUFFERED:
            home = self.homes.get(node, node)
            if (out := self.made.get(home, "")) == "":
                out = self.made[home] = self.sheet.name("o")
                self.write(f"{out} = {self.empty(node.type)}", node)
        name = self.sheet.name("t")
        expression = EMIT[node.op](node, self, out)
        if (before := self.fixed(node, expression)) != "":
            self.thins[node] = before
            return
        if expression == out or (node.op in VIEWS and expression == self.thins.get(node.inputs[0])):
            self.thins[node] = expression
            return
        self.thins[node] = name
        self.line(f"{name} = {expression}", node)


def writes(node: Node) -> bool:
    """Whether the line of a node writes its result into memory that it is given."""
    return node.op in BUFFERED and not is_spelled(node)


def generate(graph: Graph, sizes: tuple[str, ...]) -> Code:
    """Source for a plain graph in its final form, whose unknown sizes come in the order `sizes`."""
    sheet = Sheet(sizes, called_often(node.origin for node in graph.every_node()))
    w = Writer(graph, sheet, sheet.sizes)
    params = [f"x{i}" for i in range(len(graph.params))]
    w.thins.update(zip(graph.params, params, strict=True))
    w.emit_all()
    results = returned(graph, w)
    head = [
        "def run(inputs, sizes, buffers):",
        *unpacked(params, "inputs"),
        *unpacked([sheet.sizes[name] for name in sizes], "sizes"),
        *unpacked(list(sheet.buffers.values()), "buffers"),
        *[f"    # {sheet.sizes[name]} = {show_dim(name)}" for name in sizes],
        *sheet.constants,
        *[f"    {name} = {text}" for text, name in sheet.fixed.items()],
    ]
    text = [*head, *sheet.text, f"    return [{', '.join(results)}]"]
    rows = nesting.shallow(nesting.rows_of(text), sheet.scope)
    lines = {len(head) + number: line for number, line in sheet.lines.items()}
    return Code(
        "".join(f"{INDENT * row.level}{row.text}\n" for row in rows),
        sheet.scope,
        {now: lines[row.number] for now, row in enumerate(rows, 1) if row.number in lines},
        tuple(sheet.buffers),
        sheet.places,
        sheet.sizes,
    )


def unpacked(names: list[str], source: str) -> list[str]:
    """The line that takes a sequence apart."""
    return [f"    {', '.join(names)}, = {source}"] if names else []


def returned(graph: Graph, w: Writer) -> list[str]:
    """Each output as an array of the caller's own: views, leaves and repeats are copied.

    Another shape or order of a new array is as good as the array itself, if that is not returned
    as well.
    """
    seen: set[Node] = set()
    results = []
    for node in graph.outputs:
        root = node
        while root.op in (tensor.reshape, tensor.transpose):
            root = root.inputs[0]
        own = root in w.made or (root is node and node.op in FRESH and node.type.shape)
        own = own and root not in seen
        name = w.thins[node] if own else w.numbers.get(node) or w.whole(node)
        results.append(name if own else f"{w.bind('array', np.array)}({name})")
        seen.add(root)
    return results
