"""Functions of single numbers, in Python's arithmetic; they answer as NumPy does."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import truediv
from typing import Any

import numpy as np


def with_fallback(ours: Callable[..., float], numpys: Any) -> Callable[..., Any]:
    """A function of Python's, or NumPy's where that one raises."""

    def function(*xs: float) -> Any:
        try:
            return ours(*xs)
        except (ValueError, OverflowError, ZeroDivisionError):
            return numpys(*xs).item()

    return function


def without_fraction(x: float) -> Any:
    """A float as NumPy casts it to an integer."""
    return np.float64(x).astype(np.int64).item()


def wrap_integer(x: int) -> int:
    """An integer as 64 bits hold it."""
    return x if -(2**63) <= x < 2**63 else (x + 2**63) % 2**64 - 2**63


PYTHONS: dict[str, Callable[..., float]] = {
    "divide": truediv,
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "log1p": math.log1p,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "arcsin": math.asin,
    "arccos": math.acos,
    "arctan": math.atan,
    "arctan2": math.atan2,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "sqrt": math.sqrt,
    "power": math.pow,
}
"""The functions that Python has, by the names of NumPy's."""
OF_ONE = {name: with_fallback(ours, getattr(np, name)) for name, ours in PYTHONS.items()}
