"""Plain graphs as Python functions of NumPy calls, complete on their own."""

from graphcore.ir.graph import Graph
from graphcore.schedule.regions import without_kernels

from .function import Function
from .passes import PASSES

__all__ = ["PASSES", "Function", "build"]


def build(graph: Graph, unknowns: tuple[str, ...]) -> Function:
    """The function that computes a plain graph in its final form; `unknowns` orders its sizes.

    Kernels gain nothing here, so their nodes are emitted as all others.
    """
    return Function(without_kernels(graph), unknowns)
