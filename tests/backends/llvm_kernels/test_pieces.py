"""Long graphs in pieces: nothing is lost, pieces are short, and repetitions are cut alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks import compile_time
from graphcore.backends.llvm_kernels.passes import pieces
from graphcore.backends.llvm_kernels.passes.pieces import in_pieces
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.trace import tracing
from graphcore.ops import control
from graphcore.ops.schedule import kernel
from graphcore.schedule.order import finders
from graphcore.schedule.regions import is_given, is_repeated, without_kernels
from tests.random_programs.deriving import derived
from tests.random_programs.running import arguments, built, results, tensors
from tests.reference import close


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
    assert max(map(length, long)) <= pieces.LARGEST_PIECE


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
    patch.setattr(pieces, "LONG_GRAPH", 5)
    patch.setattr(pieces, "LARGEST_PIECE", 6)
    patch.setattr(pieces, "LEAST_PIECE", 2)


def check(graph: Graph) -> None:
    with pytest.MonkeyPatch.context() as patch:
        short_pieces(patch)
        cut(graph)


@pytest.mark.parametrize("kind", ["plain", "loops"])
@pytest.mark.parametrize("seed", range(10))
def test_random_programs_lose_nothing(kind: str, seed: int) -> None:
    (compiled,), _ = built(derived(seed, kind), [None])
    check(compiled.stages["optimized"])


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


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 14))]
)
def test_random_loops_in_pieces_compute_the_same(seed: int) -> None:
    program = derived(seed, "loops").in_double()
    given, (values, _) = tensors(program), arguments(program)
    with pytest.MonkeyPatch.context() as patch:
        short_pieces(patch)
        agree([*given.values()], results(program, given), *values.values())
