"""The passes of a compilation for JAX: those of every target, but contractions stay whole.

XLA takes a contraction with any number of batch, free and summed axes, so nothing is merged into
matrices by reshapes. Every axis keeps its label, and one that is split over devices stays an axis.
"""

from __future__ import annotations

from graphcore.ir import Node
from graphcore.ir.contracts import Contract
from graphcore.ops import tensor
from graphcore.rewrites.engine import RuleSet
from graphcore.rewrites.pipeline import DECOMPOSED, EXPANDED, Pass, rewrite_by

WHOLE = frozenset({tensor.einsum})
"""The ops that other targets have taken apart by then."""

unmerged = RuleSet()


@unmerged.on(tensor.vecdot, under=[tensor.reshape])
def product_of_unmerged(node: Node) -> Node | None:
    """vecdot(reshape(x), reshape(y)) = einsum(x, y): devices need not merge axes of their parts"""
    a, b = node.inputs
    if a.op is not tensor.reshape or b.op is not tensor.reshape:
        return None
    (x,), (y,) = a.inputs, b.inputs
    n = node.type.ndim
    if x.type.shape != y.type.shape or x.type.shape[:n] != node.type.shape:
        return None
    letters = tuple(range(x.type.ndim))
    return tensor.einsum(x, y, operands=(letters, letters), result=letters[:n])


GIVEN = Contract(*EXPANDED.allowed, but=DECOMPOSED.but - WHOLE)
SHARDED = Pass("sharded", rewrite_by(unmerged), GIVEN)
"""The last pass on a mesh; its stage is printed with the axes along which dims lie."""
