"""Results of functions that are asked the same few questions again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

from .names import Computed

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")
MOST_RESULTS = 4096
"""How many results a table holds before it starts again."""
MISSING: Any = object()


class Remembered(dict[Any, Any]):
    """Results by what they follow from, but none that follow from a size that a program computes.

    Such a size keeps the nodes that it is computed from: the table would keep them alive.
    """

    def keep(self, key: Any, result: Result) -> Result:
        """`result`, entered if it may be."""
        if not Computed.in_use() or not is_computed(key):
            if len(self) >= MOST_RESULTS:
                self.clear()
            self[key] = result
        return result


def remembered(function: Callable[[*Arguments], Result]) -> Callable[[*Arguments], Result]:
    """`function`, whose last results are remembered."""
    table = Remembered()

    def call(*args: *Arguments) -> Result:
        found: Result = table.get(args, MISSING)
        return table.keep(args, function(*args)) if found is MISSING else found

    return call


def is_computed(key: Any) -> bool:
    """Whether a key holds a size that a program computes, or a type or tuple with one."""
    if isinstance(key, (tuple, frozenset)):
        return any(map(is_computed, key))
    return any(isinstance(name, Computed) for name in getattr(key, "unknowns", ()))
