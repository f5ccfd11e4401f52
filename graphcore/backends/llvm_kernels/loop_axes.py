"""The axes of loops: long ones are loops of machine code, short ones are written out in them."""

from __future__ import annotations

from graphcore.ir import Node, Shape
from graphcore.ir.remembered import remembered
from graphcore.ops import tensor as t

from .builder import WIDTH

UNROLLED = 16
"""How many places of short axes are written out in the loops over the long ones."""


@remembered
def long_axes(shape: Shape) -> tuple[int, ...]:
    """The axes that are loops; the others are short, and written out."""
    places, short = 1, set()
    for axis in reversed(range(len(shape))):
        n = shape[axis]
        if isinstance(n, int) and n <= WIDTH and places * max(n, 1) <= UNROLLED:
            places *= max(n, 1)
            short.add(axis)
    long = tuple([axis for axis in range(len(shape)) if axis not in short])
    return long or ((len(shape) - 1,) if shape else ())


@remembered
def space(shape: Shape) -> Shape:
    """The sizes of the long axes."""
    return tuple([shape[axis] for axis in long_axes(shape)])


def is_by_parts(root: Node) -> bool:
    """Whether a concatenation is stored part after part, each in loops of its own."""
    shape = root.type.shape
    if root.op is not t.concat or root.attrs["axis"] != 0 or len(shape) < 2:
        return False
    long = long_axes(shape)
    return long[0] == 0 and long[-1] == len(shape) - 1
