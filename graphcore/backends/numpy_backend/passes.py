"""The passes for NumPy: first the passes for every target, then those that serve its costs."""

from __future__ import annotations

from graphcore.rewrites.pipeline import COMMON, EXPANDED, Pass, Passes, tidied

from .accumulate import accumulate
from .layout import short_axes_first
from .shared_factors import share_factors

PASSES: Passes = [
    *COMMON,
    Pass("factors shared", share_factors, EXPANDED),
    Pass("accumulated", accumulate, EXPANDED),
    Pass("optimized", tidied.change, EXPANDED),
    Pass("scheduled", short_axes_first, EXPANDED),
]
