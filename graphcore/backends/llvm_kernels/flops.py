"""The approximate costs of the places of nodes, in additions."""

from __future__ import annotations

from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .arithmetic import SCALAR

SIMPLE = frozenset(
    {
        *(e.add, e.subtract, e.multiply, e.negative, e.absolute, e.square, e.sign, e.maximum),
        *(e.minimum, e.equal, e.not_equal, e.less, e.less_equal, e.greater, e.greater_equal),
        *(e.logical_and, e.logical_or, e.logical_xor, e.logical_not, e.bitwise_and, e.bitwise_or),
        *(e.bitwise_xor, e.invert, e.isnan, e.isfinite, e.isinf, e.where, e.cast, e.real, e.imag),
        *(e.conjugate, e.floor, e.ceil, e.trunc, e.rint, e.copysign, t.absorb, t.wins),
    }
)
DIVISIONS = frozenset({e.divide, e.sqrt, e.reciprocal})
VIEWS = {
    **{t.embed: 1, t.overwrite: 2, t.concat: 2, t.sum_: 2, t.max_: 2, t.min_: 2},
    **{t.vecdot: 4, t.matvec: 4, t.matmul: 4},
}


def flops(node: Node) -> int:
    """The approximate cost of one place of a node, without its operands."""
    if node.op in SCALAR:
        return 1 if node.op in SIMPLE else 4 if node.op in DIVISIONS else 14
    return VIEWS.get(node.op, 0)
