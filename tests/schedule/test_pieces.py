"""Long graphs in pieces: nothing is lost, pieces are short, and repetitions are cut alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from benchmarks import compile_time
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.sizes import evaluate
from graphcore.ir.trace import tracing
from graphcore.ops import control
from graphcore.ops.schedule import kernel
from graphcore.schedule import pieces
from graphcore.schedule.order import finders
from graphcore.schedule.pieces import in_pieces
from graphcore.schedule.regions import is_given, is_repeated, without_kernels
from tests.laws import random_graphs
from tests.loops import random_loops
from tests.reference import close
from tests.tiers.drawing import questions


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


# ---- programs in pieces, run


def agree(inputs: list[gc.Tensor], outputs: Any, *arrays: Any) -> None:
    """Machine code computes what NumPy calls do."""
    calls, native = (gc.compile(inputs, outputs, native=native) for native in (False, True))
    results = zip(native(*arrays), calls(*arrays), strict=True)
    for found, wanted in results:
        close(found, wanted, np.abs(wanted).max(initial=0))


@pytest.mark.parametrize("rows", [0, 3])
def test_pieces_read_the_steps_of_a_loop_after_it(rows: int) -> None:
    """A piece begins with numbers, and some that are read after the loop depend on its steps."""
    x, t, s = gc.tensor("x", {"row": None}), gc.tensor("t", {"row": None}), gc.tensor("s", {})
    loop = gc.while_loop(
        lambda q: (q[0] < 4) & (abs(q[1]).sum() < 100.0),
        lambda q: (q[0] + 1, 0.6 * q[1] + gc.cos(gc.dot(q[1], s, x, dim="row"))),
        (0, x),
    )[1]
    y = gc.sin(loop).sum()
    for k in range(20):  # more than 500 nodes
        y = y + gc.sin(gc.cbrt(x**2 + 0.1 * k)).sum()
    slopes = gc.grad(y, [x, s])
    second = gc.grad((slopes[0] * t).sum() + slopes[1], [x, s])
    random = np.random.default_rng(0)
    agree([x, t, s], [*slopes, *second], random.normal(size=rows), random.normal(size=rows), 0.5)


def test_kernels_follow_the_loop_that_finds_a_size_inside_them() -> None:
    """The size is in the bodies of kernels alone, not in what they are given or give."""
    s = gc.tensor("s", {"i": None, "j": "i"})
    steps = gc.tensor("steps", (), dtype="int64")

    def step(_: gc.Tensor, density: gc.Tensor) -> gc.Tensor:
        fock = gc.linalg.congruence(s, density, ("i", "j"), ("i", "j"))
        vectors = gc.linalg.eigh(fock, dims=("i", "j")).vectors
        c = gc.linalg.apply(s, vectors, ("i", "j"), along="i")
        return gc.dot(c, c.rename(i="j"), dim="eigen")

    slope = gc.grad((gc.fori_loop(0, steps, step, s) ** 3).sum(), s)
    overlaps = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 3.0]])
    agree([s, steps], [gc.grad((slope * s).sum(), s)], overlaps, 3)


def check_values(program: random_loops.Program, seed: int) -> None:
    sizes = {"a": 1 + seed % 2, "b": 2, "time": (3, 2, 4, 1, 0)[seed % 5]}
    values = random_loops.arrays(seed, sizes)
    given = random_loops.inputs(dict.fromkeys(sizes))
    asked, more = questions(program(gc, given), [given[name] for name in random_loops.FLOATS])
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=[evaluate(n, sizes) for n in x.shape]) for x in more]
    with pytest.MonkeyPatch.context() as patch:
        short_pieces(patch)
        agree([*given.values(), *more], asked, *values.values(), *arrays)


@pytest.mark.parametrize("count", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_random_loops_in_pieces_compute_the_same(count: int) -> None:
    drawn = given(program=random_loops.programs(2), seed=st.integers(0, 999))
    settings(max_examples=count)(drawn(check_values))()
