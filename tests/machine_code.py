"""A mode in which all programs run as machine code, wherever there is some.

`pytest --native` runs any test so: what holds for NumPy calls must hold for machine code as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels.machine import Stages
from graphcore.compiled import Compiled
from graphcore.ir.graph import Graph
from graphcore.ir.trace import tracing


def kernels(compiled: Compiled) -> Graph:
    """The last graph of a program, with kernels wherever there is machine code."""
    graph = compiled.stages["optimized"]
    with tracing(graph.trace):
        made = llvm_kernels.in_kernels(graph)
    return Graph(made.params, made.outputs, graph.trace)


def build(compiled: Compiled) -> Callable[..., list[Any]]:
    """A program with machine code, as a function of its arguments by position.

    The code is made with care from the start: that of `gc.compile` is quick code in most tests.
    """
    boundary = compiled._boundary
    with mock.patch.object(Stages, "at_once", Stages.with_care):
        return llvm_kernels.build(kernels(compiled), boundary.unknowns, boundary.bind)


@contextmanager
def native() -> Iterator[None]:
    """What is compiled in this block runs as machine code, but for ops that have none."""
    made = Compiled.__init__

    def as_machine_code(self: Compiled, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if self.native:
            return
        self._values = build(self)

    with mock.patch.object(Compiled, "__init__", as_machine_code):
        yield
