"""Kernels: functions of machine code, called with sizes, operands and arrays for the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from graphcore.backends.errors import in_step, reword
from graphcore.ir import Graph, Node
from graphcore.ir.errors import GraphError
from graphcore.ir.sizes import unknown
from graphcore.ops.leaf import values
from graphcore.schedule.regions import in_place

from .call_text import call
from .value_names import Value
from .writer import Writer

FLOAT = np.dtype(np.float64)


Said: TypeAlias = "Callable[[Any], tuple[Exception, str, str]]"
"""From a node, which may be None, to the error as NumPy would raise it, the reason and the cure."""


class KernelError(Exception):
    """A kernel has failed at a node of its body.

    `said` gives the error for the node of the program in its place. `steps` are the loops of the
    kernel around the node, each with its step, the innermost first.
    """

    def __init__(
        self, said: Said, node: Node | None, steps: Sequence[tuple[Node, int]] = ()
    ) -> None:
        super().__init__("a kernel has failed")
        self.said, self.node, self.steps = said, node, steps

    def worded(self, called: Node, *around: str) -> GraphError:
        """The error in the user's words; `called` is the kernel, `around` are lines for loops."""
        stands_for = in_place(called)
        node = None if self.node is None else stands_for.get(self.node, self.node)
        within = [in_step(step, stands_for.get(loop, loop)) for loop, step in self.steps]
        error, reason, cure = self.said(node)
        return reword(error, node, reason, cure, *within, *around)


def call_kernel(node: Node, w: Writer) -> None:
    """The line that calls a kernel, which writes into the places of its results."""
    name, names = function_of(node.attrs["body"], w)
    sizes = [w.size(unknown(n)) for n in names]
    operands = [operand(x, w) for x in node.inputs]
    results = values(node)
    places = [w.destination(y) for y in results]
    w.do(call(name, *sizes, *operands, *places), node)
    w.values[node] = Value()  # its results have names of their own
    w.values.update((y, Value(array=place)) for y, place in zip(results, places, strict=True))


def function_of(body: Graph, w: Writer) -> tuple[str, tuple[str, ...]]:
    """The name of a body's function, one for equal bodies, and the sizes it is given."""
    sheet = w.sheet
    assert sheet.compiled is not None
    made = sheet.compiled(body)
    if body not in sheet.code.kernels:
        sheet.code.kernels[body] = sheet.name("k")
    return w.bind(sheet.code.kernels[body], made.function), made.sizes


def operand(x: Node, w: Writer) -> str:
    """An operand: an array, or one number of a kind that machine code takes from Python."""
    number = x in w.values and not w.values[x].array and x.type.dtype == FLOAT
    return w.scalar(x) if number else w.full(x)
