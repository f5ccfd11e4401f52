"""Special functions are exported with their derivatives, and give the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend.special import ROUTINES
from tests.files.test_export import imported, leaves
from tests.operations import CASES, special
from tests.operations.case import DEFAULT
from tests.ops.test_ops import declare, draw

OWN = ("gammainc", "betaincinv", "hyp1f1")
"""Functions with routines that SciPy lacks."""


def results(y: gc.Tensor, xs: list[gc.Tensor], orders: int) -> list[Any]:
    """A tensor and its derivatives, where there are some."""
    found = [y]
    for _ in range(orders):
        total = found[-1].sum() if found[-1].dtype.kind == "f" else None
        try:
            found.append(gc.grad(total, next(x for x in reversed(xs) if x.dtype.kind == "f")))
        except (gc.GraphError, StopIteration, AttributeError, TypeError):
            break
    return found


def check(name: str, orders: int, folder: Path) -> None:
    case = CASES[name]
    xs = declare(case)
    y = case.ours(*xs)
    if not isinstance(y, gc.Tensor):
        return
    f = gc.compile(xs, results(y, xs, orders), native=False)
    given = draw(case, DEFAULT)
    wanted, found = f(*given), imported(f, folder).program(*given)
    for a, b in zip(leaves(wanted), leaves(found), strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("name", OWN)
def test_special_functions_of_our_own(name: str, tmp_path: Path) -> None:
    assert "gamma_density" in ROUTINES
    check(name, 2, tmp_path)


@pytest.mark.slow
def test_every_special_function(tmp_path: Path) -> None:
    for name in special.SPECIAL:
        check(name, 2, tmp_path)


def test_sizes_that_divide(tmp_path: Path) -> None:
    """A product of quotients: a // b * c // d is none."""
    x = gc.tensor("x", {"row": None})
    v = x[{"row": slice(1, None, 2)}]
    y = gc.tanh(v - 0.5 * v.rename(row="q"))
    w = x[{"row": slice(None, None, 3)}] * v.rename(row="q")
    f = gc.compile([x], [gc.exp(gc.sin(y) + 1).sum(), gc.tanh(w + gc.sin(w))], native=False)
    program = imported(f, tmp_path).program
    for n in range(12):
        for a, b in zip(f(np.arange(n)), program(np.arange(n)), strict=True):
            assert a.tobytes() == b.tobytes()
