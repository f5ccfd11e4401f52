"""Plain graphs by the meaning of their ops, each result checked to be of its type.

What a lazy derivative makes, and all that is made of it, is None: it has no meaning of its own
until it is expanded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from graphcore.inspection.interpreter import Interpreter
from graphcore.ir.axes import values
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import evaluate
from graphcore.ops import autodiff, leaf

Array = np.ndarray


class Checked(Interpreter):
    """Holds every result against its type."""

    def compute(self, node: Node, arrays: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
        found = super().compute(node, arrays, sizes)
        for result, type in zip(found, values(node.type), strict=True):
            assert result.shape == tuple(evaluate(size, sizes) for size in type.shape), node
            assert result.dtype == type.dtype, (node, result.dtype)
        return found


def run(
    graph: Graph,
    given: Mapping[str, Array],
    sizes: Mapping[str, int],
    by: Interpreter | None = None,
) -> list[Array | None]:
    """The outputs of a plain graph for inputs by name and unknown sizes by name."""
    inputs = tuple(leaf.inputs_among(graph.nodes()))
    known = [y for y in graph.outputs if autodiff.LAZY.isdisjoint(Graph((), (y,)).ops())]
    arrays = [np.asarray(given[x.attrs["name"]], x.type.dtype) for x in inputs]
    with np.errstate(all="ignore"):
        frame = (by or Checked()).frame(Graph(inputs, tuple(known)), arrays, sizes)
    found = iter(frame.outputs())
    return [next(found) if y in known else None for y in graph.outputs]
