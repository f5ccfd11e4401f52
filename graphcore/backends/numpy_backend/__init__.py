"""Plain graphs as Python functions of NumPy calls, complete on their own."""

from __future__ import annotations

from contextlib import nullcontext

from graphcore.ir import Graph
from graphcore.ir.trace import tracing
from graphcore.schedule.regions import without_kernels

from .function import Function
from .kernels import KernelError
from .writer import CompiledKernel, Kernels

__all__ = ["CompiledKernel", "Function", "KernelError", "Kernels", "build"]


def build(graph: Graph, unknowns: tuple[str, ...], compiled: Kernels | None = None) -> Function:
    """The function that computes a plain graph in its final form; `unknowns` orders its sizes.

    `compiled` makes machine code of kernels; without it their nodes are emitted as all others.
    """
    named = nullcontext() if graph.trace is None else tracing(graph.trace)
    with named:  # emission may build the nodes that stand for results of loops
        if compiled is None:
            return Function(without_kernels(graph), unknowns)
        return Function(graph, unknowns, compiled)
