"""Values as Python expressions, exact to the last bit, in which no string of a user is code."""

from __future__ import annotations

import textwrap
from base64 import b64encode
from collections.abc import Iterable
from math import isfinite
from typing import Any

import numpy as np

FEW = 32
"""The most elements of an array that are written as numbers; those of larger ones are bytes."""
WIDTH = 92


def number(value: Any) -> str:
    """One of Python's numbers; nan has no sign and no payload."""
    match value:
        case bool() | int():
            return repr(value)
        case float():
            return repr(value) if isfinite(value) else f'float("{value}")'
        case complex():
            return f"complex({number(value.real)}, {number(value.imag)})"
    raise TypeError(f"a {type(value).__name__} is no number")


def array(value: np.ndarray[Any, Any]) -> str:
    """An array, as numbers or as bytes."""
    dtype = repr(value.dtype.str)
    if value.size <= FEW and not np.isnan(value).any():
        numbers = value.tolist()
        return f"np.array({nested_numbers(numbers)}, {dtype}).reshape({value.shape})"
    rows = textwrap.wrap(b64encode(value.tobytes()).decode("ascii"), WIDTH) or [""]
    data = "\n    ".join(f'"{row}"' for row in rows)
    read = "base64.b64decode(\n    " + data + "\n)"
    return f"np.frombuffer({read}, {dtype}).reshape({value.shape})"


def nested_numbers(numbers: Any) -> str:
    """Numbers in nested lists."""
    if isinstance(numbers, list):
        return f"[{', '.join(map(nested_numbers, numbers))}]"
    return number(numbers)


def strings(several: Iterable[Any]) -> str:
    """Strings, and tuples of them, as one tuple."""
    parts = [text(x) if isinstance(x, str) else strings(x) for x in several]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def text(value: str) -> str:
    """A string as a literal: one line of printable characters."""
    return ascii(str(value))
