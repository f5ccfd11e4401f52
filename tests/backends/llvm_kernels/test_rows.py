"""Nests that share their rows: what is stored one row at a time is read by none of another."""

from __future__ import annotations

import graphcore as gc
from graphcore.backends.llvm_kernels.nests import Nest
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.backends.llvm_kernels.rows import Rows
from graphcore.ops import tensor

from .native import needs_machine_code

pytestmark = needs_machine_code

Tensor = gc.Tensor


def normalised(x: Tensor, y: Tensor) -> Tensor:
    centred = x - gc.mean(x, "c")
    return centred / gc.sqrt(gc.mean(centred**2, "c") + 1e-5) * y


def test_a_layer_norm_is_one_step() -> None:
    """What there is one number of for each row is computed between the passes over it."""
    x, y = (gc.tensor(name, {"a": None, "c": None}) for name in "xy")
    out = normalised(x, y)
    graph = gc.compile([x, y], out).passes[-1].graph
    (rows,) = best_plan(graph, set(graph.params)).steps
    assert isinstance(rows, Rows)
    assert len(rows.nests) == 5  # differences from the mean are not stored
    slopes = gc.compile([x, y], gc.grad(gc.sum(gc.sin(out)), [x, y])).passes[-1].graph
    (rows,) = best_plan(slopes, set(slopes.params)).steps
    assert isinstance(rows, Rows)


def test_what_comes_after_the_rows_is_computed_side_by_side() -> None:
    """A logarithm for each row takes as long as one of eight rows."""
    x = gc.tensor("x", {"a": None, "c": None})
    shares = gc.special.softmax(x, "c")
    size = gc.log((shares**2).sum("c"))
    graph = gc.compile([x], [shares, size]).passes[-1].graph
    rows, last = best_plan(graph, set(graph.params)).steps
    assert isinstance(rows, Rows)
    assert isinstance(last, Nest)


def test_what_is_the_same_in_all_rows_is_not_stored_for_each() -> None:
    x, y = gc.tensor("x", {"a": None, "c": None}), gc.tensor("y", {"c": None})
    z = gc.exp(y) / (1 + y)
    graph = gc.compile([x, y], [x * z, gc.cos(x) - z]).passes[-1].graph
    assert all(
        root.op is not tensor.expand for root in best_plan(graph, set(graph.params)).computed
    )
