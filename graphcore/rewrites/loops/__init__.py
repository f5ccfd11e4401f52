"""Optimising loops: what several loops share, and where the nodes of a body are computed."""

from __future__ import annotations

from .hoist import hoist as hoist
from .sharing import prune_loops as prune_loops
from .sharing import tidy_loops as tidy_loops
