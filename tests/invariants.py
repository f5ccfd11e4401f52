"""A mode in which each compilation is held to what passes keep.

`pytest --checked` runs any test so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

from graphcore.backends.invariants import verify
from graphcore.ir.graph import Graph
from graphcore.rewrites import pipeline


@contextmanager
def verified() -> Iterator[None]:
    """What is compiled in this block is verified, stage by stage."""
    run = pipeline.run

    def run_and_verify(
        graph: Graph, passes: pipeline.Passes, before: Sequence[pipeline.Stage] = ()
    ) -> list[pipeline.Stage]:
        stages = run(graph, passes, before)
        verify(stages[max(len(before) - 1, 0) :])
        return stages

    with mock.patch.object(pipeline, "run", run_and_verify):
        yield
