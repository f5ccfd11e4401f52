"""The passes for NumPy: first the passes for every target, then those that serve its costs."""

from __future__ import annotations

from graphcore.rewrites.accumulate import add_embedded
from graphcore.rewrites.layout import short_axes_first
from graphcore.rewrites.pipeline import COMMON, EXPANDED, Pass, Passes, tidied

PASSES: Passes = [
    *COMMON,
    Pass("accumulated", add_embedded, EXPANDED),
    tidied,  # slices of the parts meet other views
    Pass("scheduled", short_axes_first, EXPANDED),
]
