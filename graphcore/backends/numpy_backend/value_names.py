"""The names that a value has in the generated code, and which values are numbers of Python."""

from __future__ import annotations

import numpy as np

from graphcore.ir import Node, TensorType, Type
from graphcore.ops import tensor


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


NUMBERS = frozenset({np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)})
"""The dtypes whose values Python's float, int and bool hold exactly."""


def is_number(type: Type) -> bool:
    """Whether a value is one number that Python can hold."""
    return isinstance(type, TensorType) and not type.shape and type.dtype in NUMBERS


def repeats_number(node: Node) -> bool:
    """Whether `node` is one number everywhere."""
    return node.op is tensor.expand and bool(node.type.shape) and is_number(node.inputs[0].type)
