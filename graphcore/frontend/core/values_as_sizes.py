"""Integers that are computed from the values of integer inputs, as sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable

from graphcore.ir.dtypes import INT
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.names import ValueOf
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import Size, maximum, minimum, unknown
from graphcore.ops import elementwise as e
from graphcore.ops import leaf

from .base import Base, refusal

ARITHMETIC: dict[Op, Callable[..., Size]] = {
    e.add: operator.add,
    e.subtract: operator.sub,
    e.multiply: operator.mul,
    e.floor_divide: operator.floordiv,
    e.remainder: operator.mod,
    e.maximum: maximum,
    e.minimum: minimum,
    e.negative: operator.neg,
    e.absolute: operator.abs,
    e.square: lambda a: a * a,
}
"""The functions of integers that sizes have too."""


def value_of(function: str, what: str, x: Base) -> Size:
    """The size that is the value of an integer tensor without dims, known before all others."""
    try:
        size = size_or_none(x.node)
    except ZeroDivisionError:
        raise refusal(function, f"{what} is divided by 0", x, cure="divide by 1 or more") from None
    if size is not None:
        return size
    reason = f"{what} is a tensor that is not an integer input, nor int64 arithmetic of some"
    cure = "give an input, n = gc.tensor('n', {}, dtype='int64'), or a size such as 2 * n + 1; "
    cure += "sizes are known before all values"
    raise refusal(function, reason, x, cure=cure, kind=GraphTypeError)


def size_or_none(x: Node) -> Size | None:
    """The size that a value of integers is: integer inputs, constants, and arithmetic in int64.

    Results of other dtypes may wrap around, and sizes never do.
    """
    done: dict[Node, Size | None] = {}
    stack = [x]
    while stack:
        node = stack[-1]
        waiting = [y for y in node.inputs if y not in done] if in_arithmetic(node) else []
        if waiting:
            stack += waiting
        else:
            done[stack.pop()] = size_of_node(node, [done.get(y) for y in node.inputs])
    return done[x]


def in_arithmetic(node: Node) -> bool:
    """Whether a node is a number computed as sizes are."""
    known = node.op in ARITHMETIC or node.op in (e.cast, e.power)
    return known and node.type.dtype == INT and not node.type.dims


def size_of_node(node: Node, operands: list[Size | None]) -> Size | None:
    """The size that a node without dims is, where its operands are these."""
    if node.type.dims or node.type.dtype.kind not in "iu":
        return None
    match node.op:
        case leaf.input_:
            return None if "trace" in node.attrs else unknown(ValueOf(node.attrs["name"]))
        case leaf.full:
            return int(node.attrs["value"].array)
        case leaf.extent:
            size: Size = node.attrs["size"]
            return size
    known = [size for size in operands if size is not None]
    if not in_arithmetic(node) or len(known) < len(operands):
        return None
    if node.op is e.cast:
        return known[0]
    if node.op is e.power:
        return known[0] ** known[1] if isinstance(known[1], int) and known[1] >= 0 else None
    return ARITHMETIC[node.op](*known)
