"""Regions as kernels: closed, equal where programs repeat themselves, and of the same values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import graphcore as gc
from benchmarks import compile_time
from benchmarks.programs import NAMES, Program
from graphcore.backends import numpy_backend
from graphcore.ir.contracts import Contract
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import leaf, tensor
from graphcore.ops.schedule import kernel
from graphcore.schedule.regions import Region, is_repeated, regions, with_kernels, without_kernels
from tests import interpreter, random_graphs

SCHEDULED = Contract("leaf", "elementwise", "tensor", "linalg", "control", "schedule")


def kernels(graph: Graph) -> list[Node]:
    return [node for node in graph.every_node() if node.op is kernel]


def pointwise(region: Region) -> list[Node]:
    return [node for node in region.body.nodes() if node.op.pointwise]


def chain(nodes: int) -> Graph:
    inputs, y = compile_time.chain(nodes)
    return gc.compile(inputs, [y, *gc.grad(y, inputs)]).stages["scheduled"]


def check(graph: Graph) -> None:
    """Kernels are closed pointwise graphs; in their place their nodes are the graph again."""
    made = with_kernels(graph)
    SCHEDULED.check(made, "kernels")
    for node in kernels(made):
        body = node.attrs["body"]
        assert [x.type for x in node.inputs] == [param.type for param in body.params]
        inside = [x for x in body.nodes() if x not in set(body.params)]
        assert all(x.op.pointwise or is_repeated(x) for x in inside)
        assert len({x.type.shape for x in inside if x.op.pointwise}) == 1
        assert set(body.params) <= {x for each in inside for x in each.inputs}
        assert body.outputs
    assert without_kernels(made) == graph


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_a_program_are_closed_and_lose_nothing(name: str) -> None:
    compiled = Program(name).make("graphcore")
    assert isinstance(compiled, gc.Compiled)
    check(compiled.stages["scheduled"])


@settings(max_examples=25)
@given(program=random_graphs.programs())
def test_a_body_computes_the_values_of_its_region(program: random_graphs.Program) -> None:
    inputs = random_graphs.inputs()
    y = program(inputs)
    slopes = gc.grad(y.sum(), [inputs[name] for name in random_graphs.FLOATS], disconnected="zero")
    graph = gc.compile([*inputs.values()], [y, *slopes]).stages["scheduled"]
    check(graph)
    values, sizes = random_graphs.arrays(0, 4, 2), {"c": 4, "d": 2}
    for operands, outputs, body in (
        (region.operands, region.outputs, region.body) for region in regions(graph, 1)
    ):
        both = Graph(graph.params, (*operands, *outputs))
        found = interpreter.run(both, values, sizes)
        given = {param.attrs["name"]: x for param, x in zip(body.params, found, strict=False)}
        wanted = found[len(operands) :]
        for ours, theirs in zip(interpreter.run(body, given, sizes), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_what_repeats_is_one_body() -> None:
    """A longer chain has more regions, but no other bodies; bodies that are equal are one."""
    short, long = regions(chain(100), 1), regions(chain(400), 1)
    assert (len(short), len(long)) == (43, 163)
    assert {region.body for region in short} == {region.body for region in long}
    assert len({id(region.body) for region in long}) == 10
    assert sum(len(pointwise(region)) for region in long) == 1199


def test_the_backend_takes_kernels() -> None:
    graph = chain(20)
    made = with_kernels(graph)
    assert len(made) < len(graph)
    made = Graph(made.params, made.outputs, graph.trace)
    plain, ours = (numpy_backend.build(g, ("row",)) for g in (graph, made))
    assert ours.source == plain.source


def test_no_kernel_waits_for_itself() -> None:
    """Sizes that are only equal at the call lead from one shape to another, and back."""
    x, y = (gc.tensor(name, {"i": size}) for name, size in (("x", "n"), ("y", "m")))
    a = gc.exp(x)
    b = gc.sin(gc.cos(a + y) * x) + gc.tan(a)
    graph = gc.compile([x, y], b).stages["scheduled"]
    assert len({node.type for node in graph.nodes()}) == 2
    check(graph)
    z = gc.tensor("z", {"i": None, "j": None})
    s = gc.exp(z * gc.sin(x.rename(i="j")))
    check(gc.compile([x, z], s * gc.exp(s.sum("i"))).stages["scheduled"])


def test_loops_have_kernels_of_their_own() -> None:
    xs = gc.tensor("xs", {"time": None, "row": None})
    last, _ = gc.scan(lambda c, x: (gc.tanh(c * x) + c, None), xs.isel(time=0), xs, dim="time")
    graph = gc.compile([xs], [last, gc.grad(last.sum(), xs)]).stages["scheduled"]
    made = with_kernels(graph)
    assert len(kernels(made)) > sum(node.op is kernel for node in made.nodes())
    check(graph)


def test_leaves_and_views_that_repeat_values_stand_in_every_body() -> None:
    x, w = gc.tensor("x", {"row": None, "col": None}), gc.tensor("w", {"col": None})
    y = 2.0 * gc.sin(x + w)
    graph = gc.compile([x, w], [y, gc.cos(x * w + 2.0)]).stages["scheduled"]
    first, second = regions(graph)
    for region in (first, second):
        ops = [node.op for node in region.body.nodes()]
        assert ops.count(leaf.full) == 1
        assert ops.count(tensor.expand) == 1
        assert {x.op for x in region.operands} == {leaf.input_}


def test_kernels_are_printed_and_pickled() -> None:
    made = with_kernels(chain(20))
    assert pickle.loads(pickle.dumps(made)) == made
    assert "kernel(x, k)" in str(made)
    assert "outer %0[2]: f64[row] = input" in str(made)  # a param, by what it is given
