"""The program of a graph: a line for each node, a block of lines for each loop."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from graphcore.ir import Graph, Node, Trait
from graphcore.ir.provenance import inheriting
from graphcore.ops import leaf, tensor
from graphcore.ops.schedule import kernel

from .call_text import call
from .emit import EMIT, INTO, NEW
from .kernels import call_kernel
from .loops import CONTROL, counted
from .scalars import is_spelled, spell
from .source import Code
from .value_names import Value, repeats_number
from .writer import Kernels, Sheet, Writer


class GraphWriter(Writer):
    """A writer that knows the rules of all ops."""

    @cached_property
    def counted(self) -> set[Node]:
        """The counters of steps that need no array."""
        return counted(self.schedule, self.graph.outputs)

    def emit(self, node: Node) -> None:
        """The line of one node, or the block of a loop."""
        if Trait.KNOWN in node.op.traits:
            self.values[node] = Value(array=self.literal(node.attrs["value"]))
            return
        if repeats_number(node) or node in self.counted:
            return  # a node that needs an array makes one from the number; a loop counts itself
        if node.op is kernel:
            return call_kernel(node, self)
        if node.op in CONTROL:
            self.values[node] = Value()  # its results have names of their own
            with inheriting(node):
                return CONTROL[node.op](node, self)
        if is_spelled(node):
            spelled = spell(node, self)
            name = self.size_name(node, spelled) or self.assign("t", spelled, node)
            self.values[node] = Value(scalar=name)
            return
        out = self.destination(node)
        computed = EMIT[node.op](node, self, out)
        if not computed.isidentifier():
            computed = self.size_name(node, computed) or self.assign("t", computed, node)
        self.values[node] = Value(array=computed)

    def writes(self, node: Node) -> bool:
        """Whether the line of a node writes its result into memory that it is given."""
        return node.op in INTO and (bool(node.type.shape) or not is_spelled(node))


def generate(graph: Graph, sizes: tuple[str, ...], compiled: Kernels | None = None) -> Code:
    """The program of a plain graph in its final form, whose unknown sizes come in this order.

    `compiled` makes the functions of its kernels.
    """
    sheet = Sheet(graph, sizes, compiled)
    w = GraphWriter(graph, sheet, sheet.sizes)
    sheet.code.params = [f"x{i}" for i in range(len(graph.params))]
    w.values = {
        x: Value(array=name) for x, name in zip(graph.params, sheet.code.params, strict=True)
    }
    w.emit_all()
    sheet.code.results = results_to_return(graph, w)
    return sheet.code


def results_to_return(graph: Graph, w: Writer) -> list[str]:
    """Each output as an array of the caller's own: views, leaves and repeats are copied.

    A new array in another shape or order is as good as the array itself, if that is not returned
    as well.
    """
    seen: set[Node] = set()
    results: list[str] = []
    for node in graph.outputs:
        root = node
        while root.op in (tensor.reshape, tensor.transpose, leaf.after):
            root = root.inputs[0]
        own = root in w.destinations or (root is node and node.op in NEW and node.type.shape)
        if own and root not in seen:
            array = "" if node.type.shape else w.destinations.get(node)  # np.dot returns a number
            results.append(array or w.values[node].operand)
        else:
            scalar = "" if repeats_number(node) else w.values[node].scalar
            results.append(call(w.bind("array", np.array), scalar or w.full(node)))
        seen.add(root)
    return results
