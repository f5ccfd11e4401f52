"""What loops compute again rather than keep: the same bits, in less memory."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

import graphcore as gc
from benchmarks.loops import lstm
from graphcore.analysis.cost import bytes_of
from graphcore.backends import llvm_kernels
from graphcore.ir.graph import Graph
from graphcore.ir.types import TensorType
from graphcore.ops import control, leaf, tensor
from graphcore.rewrites.rematerialise import at_one_step

pytestmark = pytest.mark.skipif(
    llvm_kernels.unavailable() is not None, reason="no machine code runs here"
)


def recorded(graph: Graph) -> int:
    """The bytes of all sequences that loops read, of sizes that count as typical."""
    loops = [x for x in graph.every_node() if x.op is control.scan]
    return sum(
        bytes_of(x.type)
        for node in loops
        for x in node.inputs[node.attrs["carries"] :][: node.attrs["sequences"]]
    )


def native(inputs: list[gc.Tensor], outputs: object, *left_out: str) -> gc.Compiled:
    """A program as machine code, without some of the passes."""
    with pytest.MonkeyPatch.context() as patch:
        passes = [x for x in llvm_kernels.PASSES if getattr(x, "name", "") not in left_out]
        patch.setattr(llvm_kernels, "PASSES", passes)
        return gc.compile(inputs, outputs, native=True)


def of_lstm(monkeypatch: pytest.MonkeyPatch) -> tuple[list[gc.Tensor], object]:
    """The inputs and outputs of the benchmark."""
    found: list[tuple[list[gc.Tensor], object]] = []
    monkeypatch.setattr(gc, "compile", lambda *given: found.append(given))
    lstm(4, 8)
    monkeypatch.undo()
    return found[0]


def test_the_gradient_of_an_lstm_keeps_less_and_has_the_same_bits(monkeypatch) -> None:
    inputs, outputs = of_lstm(monkeypatch)
    usual, keeping = native(inputs, outputs), native(inputs, outputs, "scheduled")
    random = np.random.default_rng(0)
    for steps, rows in ((0, 2), (1, 1), (9, 3)):
        sizes = (steps, rows, 4), (4, 4, 8), (8, 4, 8), (4, 8)
        data = [random.normal(size=size) for size in sizes]
        for found, expected in zip(usual(*data), keeping(*data), strict=True):
            assert np.array_equal(found, expected, equal_nan=True)
    before, after = usual.stages["optimized"], usual.stages["scheduled"]
    assert before == keeping.stages["optimized"]
    assert recorded(after) < recorded(before)
    text = io.StringIO()
    usual.debug_print("scheduled", limit=None, file=text)
    back = re.findall(r"^(%\d+).* = scan\(", text.getvalue(), re.MULTILINE)[-1]
    slope = re.findall(r"(%\d+) .* = tanh_slope\(", text.getvalue())[-1]
    said = str(usual.why(f"{back} body {slope}", stage="scheduled"))
    assert re.search(r"scheduled +input → tanh_slope +rematerialise.py", said)


@pytest.mark.xfail(reason="slopes of gates need their operands: values have lost digits in tails")
def test_the_gradient_of_an_lstm_keeps_seven_tenths(monkeypatch) -> None:
    stages = native(*of_lstm(monkeypatch)).stages
    assert recorded(stages["scheduled"]) < 0.7 * recorded(stages["optimized"])


def test_what_costs_more_to_compute_again_is_kept() -> None:
    x, a = gc.tensor("x", {"time": None, "row": None}), gc.tensor("a", {"row": None})

    def step(y, xt):
        y = gc.tanh(a * y + xt)
        return y, y

    last, _ = gc.scan(step, gc.zeros({"row": a.sizes["row"]}), x, dim="time")
    f = native([x, a], gc.grad(last.sum(), a))
    (forward, back) = [x for x in f.stages["scheduled"].nodes() if x.op is control.scan]
    ops = {x.op.name for x in back.attrs["body"].nodes()}
    assert "tanh" in {x.op.name for x in forward.attrs["body"].nodes()}
    assert "tanh" not in ops  # its value is recorded
    assert "tanh_slope" in ops  # 1 - y² is not


def carried(a, x):
    return lambda y, xt: ((1 - y * y) * a + xt * xt, y - a)


def inner(a, x):
    def step(y, xt):
        z, _ = gc.scan(lambda z, xs: ((1 - z * z) * xs + a, z), y, x, dim="time")
        return z * (1 - z), z

    return step


def branch(a, x):
    def step(y, xt):
        z = gc.cond(xt.sum() > 0, lambda y: y * (1 - y), lambda y: y * y - y, y)
        return z + a, (1 - z) * (1 - z)

    return step


def searching(a, x):
    def step(y, xt):
        z = gc.while_loop(lambda z: (z * z).sum() > 4, lambda z: z / 2, y + xt)
        return (1 - z) * a, z * (1 - z)

    return step


@pytest.mark.parametrize("body", [carried, inner, branch, searching])
@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_loops_of_all_kinds_have_the_same_bits(body, order) -> None:
    x, a = gc.tensor("x", {"time": None, "row": None}), gc.tensor("a", {"row": None})
    start = 0.3 * a
    last, ys = gc.scan(body(a, x), start, x, dim="time")
    value = (last * last).sum() + (ys * (2 - ys)).sum()
    for _ in range(order - 1):
        value = (gc.grad(value, a) ** 2).sum()
    outputs = [value, *gc.grad(value, [x, a])]
    usual = native([x, a], outputs)
    keeping = native([x, a], outputs, "scheduled")
    plain = gc.compile([x, a], outputs, native=False)
    random = np.random.default_rng(1)
    for steps, rows in ((0, 3), (1, 9), (5, 17)):
        data = random.normal(size=(steps, rows)) / 4, random.uniform(0.1, 0.5, rows)
        for found, expected, other in zip(usual(*data), keeping(*data), plain(*data), strict=True):
            assert np.array_equal(found, expected, equal_nan=True)
            np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-12)


def test_views_of_one_step_are_computed_again() -> None:
    x = gc.tensor("x", {"time": None, "gate": 3, "row": None})
    y0 = gc.tensor("y", {"row": None})

    def step(y, gates):
        turned = (gates * gates).transpose("row", "gate")
        return y * turned.isel(gate=1) + gates.isel(gate=2) * turned.isel(gate=0), y

    last, ys = gc.scan(step, y0, x, dim="time")
    outputs = gc.grad((last * ys.sum("time")).sum(), [x, y0])
    usual, keeping = native([x, y0], outputs), native([x, y0], outputs, "scheduled")
    data = np.random.default_rng(2).normal(size=(6, 3, 9)), np.ones(9)
    for found, expected in zip(usual(*data), keeping(*data), strict=True):
        assert np.array_equal(found, expected)
    assert recorded(usual.stages["scheduled"]) < recorded(usual.stages["optimized"])


def test_what_is_joined_at_each_step_has_the_same_bits() -> None:
    x = gc.tensor("x", {"time": None, "row": 12})
    y0 = gc.tensor("y", {"row": 24})

    def step(y, xs):
        y = gc.sin(y) * xs
        return y, y

    last, ys = gc.scan(step, y0, gc.concat([x, 1 - x], dim="row"), dim="time")
    outputs = gc.grad((last * ys.sum("time")).sum(), [x, y0])
    usual, keeping = native([x, y0], outputs), native([x, y0], outputs, "scheduled")
    data = np.random.default_rng(2).normal(size=(6, 12)), np.ones(24)
    for found, expected in zip(usual(*data), keeping(*data), strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("node", "attrs"),
    [
        (
            tensor.concat(a := leaf.param("a", TensorType(np.dtype(float), (5, 3))), a, axis=1),
            {"axis": 0},
        ),
        (tensor.concat(a, a, axis=0), None),
        (tensor.reshape(a, shape=(5, 1, 3)), {"shape": (1, 3)}),
        # Of no steps, each may be given more places than there were.
        (tensor.reshape(leaf.param("b", TensorType(np.dtype(float), (0,))), shape=(0, 32)), None),
    ],
)
def test_views_of_all_steps_are_those_of_each(node, attrs) -> None:
    assert at_one_step(node) == attrs
