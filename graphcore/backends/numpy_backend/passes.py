"""The passes for NumPy: first the passes for every target, then those that serve its costs."""

from __future__ import annotations

from graphcore.ir.graph import Graph
from graphcore.rewrites.accumulate import add_embedded
from graphcore.rewrites.layout import short_axes_first
from graphcore.rewrites.pipeline import COMMON, EXPANDED, Pass, Passes, tidied


def accumulated(graph: Graph) -> Graph:
    """The graph in which parts are added at their places; their slices meet other views."""
    new = add_embedded(graph)
    return graph if new is graph else tidied.change(new)


PASSES: Passes = [
    *COMMON,
    Pass("accumulated", accumulated, EXPANDED),
    Pass("scheduled", short_axes_first, EXPANDED),
]
