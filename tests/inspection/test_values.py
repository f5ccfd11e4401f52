"""`trace` has the value of every tensor of a program, by its name."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import Program
from graphcore.backends import llvm_kernels
from tests.inspection.programs import every_program


@pytest.mark.parametrize("name", every_program("logreg", "softmax", "kalman", "gp"))
def test_traced_outputs_are_those_of_a_call(name: str) -> None:
    program = Program(name)
    given, f = program.module.inputs("tiny"), program.module.program()
    found = f(**given)
    tensors = f.trace(**given)
    arrays = {value.array.tobytes(): value.array for value in tensors}
    for key, result in found.items():
        close = [
            x
            for x in arrays.values()
            if x.shape == result.shape and np.allclose(x, result, 1e-6, 1e-9, equal_nan=True)
        ]
        assert close, key


def test_every_tensor_has_its_name_line_and_numbers() -> None:
    x = gc.tensor("x", {"row": None, "col": 2}, dtype="float32")
    scaled = 2 * x
    mask, total = scaled > 2, gc.log(scaled).sum("row")
    w, v = gc.linalg.eigh(gc.dot(x, x.rename(col="c"), dim="row"), dims=("col", "c"))
    f = gc.compile([x], [mask, total, w, v])
    tensors = f.trace(np.array([[1.0, 0], [3, -1]], "float32"))
    rows = {value.name: value for value in tensors if value.name}
    assert list(rows) == ["x", "scaled", "mask", "total", "w", "v"]
    assert rows["scaled"].sizes == {"row": 2, "col": 2}
    assert (rows["scaled"].least, rows["scaled"].most, rows["scaled"].mean) == (-2, 6, 1.5)
    assert (rows["scaled"].dtype, rows["scaled"].nbytes, rows["scaled"].op) == (
        "f32",
        16,
        "multiply",
    )
    assert (rows["mask"].dtype, rows["mask"].mean) == ("bool", 0.25)
    log = next(value for value in tensors if value.op == "log")
    assert (log.nan, log.infinite, log.name) == (1, 1, "")
    assert log.line.line == rows["mask"].line.line == rows["scaled"].line.line + 1
    np.testing.assert_array_equal(tensors["total"].array, rows["total"].array)
    with pytest.raises(gc.GraphError, match="no tensor is named 'totl'\n  names: x, scaled, mask"):
        tensors["totl"]


def test_a_step_of_each_loop() -> None:
    x = gc.tensor("x", {"time": None, "tap": None})

    def inner(state: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, None]:
        product = state * x
        return product, None

    def outer(state: gc.Tensor, row: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        after = gc.scan(inner, state, row, dim="tap")[0] + 1
        return after, after

    last, each = gc.scan(outer, 1.0, x, dim="time", reverse=True)
    root = gc.while_loop(lambda r: abs(r * r - last) > 1e-9, lambda r: (r + last / r) / 2, last)
    grad = gc.grad(root, x)
    f = gc.compile([x], [root, each, grad])
    values = np.arange(1.0, 7).reshape(3, 2)
    tensors = f.trace(values, step={"time": 1, "tap": 0, "while_loop": 2})
    product = tensors["product"]
    assert [step.step for step in product.steps] == [1, 0]
    assert product.array == (5 * 6 + 1) * 3
    assert tensors["after"].array == f(values)[1][1]
    np.testing.assert_allclose(tensors["grad"].array, f(values)[2])
    assert "product" not in {value.name for value in f.trace(values, step={"time": 1})}
    with pytest.raises(gc.GraphError, match="no loop is along 'tome'"):
        f.trace(values, step={"tome": 1})
    with pytest.raises(gc.GraphError, match="has no step 3\n  cure: give one of its 3 steps"):
        f.trace(values, step={"time": 3})


def test_the_branch_that_is_taken() -> None:
    x = gc.tensor("x", {"row": None})

    def positive() -> gc.Tensor:
        root = gc.sqrt(x)
        return root

    f = gc.compile([x], gc.cond(x.sum() > 0, positive, lambda: 2 * x))
    assert f.trace([4.0])["root"].array == [2]
    assert "root" not in {value.name for value in f.trace([-4.0])}


def test_long_tables_are_cut_and_complete_on_request() -> None:
    x = gc.tensor("x\n" * 40, {"row\n" * 40: None})
    *_, y = deque((x := gc.sin(x) for _ in range(300)), 1)
    tensors = gc.compile([gc.tensor("x\n" * 40, {"row\n" * 40: None})], y).trace([1.0])
    assert len(tensors) == 301
    assert len(str(tensors).splitlines()) == 202
    assert "... 101 tensors more ..." in str(tensors)
    assert len(tensors.text(None).splitlines()) == 302
    assert max(map(len, str(tensors).splitlines())) < 250


@pytest.mark.skipif(llvm_kernels.unavailable() is not None, reason="machine code does not run here")
def test_a_program_of_machine_code_is_traced_by_numpy() -> None:
    x = gc.tensor("x", {"row": None})
    y = gc.exp(x).sum()
    assert gc.compile([x], y, native=True).trace(np.zeros(3))["y"].array == 3
