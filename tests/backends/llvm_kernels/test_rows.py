"""Nests that share their rows: what is stored one row at a time is read by none of another."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.nests import Nest
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.backends.llvm_kernels.rows import Rows
from graphcore.ops import tensor

from .native import Both, needs_machine_code

pytestmark = needs_machine_code

Tensor = gc.Tensor


def masked_softmax(x: Tensor, y: Tensor) -> Tensor:
    return gc.special.softmax((x * 0.5).where(y < 1.0, -np.inf), "c")


def normalised(x: Tensor, y: Tensor) -> Tensor:
    centred = x - gc.mean(x, "c")
    return centred / gc.sqrt(gc.mean(centred**2, "c") + 1e-5) * y


def beside_rows(x: Tensor, y: Tensor) -> Tensor:
    """Exponentials of other rows are read as well, so that these are stored whole."""
    z = gc.exp(x - gc.max(x, "c"))
    return z / gc.sum(z, "c") + gc.sum(z, "a") * y


@pytest.mark.parametrize("make", [masked_softmax, normalised, beside_rows])
def test_rows(make: object) -> None:
    sizes = {"a": None, "b": None, "c": None}
    x, y = gc.tensor("x", sizes), gc.tensor("y", sizes)
    out = make(x, y)
    slopes = gc.grad(gc.sum(gc.sin(out)), [x, y], disconnected="zero")
    rng = np.random.default_rng(11)
    compiled = gc.compile([x, y], [out, *slopes])
    both = Both.of(compiled)
    for shape in ((0, 2, 5), (3, 0, 5), (1, 1, 1), (2, 3, 8), (3, 2, 17), (2, 2, 70), (1, 2, 2100)):
        both.agree_when_called([rng.standard_normal(shape) for _ in range(2)], 1e4)


def test_a_softmax_is_one_step() -> None:
    x = gc.tensor("x", {"a": None, "b": None, "c": None})
    graph = gc.compile([x], gc.special.softmax(x, "c")).passes[-1].graph
    (rows,) = best_plan(graph, set(graph.params)).steps
    assert isinstance(rows, Rows)
    assert len(rows.own) == 3  # the largest value, exponentials and their sum


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


def two_totals(x: Tensor, y: Tensor) -> Tensor:
    """The largest value of each row and its sum of exponentials, which are not stored."""
    return gc.special.logsumexp(x * y, "c")


def spread(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return gc.mean(x, "c"), gc.var(x, "c")


@pytest.mark.parametrize("make", [two_totals, spread])
def test_rows_that_are_read_twice_are_read_in_blocks(make: object) -> None:
    x, y = (gc.tensor(name, {"a": None, "c": None}) for name in "xy")
    compiled = gc.compile([x, y], make(x, y))
    graph = compiled.passes[-1].graph
    rows = best_plan(graph, set(graph.params)).steps[0]
    assert isinstance(rows, Rows)
    assert not rows.stores_whole
    rng, both = np.random.default_rng(12), Both.of(compiled)
    for shape in ((0, 5), (3, 0), (1, 1), (31, 9), (32, 8), (33, 70), (67, 40)):
        both.agree_when_called([rng.standard_normal(shape) for _ in range(2)], 1e4)


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
