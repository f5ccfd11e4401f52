"""Programs that stay in one precision: where wider floats enter is refused, by op and line."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.compile.precision import require_precision
from graphcore.ir.graph import Graph
from tests.operations import CASES
from tests.ops.test_ops import declare

X = gc.tensor("x", {"t": None}, dtype="float32")
N = gc.tensor("n", {"t": None}, dtype="int64")
Z = gc.tensor("z", {"t": None}, dtype="complex64")


def test_floats_of_a_precision_are_not() -> None:
    table = gc.constant(np.arange(4.0, dtype="float32"), "k")
    ys = [X * 2.5 + X.sizes["t"], (N / 2).astype("float32") * X, table.isel(k=N), abs(Z) * X,
          X.var(), gc.grad((X**2).mean(), X), gc.where(X > 0, X, 0.0), N.sum(), X > 0]  # fmt: skip
    gc.compile([X, N, Z], ys, dtype="float32")


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
