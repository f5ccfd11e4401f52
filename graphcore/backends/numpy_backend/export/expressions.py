"""Values as Python expressions, exact to the last bit, in which no string of a user is code."""

from __future__ import annotations

import textwrap
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

MOST_NUMBERS_IN_TEXT = 32
"""The most elements of an array that are written as numbers; those of larger ones are bytes."""
WIDTH = 92


class Written(str):
    """Text of code, as it is."""

    __slots__ = ()


def spell(value: Any, other: Callable[[Any], str]) -> str:
    """A value as an expression; `other` spells functions, classes and all else that has a name.

    Values of subclasses, such as enumerations, become plain ones. nan has no sign and no payload.
    """

    def several(values: Any) -> str:
        return ", ".join([spell(x, other) for x in values])

    match value:
        case Written():
            return str(value)
        case str():
            return ascii(str.__str__(value))
        case np.generic():
            return f"np.dtype({value.dtype.str!r}).type({spell(value.item(), other)})"
        case None | bool():
            return repr(value)
        case int():
            return int.__repr__(value)
        case float():
            return float.__repr__(value) if isfinite(value) else f'float("{float(value)}")'
        case complex():
            return f"complex({several((value.real, value.imag))})"
        case np.ndarray():
            return spell_array(value)
        case np.dtype():
            return f"np.dtype({value.name!r})"
        case slice():
            return f"slice({several((value.start, value.stop, value.step))})"
        case list():
            return f"[{several(value)}]"
        case tuple() if type(value).__module__.startswith("graphcore."):
            kind: Any = type(value)
            named = zip(kind._fields, value, strict=True)
            given = [(key, x) for key, x in named if kind._field_defaults.get(key, value) != x]
            return f"{other(kind)}({', '.join(f'{key}={spell(x, other)}' for key, x in given)})"
        case tuple():
            return f"({several(value)}{',' if len(value) == 1 else ''})"
        case partial():
            return f"partial({several((value.func, *value.args))})"
    return other(value)


def spell_array(value: np.ndarray[Any, Any]) -> str:
    """An array, as numbers or as bytes."""
    dtype = repr(value.dtype.str)
    if value.size <= MOST_NUMBERS_IN_TEXT and not np.isnan(value).any():
        return f"np.array({spell(value.tolist(), repr)}, {dtype}).reshape({value.shape})"
    rows = textwrap.wrap(b64encode(value.tobytes()).decode("ascii"), WIDTH) or [""]
    data = "\n    ".join(f'"{row}"' for row in rows)
    read = "base64.b64decode(\n    " + data + "\n)"
    return f"np.frombuffer({read}, {dtype}).reshape({value.shape})"
