"""Regions as kernels: closed, none waits for itself, and nothing of the program is lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import NAMES, Program
from graphcore.backends import numpy_backend
from graphcore.backends.llvm_kernels import KERNELS
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.node import Node
from graphcore.ir.trace import tracing
from graphcore.ops import control, leaf, tensor
from graphcore.ops.schedule import kernel
from graphcore.rewrites.plain import expand_to, sum_over
from graphcore.schedule.order import finders, in_order
from graphcore.schedule.regions import (
    in_place,
    is_repeated,
    leaks,
    with_kernels,
    without_kernels,
)
from tests import interpreter
from tests.random_programs.deriving import derived
from tests.random_programs.running import arguments, built


def kernels(graph: Graph) -> list[Node]:
    return [node for node in graph.every_node() if node.op is kernel]


def but(*names: str) -> Callable[[Node], bool]:
    """What computes all ops but those of some names."""
    return lambda node: node.op.name not in names


def drawn(seed: int) -> Callable[[Node], bool]:
    """What computes two of three ops, which the seed chooses, and all that costs nothing."""

    def computes(node: Node) -> bool:
        free = is_repeated(node) or node.op in (leaf.input_, leaf.constant, leaf.project)
        return free or (seed + sum(map(ord, node.op.name))) % 3 > 0

    return computes


def found_inside(body: Graph) -> set[str]:
    """The sizes that are known only when the loops of a body have run."""
    return set(finders(body.every_node()))


def check(graph: Graph, computes: Callable[[Node], bool]) -> Graph:
    """Kernels are closed graphs of what is computed; in their place the graph is as it was."""
    with tracing(graph.trace):
        made = with_kernels(graph, computes)
    KERNELS.check(made, "kernels")
    assert made.params == graph.params
    for node in kernels(made):
        body = node.attrs["body"]
        assert [x.type for x in node.inputs] == [param.type for param in body.params]
        assert all(map(computes, body.every_node()))
        assert body.outputs
        assert not found_inside(body) & {n for y in body.outputs for n in unknowns_of(y)}
        if node.inputs != made.params or any(y.inputs != (node,) for y in made.outputs):
            assert len(set(body.outputs)) == len(body.outputs)
    assert without_kernels(made) == graph
    return made


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_a_program_lose_nothing(name: str) -> None:
    compiled = Program(name).make("graphcore")
    assert isinstance(compiled, gc.Compiled)
    graph = compiled.stages["optimized"]
    assert [node.op for node in check(graph, but()).nodes()].count(kernel) == 1
    for seed in range(3):
        check(graph, drawn(seed))


@pytest.mark.parametrize("seed", range(12))
def test_a_body_computes_the_values_of_its_region(seed: int) -> None:
    program = derived(seed, "plain")
    (compiled,), _ = built(program, [None])
    graph = compiled.stages["optimized"]
    made = check(graph, drawn(seed % 3))
    values, sizes = arguments(program)
    for node in kernels(made):
        body, stands_for = node.attrs["body"], in_place(node)
        operands, outputs = ([stands_for[x] for x in side] for side in (body.params, body.outputs))
        found = interpreter.run(Graph(graph.params, (*operands, *outputs)), values, sizes)
        given = {param.attrs["name"]: x for param, x in zip(body.params, found, strict=False)}
        for ours, theirs in zip(
            interpreter.run(body, given, sizes), found[len(operands) :], strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(12))
def test_loops_lose_nothing(seed: int) -> None:
    (compiled,), _ = built(derived(seed, "loops"), [None])
    check(compiled.stages["optimized"], drawn(seed % 3))


def test_the_backend_writes_the_nodes_of_kernels() -> None:
    x = gc.tensor("x", {"row": None})
    graph = gc.compile([x], gc.exp(gc.sort(gc.sin(x) + 1, "row")) + 2).stages["optimized"]
    made = check(graph, but("sort"))
    made = Graph(made.params, made.outputs, graph.trace)
    plain, ours = (numpy_backend.build(g, ("row",)) for g in (graph, made))
    assert ours.source == plain.source


def test_no_kernel_waits_for_itself() -> None:
    x = gc.tensor("x", {"row": None})
    a = gc.sin(gc.exp(x) * 2)
    y = gc.cos(a) * gc.sort(gc.tanh(a) + 1, "row") + a
    made = check(gc.compile([x], y).stages["optimized"], but("sort"))
    assert [len(node.inputs) for node in kernels(made)] == [1, 2]


def test_few_calls_are_no_kernel() -> None:
    x = gc.tensor("x", {"row": None})
    n = gc.tensor("n", {})
    y = gc.exp(gc.sort(x, "row")) * gc.sort(gc.expand_dims(n * n + n, row=2), "row").sum()
    assert not kernels(check(gc.compile([x, n], y).stages["optimized"], but("sort", "multiply")))


def test_ops_with_several_values_are_in_kernels() -> None:
    x = gc.tensor("x", {"row": None, "col": "row"})
    det = gc.linalg.slogdet(x)[1]
    graph = gc.compile([x], gc.sort(x, "row").sum() + gc.exp(det)).stages["optimized"]
    (made,) = kernels(check(graph, but("sort")))
    assert "slogdet" in [node.op.name for node in made.attrs["body"].nodes()]


def test_a_loop_with_an_op_of_the_host_has_kernels_of_its_own() -> None:
    xs = gc.tensor("xs", {"time": None, "row": None})

    def step(c: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.sort(gc.tanh(c * x) + c, "row"), None

    last, _ = gc.scan(step, xs.isel(time=0), xs, dim="time")
    graph = gc.compile([xs], [last, gc.grad(last.sum(), xs)]).stages["optimized"]
    made = check(graph, but("sort"))
    (forward,) = [node for node in made.nodes() if node.op is control.scan]
    assert [node.op for node in forward.attrs["body"].nodes()].count(kernel) == 1
    inside = [node.op for k in kernels(made) for node in k.attrs["body"].nodes()]
    assert inside.count(control.scan) == 1  # the reverse of a sort sorts nothing


def test_a_loop_is_a_kernel_only_with_all_that_depends_on_its_steps() -> None:
    x = gc.tensor("x", {"row": None})
    y = gc.while_loop(lambda y: (y * y).sum() > 1e-3, lambda y: gc.sin(y) * 0.5 + y * 0.1, x)
    graph = gc.compile([x], gc.grad(gc.sort(y, "row").sum(), x)).stages["optimized"]
    finding = [node for node in graph.nodes() if node.op is control.while_loop]
    assert finding
    assert finding[0].attrs["trips"] is not None
    made = check(graph, but("sort", "scatter", "put", "argsort"))
    assert control.while_loop in {node.op for node in made.nodes()}
    made = check(graph, but("nothing"))
    assert [node.op for node in made.nodes() if node.inputs] == [kernel, leaf.project]


def twice_found() -> tuple[Node, Node, Node]:
    """A loop that finds its trip count, a value that has it as a size, and the loop once more.

    The second loop starts from that value.
    """
    x = gc.tensor("x", {"row": None})
    y = gc.while_loop(lambda y: (y * y).sum() > 1e-3, lambda y: gc.sin(y) * 0.5, x)
    nodes = gc.compile([x], gc.grad(y.sum(), x)).stages["optimized"].nodes()
    loop = next(node for node in nodes if node.op is control.while_loop)
    (name,) = loop.attrs["trips"].unknowns
    sized = next(node for node in nodes if node.op is leaf.project and name in unknowns_of(node))
    total, start = sum_over(sized, range(sized.type.ndim)), loop.inputs[0]
    again = start + expand_to(total, start.type.shape)
    return loop, sized, Node(loop.op, (again, *loop.inputs[1:]), loop.attrs)


def test_a_loop_leaks_a_size_that_is_needed_outside_of_its_group() -> None:
    loop, sized, _ = twice_found()
    total = sum_over(sized, range(sized.type.ndim))
    inside = [loop, sized, total]
    assert leaks(Graph(loop.inputs, (total,)), [inside]) == []
    assert leaks(Graph(loop.inputs, (sized,)), [inside]) == [loop]
    assert leaks(Graph(loop.inputs, (total,)), [[loop], [sized, total]]) == [loop]
    assert leaks(Graph(loop.inputs, (total,)), [[sized, total]]) == []


def test_loops_that_find_one_size_are_in_one_group() -> None:
    loop, _, again = twice_found()
    graph = Graph(loop.inputs, (loop[0], again[0]))
    assert leaks(graph, [graph.nodes()]) == []
    rest = [node for node in graph.nodes() if node not in (again, again[0])]
    assert leaks(graph, [rest, [again, again[0]]]) == [loop, again]


def test_the_first_of_the_loops_that_find_a_size_runs_before_all_that_needs_it() -> None:
    loop, sized, again = twice_found()
    for outputs in ((again[0], sized), (loop[0], again[0], sized)):
        order = [*in_order(Graph(loop.inputs, outputs).nodes())]
        assert order.index(loop) < order.index(sized) < order.index(again)


def test_views_and_leaves_stand_in_every_body() -> None:
    x, w = gc.tensor("x", {"row": None, "col": None}), gc.tensor("w", {"col": None})
    y = 2.0 * gc.sin(x.T + w)
    z = gc.cos(x.T * gc.sort(y, "col") + 2.0) * w
    made = check(gc.compile([x, w], [y, z]).stages["optimized"], but("sort"))
    first, second = kernels(made)
    for node in (first, second):
        ops = [x.op for x in node.attrs["body"].nodes()]
        assert ops.count(tensor.transpose) == 1
    assert all(x.op in (leaf.input_, leaf.project, tensor.sort) for x in second.inputs)


def test_kernels_are_printed_and_pickled() -> None:
    x = gc.tensor("x", {"row": None})
    y = gc.sort(gc.sin(x) * x, "row")
    made = check(gc.compile([x], y).stages["optimized"], but("sort"))
    assert pickle.loads(pickle.dumps(made)) == made
    assert "kernel(x)" in str(made)
