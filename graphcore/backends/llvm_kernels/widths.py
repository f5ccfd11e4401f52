"""How many places of a nest stand side by side: twice as many where all values are small.

The number depends on dtypes alone, so that results are the same on every machine. A vector of
sixteen float32 is one register of AVX-512, or two of AVX2.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from graphcore.ir.node import Node
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from .arithmetic import kind_of
from .builder import PARTS, WIDTH
from .rooms import BYTES

SMALL = 4
"""Values of at most so many bytes are small."""


def width_of(roots: Sequence[Node], *stored: Container[Node]) -> int:
    """How many places of some roots stand side by side; nodes below `stored` ones do not count."""
    waiting, seen = [*roots], set(roots)
    while waiting:
        x = waiting.pop()
        kind = kind_of(x)
        if BYTES[PARTS.get(kind, kind)] > SMALL:
            return WIDTH
        if x.op is leaf.project or any(x in known for known in stored):
            continue
        for y in read_side_by_side(x):
            if y.type.shape and y not in seen:
                seen.add(y)
                waiting.append(y)
    return 2 * WIDTH


def read_side_by_side(node: Node) -> Sequence[Node]:
    """The operands that have a value for each lane: one position may serve a whole row."""
    if node.op is t.gather and node.type.ndim > node.inputs[1].type.ndim:
        return node.inputs[:1]
    return node.inputs
