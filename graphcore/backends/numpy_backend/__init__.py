"""Plain graphs as Python functions of NumPy calls, complete on their own."""

from contextlib import nullcontext

from graphcore.ir.graph import Graph
from graphcore.ir.trace import tracing
from graphcore.schedule.regions import without_kernels

from .function import Function
from .passes import PASSES

__all__ = ["PASSES", "Function", "build"]


def build(graph: Graph, unknowns: tuple[str, ...]) -> Function:
    """The function that computes a plain graph in its final form; `unknowns` orders its sizes.

    Kernels gain nothing here, so their nodes are emitted as all others.
    """
    named = nullcontext() if graph.trace is None else tracing(graph.trace)
    with named:  # emission may build the nodes that stand for results of loops
        return Function(without_kernels(graph), unknowns)
