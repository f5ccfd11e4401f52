"""The passes that serve the costs of NumPy calls."""

from __future__ import annotations

from graphcore.ir import Graph, Node
from graphcore.ops import tensor
from graphcore.rewrites.accumulate import accumulate
from graphcore.rewrites.pipeline import DECOMPOSED, Pass, Passes, in_turn, tidied

from .constants import compute_constants


def add_embedded(graph: Graph) -> Graph:
    """The graph in which parts of arrays are added at their places."""
    return accumulate(graph, {tensor.embed: adding_embedded})


def adding_embedded(x: Node, part: Node) -> Node:
    """x + embed(u) = overwrite(x, slice(x) + u)."""
    (u,) = part.inputs
    at = {name: part.attrs[name] for name in ("starts", "steps")}
    there = tensor.slice_(x, sizes=u.type.shape, **at)
    return tensor.overwrite(x, there + u, **at)


def parts_added(graph: Graph) -> Graph:
    """The graph in which parts are added at their places, where slices of them meet other views."""
    added = add_embedded(graph)
    return graph if added is graph else tidied.change(added)


OWN: Passes = [Pass("scheduled", in_turn(parts_added, compute_constants), DECOMPOSED)]
"""The passes that serve NumPy calls, after those that are shared."""
