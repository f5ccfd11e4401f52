"""The passes for NumPy: first the passes for every target, then the one that serves its costs."""

from __future__ import annotations

from graphcore.ir.graph import Graph
from graphcore.rewrites.accumulate import add_embedded
from graphcore.rewrites.pipeline import COMMON, EXPANDED, Pass, Passes, in_turn, tidied

from .constants import compute_constants


def parts_added(graph: Graph) -> Graph:
    """The graph in which parts are added at their places, where slices of them meet other views."""
    added = add_embedded(graph)
    return graph if added is graph else tidied.change(added)


PASSES: Passes = [*COMMON, Pass("scheduled", in_turn(parts_added, compute_constants), EXPANDED)]
