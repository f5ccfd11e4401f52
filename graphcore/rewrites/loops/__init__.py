"""Optimising loops: values that several loops share, and places where nodes are computed."""

from __future__ import annotations

from .blocks import loops_in_blocks as loops_in_blocks
from .hoist import hoist as hoist
from .parts import record_parts as record_parts
from .sharing import merge_loops as merge_loops
from .sharing import prune_loops as prune_loops
from .sharing import save_for_pullbacks as save_for_pullbacks
from .sharing import tidy_bodies as tidy_bodies
