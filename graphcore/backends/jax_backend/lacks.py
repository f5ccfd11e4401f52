"""What JAX does not compute, said before anything is traced."""

from __future__ import annotations

from collections.abc import Iterator

from graphcore.ir import Graph, Node
from graphcore.ops import control, leaf

from .padding import unpadded
from .table import TABLE

OWN = frozenset({leaf.input_, leaf.project, leaf.tuple_})
"""The ops that the emitter computes itself."""


def lacks(graph: Graph) -> Iterator[tuple[Node, str]]:
    """The nodes of a graph that JAX does not compute, each with the reason."""
    nodes = [*graph.every_node()]
    loops = [x for x in nodes if x.op is control.while_loop and x.attrs["trips"] is not None]
    counted = {name for loop in loops for name in loop.attrs["trips"].unknowns}
    for node in nodes:
        if node.op not in TABLE and node.op not in OWN:
            yield node, "it has no entry for it"
        elif counted and (why := unpadded(node, counted)) is not None:
            yield node, why
