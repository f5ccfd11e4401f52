"""The laws of the design, on random programs."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.targets import NUMPY
from graphcore.ir.graph import Graph
from graphcore.rewrites import pipeline
from tests import interpreter, reference
from tests.random_programs.drawing import Program
from tests.random_programs.running import arguments, results, tensors
from tests.random_programs.shrinking import held, require
from tests.random_programs.statements import drawn
from tests.random_programs.values import Unclear
from tests.reference import close


def law(examples: int, many: int) -> Callable[[Any], Any]:
    """A property of random programs, held by `examples` of them, and by `many` among slow tests."""

    def decorate(check: Any) -> Any:
        @pytest.mark.parametrize("count", [examples, pytest.param(many, marks=pytest.mark.slow)])
        def test(count: int) -> None:
            require(held(check), (drawn(seed, "plain") for seed in range(count)))

        test.__doc__ = check.__doc__
        return test

    return decorate


def doubt(clear: bool) -> None:
    """Skip a program unless this holds: the law could not be judged."""
    if not clear:
        raise Unclear


def made(program: Program, given: dict[str, gc.Tensor]) -> gc.Tensor:
    """The last result of a program, which needs floats to say something."""
    doubt(bool(floats(given)))
    return results(program, given)[-1]


def floats(given: dict[str, gc.Tensor]) -> list[gc.Tensor]:
    return [x for x in given.values() if x.dtype.kind == "f"]


def graph_of(given: dict[str, gc.Tensor], outputs: Iterable[gc.Tensor]) -> Graph:
    return Graph(tuple(x.node for x in given.values()), tuple(y.node for y in outputs))


def moderate(values: Iterable[np.ndarray]) -> None:
    """Leave out programs whose values run away: their rounding says nothing."""
    doubt(all(np.isfinite(v).all() and np.abs(v).max(initial=0) < 1e4 for v in values))


def gradients(y: gc.Tensor, given: dict[str, gc.Tensor]) -> list[gc.Tensor]:
    return gc.grad(y.sum(), floats(given), disconnected="zero")


@law(40, 1200)
def test_every_pass_keeps_the_value(program: Program) -> None:
    given = tensors(program)
    y = made(program, given)
    values, sizes = arguments(program)
    graph = graph_of(given, [y, *gradients(y, given)])
    _, _, *stages = pipeline.run(graph, NUMPY.passes)  # the first two have names
    assert stages[0].name == "lowered"
    wanted = interpreter.run(stages[0].graph, values, sizes)
    moderate(wanted[:1])
    rtol = 1e-4 if any(n.type.dtype == np.float32 for n in computed(graph)) else 1e-9
    expanded = [stage.name for stage in stages].index("expanded")
    for at, stage in enumerate(stages):
        found = interpreter.run(stage.graph, values, sizes)
        assert (found[1] is None) == (at < expanded)
        if wanted[1] is None:
            wanted[1:] = found[1:]
        for ours, theirs in zip(found, wanted, strict=True):
            if ours is not None:
                close(ours, theirs, rtol=rtol)
    compiled = gc.compile(list(given.values()), [y, *gradients(y, given)])
    for ours, theirs in zip(compiled(**values), wanted, strict=True):
        close(ours, theirs, rtol=rtol)


def computed(graph: Graph) -> list[Any]:
    """The nodes the program computes, inputs aside."""
    return [n for n in graph.nodes() if hasattr(n.type, "dtype") and n not in graph.params]


@law(100, 1200)
def test_derivatives(program: Program) -> None:
    """Both modes agree with each other and with differences, in first and second order."""
    doubt("stop_gradient" not in program.text())
    program = program.in_double()
    given, (values, sizes) = tensors(program), arguments(program)
    others = [x for x in given.values() if x.dtype.kind != "f"]
    reference.check_derivatives(made(program, given), floats(given), others, values, sizes, doubt)


@law(20, 600)
def test_permuted_inputs_change_only_layout(program: Program) -> None:
    values, _ = arguments(program)
    given = tensors(program)
    dims_of = [x.dims for x in floats(given)]
    results = []
    for order in (1, -1):
        turned = [
            one._replace(declared=dict([*one.declared.items()][::order])) for one in program.inputs
        ]
        given = tensors(program._replace(inputs=turned))
        y = made(program, given)
        found = gc.compile(list(given.values()), [y, *gradients(y, given)])(
            **{name: value.transpose(range(value.ndim)[::order]) for name, value in values.items()}
        )
        results.append((y.dims, found))
    (dims, wanted), (permuted, found) = results
    moderate(wanted)
    assert sorted(dims) == sorted(permuted)
    layouts = [permuted, *[names[::-1] for names in dims_of]]
    targets = [dims, *dims_of]
    rtol = 1e-4 if any(v.dtype == np.float32 for v in wanted) else 1e-5
    for ours, theirs, have, want in zip(found, wanted, layouts, targets, strict=True):
        close(ours.transpose([have.index(dim) for dim in want]), theirs, rtol=rtol)


JOINED = re.compile(r"n\d+(\*| \+ )n\d+(?:\1n\d+)*")
"""A product or a sum of sizes, which stand in the order of their names."""


def in_order(joined: re.Match[str]) -> str:
    return joined[1].join(sorted(joined[0].split(joined[1])))


STRANGE = ("é", "class", "x); import os #" + "A" * 1000)


@law(20, 600)
def test_renamed_dims_change_nothing(program: Program) -> None:
    program = program.unknown()  # a name of any letters is that of a dim, and of no size
    values = program.values(0)
    names = dict(zip(sorted(program.sizes[0]), STRANGE, strict=True))
    results = []
    for one in (program, program.renamed(names)):
        given = tensors(one)
        y = made(one, given)
        f = gc.compile(list(given.values()), [y, *gradients(y, given)])
        code = "\n".join(line.partition("#")[0] for line in f.source.splitlines())
        results.append((y.dims, f(**values), JOINED.sub(in_order, code)))
    assert results[1][0] == tuple(names[dim] for dim in results[0][0])
    assert results[0][2] == results[1][2]
    for ours, theirs in zip(results[1][1], results[0][1], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@law(25, 800)
def test_two_builds_are_one_object(program: Program) -> None:
    y = made(program, tensors(program))
    assert made(program, tensors(program)) is y
    twice = [tensors(program) for _ in range(2)]
    graphs = [graph_of(given, [y, *gradients(y, given)]) for given in twice]
    assert graphs[0] == graphs[1]
    assert pickle.loads(pickle.dumps(graphs[0])) == graphs[0]
    for one, two in zip(*(pipeline.run(graph, NUMPY.passes) for graph in graphs), strict=True):
        assert one.graph == two.graph
        assert pickle.loads(pickle.dumps(one.graph)) == one.graph


@law(25, 800)
def test_simplification_is_idempotent(program: Program) -> None:
    given = tensors(program)
    stays_simplified(made(program, given), given)


def test_a_contraction_of_an_outer_product_is_simplified_at_once() -> None:
    x, z = gc.tensor("x", {"a": 2, "b": 3}), gc.tensor("z", {"c": None})
    given = {"x": x, "z": z}
    stays_simplified(gc.dot(z, gc.dot(gc.sin(x), x, dim=()), dim=()), given)


def stays_simplified(y: gc.Tensor, given: dict[str, gc.Tensor]) -> None:
    graph = graph_of(given, [y, *gradients(y, given)])
    for step in NUMPY.passes:
        graph = pipeline.run(graph, [step])[-1].graph
        again = pipeline.run(graph, [step])[-1].graph
        assert again == graph, (step, first_difference(graph, again))


def first_difference(graph: Graph, again: Graph) -> Any:
    """What one of them has and the other lacks."""
    have, new = set(graph.nodes()), set(again.nodes())
    return [n for n in graph.nodes() if n not in new][:3], [
        n for n in again.nodes() if n not in have
    ][:3]


@law(20, 600)
def test_vectorised_equals_stacked(program: Program) -> None:
    """One input with a dim more: the program of the stack is the stack of the programs."""
    given = tensors(program)
    y, which = made(program, given), floats(given)[0].name
    more = given | {
        which: gc.tensor(which, {"more": 3} | given[which].sizes, dtype=given[which].dtype)
    }
    whole = made(program, more)
    values, _ = arguments(program)
    random = np.random.default_rng(program.seed)
    values[which] = random.normal(size=(3, *values[which].shape)).astype(values[which].dtype)
    alone = gc.compile(
        list(given.values()), [y, gc.grad(y.sum(), given[which], disconnected="zero")]
    )
    wanted = [alone(**values | {which: values[which][i]}) for i in range(3)]
    moderate(w for pair in wanted for w in pair)
    found, slope = gc.compile(
        list(more.values()),
        [whole, gc.grad(whole.sum(), more[which], disconnected="zero")],
    )(**values)
    rtol = 1e-4 if found.dtype == np.float32 else 1e-5
    if "more" in whole.dims:
        found = np.moveaxis(found, whole.dims.index("more"), 0)
    else:
        found = np.broadcast_to(found, (3, *found.shape))
    order = [dim for dim in whole.dims if dim != "more"]
    for i, (value, derivative) in enumerate(wanted):
        close(found[i].transpose([order.index(dim) for dim in y.dims]), value, rtol=rtol)
        close(slope[i], derivative, rtol=rtol)


@pytest.mark.usefixtures("generated_python")
@law(25, 600)
def test_buffers_hold_nothing_between_calls(program: Program) -> None:
    """Buffers filled with nan change nothing; results and inputs are not the buffers' memory."""
    given = tensors(program)
    y = made(program, given)
    f = gc.compile(list(given.values()), [y, *gradients(y, given)])
    values, _ = arguments(program)
    before = {name: value.copy() for name, value in values.items()}
    first = f(**values)
    kept = [value.copy() for value in first]
    workspaces = [w for idle in f._program.function._idle.values() for w in idle]
    assert workspaces
    for workspace in workspaces:
        for buffer in workspace.buffers:
            buffer.fill(np.nan if buffer.dtype.kind in "fc" else 1)
    for ours, theirs in zip(f(**values), kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(first, kept, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert not any(np.shares_memory(ours, value) for value in values.values())
    for name, value in values.items():
        np.testing.assert_array_equal(value, before[name])
