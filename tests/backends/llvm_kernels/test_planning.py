"""Values of straight code that machine code computes again rather than store: the same bits."""

from __future__ import annotations

import graphcore as gc
from graphcore.backends.llvm_kernels import planning
from tests.backends.llvm_kernels.native import needs_machine_code

pytestmark = needs_machine_code

LARGE = {"row": 400, "col": 1000}


def test_what_costs_more_to_compute_again_is_stored() -> None:
    x = gc.tensor("x", LARGE)
    y = gc.exp(x)
    graph = gc.compile([x], y / (1 + y.sum("row"))).stages["optimized"]
    exp = next(node for node in graph.nodes() if node.op.name == "exp")
    assert exp in planning.best_plan(graph, {*graph.params}).computed
