"""Nests that share their rows: what is stored one row at a time is read by none of another."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.nests import plan
from graphcore.backends.llvm_kernels.rows import Rows

from .native import Both, needs_machine_code

pytestmark = needs_machine_code

Tensor = gc.Tensor


def masked_softmax(x: Tensor, y: Tensor) -> Tensor:
    return gc.special.softmax((x * 0.5).where(y < 1.0, -np.inf), "c")


def normalised(x: Tensor, y: Tensor) -> Tensor:
    centred = x - gc.mean(x, "c")
    return centred / gc.sqrt(gc.mean(centred**2, "c") + 1e-5) * y


def beside_rows(x: Tensor, y: Tensor) -> Tensor:
    """Exponentials of other rows are read as well, so that these are stored whole."""
    z = gc.exp(x - gc.max(x, "c"))
    return z / gc.sum(z, "c") + gc.sum(z, "a") * y


@pytest.mark.parametrize("make", [masked_softmax, normalised, beside_rows])
def test_rows(make: object) -> None:
    sizes = {"a": None, "b": None, "c": None}
    x, y = gc.tensor("x", sizes), gc.tensor("y", sizes)
    out = make(x, y)
    slopes = gc.grad(gc.sum(gc.sin(out)), [x, y], disconnected="zero")
    rng = np.random.default_rng(11)
    compiled = gc.compile([x, y], [out, *slopes])
    both = Both.of(compiled)
    for shape in ((0, 2, 5), (3, 0, 5), (1, 1, 1), (2, 3, 8), (3, 2, 17), (2, 2, 70)):
        both.agree_when_called([rng.standard_normal(shape) for _ in range(2)], 1e4)


def test_a_softmax_is_one_step() -> None:
    x = gc.tensor("x", {"a": None, "b": None, "c": None})
    graph = gc.compile([x], gc.special.softmax(x, "c")).passes[-1].graph
    (rows,) = plan(graph, set(graph.params)).steps
    assert isinstance(rows, Rows)
    assert len(rows.own) == 3  # the largest value, exponentials and their sum
