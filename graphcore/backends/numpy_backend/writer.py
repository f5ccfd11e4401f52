"""What the rules of ops write with: names of values, lines of the program, and memory for results.

Rules see `Writer` alone; `codegen.py` completes it with the rules themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphcore.ir import DType, Graph, Literal, Node, Shape, Size, TensorType, Trait
from graphcore.ir.provenance import setting
from graphcore.ir.sizes import code, unknowns
from graphcore.ir.types import show_dtype
from graphcore.ops import leaf, tensor
from graphcore.schedule.buffers import is_result
from graphcore.schedule.order import in_order

from . import routines
from .buffers import Buffer, plan
from .call_text import call
from .nesting import INDENT
from .source import Block, Code, Line
from .value_names import Value, repeats_number

DTYPES = frozenset(show_dtype(np.dtype(c)) for c in np.typecodes["AllInteger"] + "efdFD")
"""Names that stand for dtypes: i64, c128."""


class CompiledKernel(NamedTuple):
    """A body as a function of the sizes with these names, the operands and arrays to write into."""

    sizes: tuple[str, ...]
    function: Callable[..., None]


Kernels: TypeAlias = Callable[[Graph], CompiledKernel]
"""The function that makes machine code of the body of a kernel."""


class Sheet:
    """The program being written, and all names in it that are known throughout."""

    def __init__(self, graph: Graph, sizes: Sequence[str], compiled: Kernels | None) -> None:
        self.code, self.compiled = Code(graph), compiled
        self.scope = self.code.scope
        self.literals: dict[Literal, str] = {}
        self.known = frozenset(sizes)
        self.sizes = self.code.sizes
        self.sizes.update((name, f"n{i}") for i, name in enumerate(sizes))
        self.numbers: dict[str, int] = {}
        self.blocks = 0
        self.indent = INDENT
        self.steps: dict[str, Node] = {}

    @property
    def at_top(self) -> bool:
        """Whether lines belong to no block now."""
        return self.indent == INDENT

    def name(self, prefix: str) -> str:
        """A new name, other than a dtype's."""
        number = self.numbers.get(prefix, -1) + 1
        while (name := f"{prefix}{number}") in DTYPES:
            number += 1
        self.numbers[prefix] = number
        return name

    def first(self, value: str) -> str:
        """The name of a value that is computed before all else."""
        if value not in self.code.first:
            self.code.first[value] = self.name("h")
        return self.code.first[value]


class Writer(ABC):
    """Writes the nodes of one graph, single numbers as Python's.

    Only names it has made itself reach the source. The body of a loop has a writer of its own, on
    the same sheet.
    """

    def __init__(
        self,
        graph: Graph,
        sheet: Sheet,
        sizes: Mapping[str, str],
        schedule: Sequence[Node] = (),
        written: Sequence[Node] | None = None,
    ) -> None:
        self.graph, self.sheet, self.scope = graph, sheet, sheet.scope
        self.sizes = dict(sizes)  # with the trip counts that this graph finds
        self.values: dict[Node, Value] = {}
        self.destinations: dict[Node, str] = {}  # the arrays that outputs are written into
        self.schedule = schedule or in_order(graph.nodes())
        self.block, sheet.blocks = sheet.blocks, sheet.blocks + 1
        held = graph.outputs if written is None else written
        kept = [x for x in graph.outputs if x not in held]
        self.plan = plan(self.schedule, held, kept, self.block, sheet.known, self.writes)

    def inside(
        self, graph: Graph, written: Sequence[Node], schedule: Sequence[Node] = ()
    ) -> Writer:
        """The writer of a body, whose nodes may come in an order of their own.

        The outputs `written` are given destinations; the others are read after the last node.
        """
        return type(self)(graph, self.sheet, self.sizes, schedule, written)

    # Names

    def bind(self, name: str, value: Any) -> str:
        """A global name of the program."""
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
            sheet.code.comments.append(f"# {name} = {value!r:.60}".splitlines()[0])
        return name

    def size(self, size: Size) -> str:
        """A size, computed at the call."""
        return code(size, self.sizes)

    def shape(self, shape: Shape) -> str:
        """A shape as a tuple."""
        text = f"({', '.join(self.size(size) for size in shape)}{',' if len(shape) == 1 else ''})"
        return text if all(isinstance(n, int) for n in shape) else self.from_sizes(text, *shape)

    def from_sizes(self, text: str, *sizes: Size) -> str:
        """An expression in sizes: inside of a block its value is computed once, before all else."""
        if self.sheet.at_top or not all(unknowns(size) <= self.sheet.known for size in sizes):
            return text
        return self.sheet.first(text)

    def check_needs(self, name: str, node: Node) -> None:
        """Check what ops need of sizes that are known now that `name` is found."""
        known = self.sizes.keys()
        for each in [
            each for x in self.schedule if x.op is leaf.after for each in x.attrs["needs"]
        ]:
            said, left, relation, right = each
            of = unknowns(left) | unknowns(right)
            if name in of and of <= known:
                self.require_size(self.size(left), relation, self.size(right), said, node)

    def require_size(self, left: str, relation: str, right: str, said: str, node: Node) -> None:
        """A line that refuses two sizes if they are not in a relation."""
        text = self.bind(self.sheet.name("e"), said)
        holds = f"{left} {relation} {right}"
        check = self.bind("require_size", routines.require_size)
        self.do(call(check, holds, left, right, text), node, comment=False)

    # Lines

    def assign(self, prefix: str, value: str, node: Node, comment: bool = True) -> str:
        """A line that computes a value, and the new name of it."""
        name = self.sheet.name(prefix)
        self.do(f"{name} = {value}", node, comment)
        return name

    def do(self, text: str, node: Node, comment: bool = True) -> None:
        """One line, which fails in the name of `node`."""
        indexes = "axes" in node.attrs  # and may be refused for the values of its operands
        operands = [self.operand_name(x) for x in node.inputs] if indexes else []
        self.add(text, Line(node, operands, comment, self.sheet.steps))

    def write(self, text: str, node: Node | None = None) -> None:
        """One statement of a block, which fails in the name of `node`."""
        self.add(text, None if node is None else Line(node, [], False, self.sheet.steps))

    def add(self, text: str, line: Line | None) -> None:
        """One more row."""
        self.sheet.code.rows.append((self.sheet.indent + text, line))

    @contextmanager
    def blocks(self, node: Node) -> Iterator[None]:
        """Statements in this context belong to one block, or to that around it."""
        code, outermost = self.sheet.code, self.sheet.at_top
        start = len(code.rows)
        yield
        if outermost:
            code.blocks.append(Block(start, len(code.rows), node))

    def indent(self) -> AbstractContextManager[None]:
        """Statements in this context belong to the statement before."""
        return setting(self.sheet, indent=self.sheet.indent + INDENT)

    @contextmanager
    def stepping(self, step: str, loop: Node) -> Iterator[None]:
        """Statements in this context belong to a loop that counts its steps by the name `step`."""
        with self.indent(), setting(self.sheet, steps={step: loop, **self.sheet.steps}):
            yield

    # Values

    def scalar(self, node: Node) -> str:
        """`node`, which is one number, as Python's."""
        value = self.values[node]
        if value.scalar == "":
            if Trait.KNOWN in node.op.traits:
                literal = node.attrs["value"]
                value.scalar = self.bind(f"{self.literal(literal)}_", literal.item())
            else:
                value.scalar = self.assign("v", call(f"{value.array}.item"), node, False)
        return value.scalar

    def array(self, node: Node) -> str:
        """An array that broadcasts to the shape of `node`."""
        if repeats_number(node):
            return self.array(node.inputs[0])
        value = self.values[node]
        if value.array == "" and value.scalar != "":
            made = call(self.bind("array", np.array), value.scalar)
            value.array = self.size_name(node, made) or self.assign("a", made, node, False)
        return value.array

    def full(self, node: Node) -> str:
        """An array of the shape of `node`."""
        if (value := self.values.get(node)) is not None and value.full:
            return value.full
        if self.is_full_shape(node):
            return self.array(node)
        broadcast = self.bind("broadcast_to", np.broadcast_to)
        spread = call(broadcast, self.array(node), self.shape(node.type.shape))
        full = self.assign("w", spread, node)
        self.values.setdefault(node, Value()).full = full
        return full

    def operand(self, node: Node) -> str:
        """`node` as a ufunc takes it: an array that broadcasts to it, or one number."""
        value = self.values.get(node)
        return (value and value.operand) or self.array(node)

    def operand_name(self, node: Node) -> str:
        """The name of `node`, or "" if it has none."""
        if repeats_number(node):
            return self.operand_name(node.inputs[0])
        return self.values[node].operand if node in self.values else ""

    def is_full_shape(self, node: Node) -> bool:
        """Whether the array of `node` has all its elements."""
        return not node.type.shape or node.op not in (leaf.full, tensor.expand)

    def size_name(self, node: Node, value: str) -> str:
        """The name of a leaf made of a size, if it is computed before all else."""
        size: Size | None = None if node.inputs else node.attrs.get("size")
        if size is None or self.sheet.at_top or not unknowns(size) <= self.sheet.known:
            return ""
        return self.sheet.first(value)

    # Memory

    def empty(self, type: TensorType) -> str:
        """A new array."""
        return call(self.bind("empty", np.empty), self.shape(type.shape), self.dtype(type.dtype))

    def temporary(self, type: TensorType, node: Node) -> str:
        """An array that nothing else uses: kept between calls if its size is known."""
        if not all(unknowns(size) <= self.sheet.known for size in type.shape):
            return self.assign("r", self.empty(type), node, False)
        return self.buffer(Buffer((self.block, f"own {len(self.sheet.code.buffers)}"), type))

    def buffer(self, buffer: Buffer) -> str:
        """The name of a buffer."""
        buffers = self.sheet.code.buffers
        if buffer not in buffers:
            buffers[buffer] = f"b{len(buffers)}"
        return buffers[buffer]

    def destination(self, node: Node) -> str:
        """The array that the line of `node` writes its result into; "" where NumPy makes one."""
        if (buffer := self.plan.buffers.get(node)) is not None:
            out = self.sheet.code.places[node] = self.buffer(buffer)
            return out
        if not (self.writes(node) or is_result(node)):
            return ""
        output = self.plan.outputs.get(node, node)
        if output not in self.destinations:
            self.destinations[output] = self.assign("o", self.empty(node.type), node, False)
        return self.destinations[output]

    # Nodes

    def emit_all(self, nodes: Sequence[Node] = ()) -> None:
        """Every node that has no value yet, or of some nodes each."""
        for node in nodes or self.schedule:
            if node not in self.values:
                self.emit(node)

    @abstractmethod
    def emit(self, node: Node) -> None:
        """The line of one node, or the block of a loop."""

    @abstractmethod
    def writes(self, node: Node) -> bool:
        """Whether the line of a node writes its result into memory that it is given."""
