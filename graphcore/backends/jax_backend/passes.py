"""The passes of a compilation for JAX: those of every target, but contractions stay whole.

XLA takes a contraction with any number of batch, free and summed axes, so nothing is merged into
matrices by reshapes. Every axis keeps its label, and one that is split over devices stays an axis.
"""

from __future__ import annotations

from graphcore.ops import tensor

WHOLE = frozenset({tensor.einsum})
"""The ops that other targets have taken apart by then."""
