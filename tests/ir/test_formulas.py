"""Arithmetic of sizes: NumPy's functions of sizes, and what asks for a size too early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc


@pytest.mark.parametrize(
    "function",
    [
        *(np.sqrt, np.cbrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p),
        *(np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arctan, np.arcsinh),
        *(np.rint, np.floor, np.ceil, np.trunc, np.negative, np.square, np.reciprocal),
    ],
)
def test_numpy_functions_of_sizes_are_worked_out_at_the_call(function: Callable[..., Any]) -> None:
    x = gc.tensor("x", {"row": None}, dtype="float32")
    n = x.sizes["row"]
    y = x * function(n) + function(0.5 * n)
    assert y.dtype == np.float32, "a formula of sizes is as weak as a Python number"
    value = gc.compile([x], y)(np.ones(5, np.float32))
    np.testing.assert_allclose(value, np.full(5, function(5.0) + function(2.5)), rtol=1e-6)


def test_a_size_is_no_number_of_python() -> None:
    n = gc.tensor("x", {"row": None}).sizes["row"]
    calls: list[Callable[[], object]] = [
        lambda: range(n),  # type: ignore[call-overload]
        lambda: [1, 2][n],  # type: ignore[call-overload]
        lambda: min(n, 3),
        lambda: float(n),
    ]
    for call in calls:
        with pytest.raises(gc.GraphTypeError, match="row is known only at the call"):
            call()


def test_a_function_of_one_operand_refuses_more() -> None:
    size = gc.tensor("x", {"row": None}).sizes["row"]
    with pytest.raises(gc.GraphTypeError, match=r"cure: it has one operand: write gc.cos\(row\)"):
        size.cos(None)
    assert repr(np.cos(size)) == "cos(row)"
