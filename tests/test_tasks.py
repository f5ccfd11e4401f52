"""Everyday tasks of newcomers from NumPy, xarray, JAX and PyTensor: each is a few lines."""

from __future__ import annotations

import numpy as np

import graphcore as gc

# ---- functions, trees and values


def test_the_value_of_an_expression_in_a_repl() -> None:
    x = gc.tensor("x", {"row": None})
    assert (x**2).sum().eval(x=[1.0, 2.0]) == 5.0


def test_a_program_from_its_middle() -> None:
    x = gc.tensor("x", {"row": None})
    hidden = gc.tanh(x)
    f = gc.compile([hidden], (hidden**2).sum())
    assert f([1.0, 2.0]) == 5.0


def test_a_value_and_its_gradient() -> None:
    w = gc.tensor("w", {"row": 2})
    value, slope = gc.compile([w], gc.value_and_grad((w**2).sum(), w))([1.0, 2.0])
    assert value == 5.0
    np.testing.assert_array_equal(slope, [2.0, 4.0])
