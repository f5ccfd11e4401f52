"""Values of straight code that machine code computes again rather than store: the same bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import entrance, planning
from graphcore.backends.llvm_kernels.nests import plan
from graphcore.ir.node import Node
from tests.backends.llvm_kernels.native import Both, needs_machine_code

pytestmark = needs_machine_code

LARGE = {"row": 400, "col": 1000}


def masked(x: gc.Tensor) -> gc.Tensor:
    """The slope of a sum over rows of an activation, which the reverse pass reads again."""
    m = gc.where(x > 0, x, 0.1 * x)
    square = m * m
    return gc.grad((square / (1 + square.sum("col"))).sum(), x)


def shifted(x: gc.Tensor) -> gc.Tensor:
    y = x * x + x
    return y + gc.roll(y, {"row": 1}) * gc.roll(y, {"col": 2})


def normalised(x: gc.Tensor) -> gc.Tensor:
    away = x - x.mean("col")
    y = away / gc.sqrt((away * away).mean("col") + 1e-5)
    return gc.grad((y**3).sum(), x)


def taken(y: gc.Tensor, x: gc.Tensor, monkeypatch: pytest.MonkeyPatch, **other: object) -> Both:
    for name, value in other.items():
        monkeypatch.setattr(planning, name, value)
    llvm_kernels.MADE.clear()
    return Both.of(gc.compile([x], y))


def rooms(both: Both) -> int:
    """The bytes of all rooms of a kernel of known sizes."""
    slots = [slot for slot in both.kernel.slots if isinstance(slot, entrance.Room)]
    return sum(int(slot.bytes) for slot in slots)


def values(both: Both, array: np.ndarray) -> np.ndarray:
    """The result of machine code."""
    return both.native(*both.bind([array]))[0]


def nothing(places: dict[Node, int], stored: object) -> list[Node]:
    return []


def everything(places: dict[Node, int], stored: set[Node]) -> list[Node]:
    return [x for x in places if planning.computing(x, stored) is not None]


@pytest.mark.parametrize("program", [masked, shifted])
def test_cheap_values_take_no_memory(
    program: Callable[[gc.Tensor], gc.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = gc.tensor("x", LARGE)
    array = np.random.default_rng(0).normal(size=(400, 1000))
    usual = taken(program(x), x, monkeypatch)
    keeping = taken(program(x), x, monkeypatch, computed_again=nothing)
    assert rooms(usual) < array.nbytes / 100 < array.nbytes <= rooms(keeping)
    assert np.array_equal(values(usual, array), values(keeping, array))


def test_what_costs_more_to_compute_again_is_stored() -> None:
    x = gc.tensor("x", LARGE)
    y = gc.exp(x)
    graph = gc.compile([x], y / (1 + y.sum("row"))).stages["optimized"]
    exp = next(node for node in graph.nodes() if node.op.name == "exp")
    assert exp in planning.best_plan(graph, {*graph.params}).computed


def test_no_value_is_computed_again_where_another_would_be_stored_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = gc.tensor("x", LARGE)
    a = (x + 1) * (x - 2) * (x + 3) * (x - 4) * x
    y = gc.floor(a)
    graph = gc.compile([x], y + gc.roll(y, {"row": 1}) * gc.roll(y, {"col": 2})).passes[-1].graph
    first = plan(graph, {*graph.params})
    places = {node: len(keys) for node, keys in first.elsewhere.items()}
    second = plan(graph, {*graph.params}, again=places)
    assert second.computed - first.computed  # `a` instead
    monkeypatch.setattr(planning, "computed_again", everything)
    assert planning.best_plan(graph, {*graph.params}).computed == first.computed


def test_values_of_rows_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    x = gc.tensor("x", LARGE)
    graph = gc.compile([x], normalised(x)).stages["optimized"]
    rows = planning.made_in_rows(planning.in_rows(plan(graph, {*graph.params})))
    monkeypatch.setattr(planning, "computed_again", everything)
    assert rows
    assert planning.made_in_rows(planning.best_plan(graph, {*graph.params})) == rows


@pytest.mark.parametrize("program", [masked, shifted, normalised])
def test_whatever_is_computed_again_the_bits_are_the_same(
    program: Callable[[gc.Tensor], gc.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    keeping = taken(program(x), x, monkeypatch, computed_again=nothing)
    again = taken(program(x), x, monkeypatch, computed_again=everything)
    for shape in ((0, 3), (1, 1), (3, 17), (20, 40)):
        array = np.random.default_rng(0).normal(size=shape)
        assert np.array_equal(values(again, array), values(keeping, array), equal_nan=True)
