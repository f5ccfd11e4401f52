"""Long graphs in pieces: nothing is lost, pieces are short, and repetitions are cut alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from benchmarks import compile_time
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.trace import tracing
from graphcore.ops import control
from graphcore.ops.schedule import kernel
from graphcore.schedule import pieces
from graphcore.schedule.order import finders
from graphcore.schedule.pieces import in_pieces
from graphcore.schedule.regions import is_given, is_repeated, without_kernels
from tests.laws import random_graphs
from tests.loops import random_loops


def length(graph: Graph) -> int:
    return sum(not (is_given(x) or is_repeated(x)) for x in graph.nodes())


def bodies(graph: Graph) -> list[Graph]:
    return [node.attrs["body"] for node in graph.every_node() if node.op is kernel]


def cut(graph: Graph) -> Graph:
    """The graph in pieces, which have all its nodes."""
    with tracing(graph.trace):
        made = in_pieces(graph)
    assert without_kernels(made) == graph
    for body in bodies(made):
        assert body.outputs
        needed = {name for y in body.outputs for name in unknowns_of(y)}
        assert needed.isdisjoint(finders(body.every_node()))
    return made


def chain(nodes: int) -> Graph:
    inputs, y = compile_time.chain(nodes)
    return gc.compile(inputs, [y, *gc.grad(y, inputs)]).stages["optimized"]


def test_a_short_graph_stays_whole() -> None:
    graph = chain(100)
    assert cut(graph) is graph


def test_a_chain_has_few_bodies_however_long_it_is() -> None:
    short, long = (bodies(cut(chain(nodes))) for nodes in (1000, 3000))
    assert len(long) > 2.5 * len(short)
    assert len({*long}) <= len({*short}) + 2
    assert max(map(length, long)) <= pieces.LARGEST


LONGER = [pytest.param(period, marks=pytest.mark.slow) for period in (23, 130, 330)]


@pytest.mark.parametrize("period", [7, 60, *LONGER])
def test_any_period_is_found(period: int) -> None:
    """Layers of so many different functions: no more bodies than in a few layers."""
    functions = [gc.sin, gc.cos, gc.tanh, gc.exp, gc.arctan, gc.expm1, gc.arcsinh]

    def layer(y: gc.Tensor) -> gc.Tensor:
        for i in range(period):
            y = functions[(i * i + i // 7) % 7](y) if (i * i) % 5 else y * 0.5 + y
        return y

    def layers(count: int) -> list[Graph]:
        x = gc.tensor("x", {"row": None})
        y = x
        for _ in range(count):
            y = layer(y)
        return bodies(cut(gc.compile([x], y).stages["optimized"]))

    few = 1200 // period + 3
    some, many = layers(few), layers(3 * few)
    assert len(many) > 2 * len(some)
    assert len({*many}) <= len({*some}) + 2


def test_bodies_of_loops_are_cut_too() -> None:
    x = gc.tensor("x", {"time": None, "row": None})

    def step(c: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, None]:
        for _ in range(400):
            c = gc.sin(c) * x + c
        return c, None

    last, _ = gc.scan(step, x.isel(time=0), x, dim="time")
    made = cut(gc.compile([x], last).stages["optimized"])
    (loop,) = [node for node in made.nodes() if node.op is control.scan]
    found = bodies(loop.attrs["body"])
    assert len(found) > 5
    assert len({*found}) <= 3


def test_updates_that_are_written_in_place_stay_outside() -> None:
    x = gc.tensor("x", {"row": None})

    def step(i: gc.Tensor, c: gc.Tensor) -> gc.Tensor:
        value = c.isel(row=i)
        for _ in range(400):
            value = gc.sin(value) * 0.5 + value
        return c.at[{"row": i}].set(value)

    graph = gc.compile([x], gc.fori_loop(0, 3, step, x)).stages["optimized"]
    made = cut(graph)
    (loop,) = [node for node in made.nodes() if node.op is control.scan]
    assert any(node.op.name == "put" for node in loop.attrs["body"].nodes())
    assert bodies(loop.attrs["body"])


def short_pieces(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pieces, "LONG", 5)
    patch.setattr(pieces, "LARGEST", 6)
    patch.setattr(pieces, "LEAST", 2)


def check(graph: Graph) -> None:
    with pytest.MonkeyPatch.context() as patch:
        short_pieces(patch)
        cut(graph)


@settings(max_examples=10)
@given(program=random_graphs.programs())
def test_random_graphs_lose_nothing(program: random_graphs.Program) -> None:
    inputs = random_graphs.inputs()
    y = program(inputs)
    slopes = gc.grad(y.sum(), [inputs[name] for name in random_graphs.FLOATS], disconnected="zero")
    check(gc.compile([*inputs.values()], [y, *slopes]).stages["optimized"])


@settings(max_examples=10)
@given(program=random_loops.programs(2), unknown=st.booleans())
def test_random_loops_lose_nothing(program: random_loops.Program, unknown: bool) -> None:
    sizes = {"a": 1, "b": 2, "time": 3}
    given = random_loops.inputs(dict.fromkeys(sizes) if unknown else sizes)
    ys = program(gc, given)
    xs = [given[name] for name in random_loops.FLOATS]
    slopes = gc.grad(sum((y * y).sum() for y in ys), xs, disconnected="zero")
    check(gc.compile([*given.values()], [*ys, *slopes]).stages["optimized"])
