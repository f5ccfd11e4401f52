"""Plain graphs as Python functions of NumPy calls, complete on their own."""

from graphcore.ir.graph import Graph

from .function import Function

__all__ = ["Function", "build"]


def build(graph: Graph, unknowns: tuple[str, ...]) -> Function:
    """The function that computes a plain graph in its final form; `unknowns` orders its sizes."""
    return Function(graph, unknowns)
