"""Programs that stay in one precision: where wider floats enter is refused, by op and line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.precision import require_precision
from tests.operations import CASES
from tests.ops.test_ops import declare

X = gc.tensor("x", {"t": None}, dtype="float32")
N = gc.tensor("n", {"t": None}, dtype="int64")
Z = gc.tensor("z", {"t": None}, dtype="complex64")


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: X / np.sqrt(8), "divide makes float64"),
        (lambda: gc.exp(X + N), "add makes float64"),
        (lambda: (X * gc.constant(2.0)).astype("float32"), "multiply makes float64"),
        (lambda: gc.grad((X * np.float64(2)).sum(), X), "multiply makes float64"),
        (lambda: N / 2, "divide makes float64"),
        (lambda: gc.sqrt(N.mean()), "mean makes float64"),
        (lambda: gc.zeros({"t": 3}), "full makes float64"),
        (lambda: X.astype("float64"), "astype makes float64"),
        (lambda: Z * X.astype("float64"), "makes float64"),
        (lambda: Z * np.complex128(1), "multiply makes complex128"),
        (lambda: gc.scan(lambda s, x: (s + x, s), gc.constant(0.0), X, dim="t")[1], "float64"),
        (lambda: gc.tensor("y", {"t": None}) > X, "input 'y' is float64"),
    ],
)
def test_wider_floats_are_refused(build: Callable[[], Any], says: str) -> None:
    y = build()
    inputs = [X, N, Z, gc.tensor("y", {"t": None})] if "input" in says else [X, N, Z]
    gc.compile(inputs, y)
    gc.compile(inputs, y, dtype="float64") if y.dtype != np.complex128 else None
    with pytest.raises(gc.GraphTypeError, match=says) as caught:
        gc.compile(inputs, y, dtype="float32")
    assert "test_precision.py:" in str(caught.value)


def test_floats_of_a_precision_are_not() -> None:
    table = gc.constant(np.arange(4.0, dtype="float32"), "k")
    ys = [X * 2.5 + X.sizes["t"], (N / 2).astype("float32") * X, table.isel(k=N), abs(Z) * X,
          X.var(), gc.grad((X**2).mean(), X), gc.where(X > 0, X, 0.0), N.sum(), X > 0]  # fmt: skip
    gc.compile([X, N, Z], ys, dtype="float32")
    for wrong in ("int32", "bool", "flaot32"):
        with pytest.raises(gc.GraphTypeError):
            gc.compile([X], X, dtype=wrong)


POSITIONS = {"linspace", "logspace", "histogram edges by row", "quantile by tensor", "polyfit"}
"""What computes positions or powers in float64 on purpose; the page on float32 says so."""


@pytest.mark.slow
def test_no_function_of_float32_is_refused() -> None:
    """All cases of public functions, whose inputs and results are float32, with their slopes."""
    refused = []
    for name, case in CASES.items():
        xs = declare(case, True, "float32")
        y = case.ours(*xs)
        if y.dtype == np.float32 and name not in POSITIONS and "ramp" not in name:
            try:
                require_precision(Graph((), (y.node,)), "float32")
            except gc.GraphTypeError as error:
                refused.append(f"{name}: {error}")
    assert not refused
