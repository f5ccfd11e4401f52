"""The vector width of a loop nest: more lanes where all values are small.

The number depends on dtypes alone, so that results are the same on every machine. A vector of
sixteen float32, or of sixty-four bytes, is one register of AVX-512, or two of AVX2.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from graphcore.ir import Node
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from .addressing import BYTES
from .arithmetic import SCALAR, computed_in, kind_of
from .builder import PARTS, WIDTH

SMALL_BYTES = 4
"""How many bytes a value has at most for more than eight to stand side by side."""
SIMPLE = frozenset({*SCALAR, t.expand, leaf.full, leaf.constant})
"""Ops that read no lane from where lanes do not follow each other."""


def width_of(roots: Sequence[Node], *stored: Container[Node]) -> int:
    """How many places of roots stand side by side; nodes below `stored` ones do not count.

    They fill a register of 64 bytes where all ops are elementwise; those that read lanes from
    anywhere else take sixteen at most, as each of these lanes is an instruction.
    """
    waiting, seen, most, simple = [*roots], set(roots), 1, True
    while waiting:
        x = waiting.pop()
        lies = x.op is leaf.project or any(x in known for known in stored)
        kinds = [kind_of(x)] if lies else [kind_of(x), *computed_in(x)]
        most = max(most, *[BYTES[PARTS.get(kind, kind)] for kind in kinds])
        if most > SMALL_BYTES:
            return WIDTH
        if lies:
            continue
        simple = simple and x.op in SIMPLE
        for y in read_side_by_side(x):
            if y.type.shape and y not in seen:
                seen.add(y)
                waiting.append(y)
    return WIDTH * 8 // most if simple else 2 * WIDTH


def read_side_by_side(node: Node) -> Sequence[Node]:
    """The operands that have a value for each lane: one position may serve a whole row."""
    if node.op is t.gather and node.type.ndim > node.inputs[1].type.ndim:
        return node.inputs[:1]
    return node.inputs
