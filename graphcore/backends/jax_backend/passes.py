"""The passes of a compilation for JAX: those of every target, but contractions stay whole.

XLA takes a contraction with any number of batch, free and summed axes, so nothing is merged into
matrices by reshapes. Every axis keeps its label, and one that is split over devices stays an axis.
"""

from __future__ import annotations

from graphcore.ir.contracts import Contract
from graphcore.ops import tensor
from graphcore.rewrites.pipeline import DECOMPOSED, EXPANDED, Pass

WHOLE = frozenset({tensor.einsum})
"""The ops that other targets have taken apart by then."""

GIVEN = Contract(*EXPANDED.allowed, but=DECOMPOSED.but - WHOLE)
SHARDED = Pass("sharded", lambda graph: graph, GIVEN)
"""The last stage again, which is printed with the axes of a mesh along which dims lie."""
