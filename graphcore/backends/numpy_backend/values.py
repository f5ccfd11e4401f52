"""The names that a value has in the generated code."""

from __future__ import annotations


class Value:
    """The names of a node's value: as one of Python's numbers, as an array, or as several of these.

    `array` may have fewer elements than the node's type, if it broadcasts to it; `full` has all.
    """

    __slots__ = ("array", "full", "scalar")

    def __init__(self, scalar: str = "", array: str = "", full: str = "") -> None:
        self.scalar, self.array, self.full = scalar, array, full

    @property
    def operand(self) -> str:
        """The name for functions that take arrays and numbers."""
        return self.array or self.scalar
