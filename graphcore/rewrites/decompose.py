"""The last lowering: ops kept whole for derivative rules become ops that backends have."""

from __future__ import annotations

import math

import numpy as np

from graphcore.ir.literal import Literal
from graphcore.ir.node import Node, full_like
from graphcore.ir.op import Op
from graphcore.ops import elementwise, special, tensor

from .contraction import pairwise
from .engine import Rule, RuleSet
from .plain import Axes, cast, equals, nonzero, sum_over, unsum, where


def exponentials(x: Node, axes: Axes) -> tuple[Node, Node, Node]:
    """m = max(x), e^(x - m), and its sum; m is no -inf, so that nothing is nan where x is -inf."""
    highest = elementwise.real(x) if x.type.dtype.kind == "c" else x
    lowest = Literal(np.finfo(highest.type.dtype).min, highest.type.dtype)
    m = cast(tensor.max_(highest, axes=axes, initial=lowest), x.type.dtype)
    e = elementwise.exp(x - unsum(m, axes, x))
    return m, e, sum_over(e, axes)


def decompose_logsumexp(node: Node) -> Node:
    """m + log(sum(e^(x - m))), and inf where m is"""
    (x,) = node.inputs
    m, _, total = exponentials(x, node.attrs["axes"])
    return where(equals(m, math.inf), math.inf, m + elementwise.log(total))


def decompose_softmax(node: Node) -> Node:
    """e^(x - m) / sum(e^(x - m)); where all are -inf the sum is 0, and 1 divides as well"""
    (x,), axes = node.inputs, node.attrs["axes"]
    _, e, total = exponentials(x, axes)
    if x.type.dtype.kind == "c":
        return e / unsum(nonzero(total), axes, x)
    # The largest value adds 1 to the sum, so that any other sum is at least that.
    return e / unsum(elementwise.maximum(total, full_like(total, 1)), axes, x)


def decompose_log_softmax(node: Node) -> Node:
    """(x - m) - log(sum(e^(x - m)))"""
    (x,), axes = node.inputs, node.attrs["axes"]
    m, _, total = exponentials(x, axes)
    return (x - unsum(m, axes, x)) - unsum(elementwise.log(total), axes, x)


def decompose_softplus(node: Node) -> Node:
    """max(x, 0) + log1p(e^-|x|), vectorised where logaddexp is not"""
    (x,) = node.inputs
    zero = full_like(x, 0)
    return elementwise.maximum(x, zero) + elementwise.log1p(
        elementwise.exp(-elementwise.absolute(x))
    )


def decompose_sigmoid(node: Node) -> Node:
    """1 / (1 + e^-x)"""
    (x,) = node.inputs
    return 1 / (1 + elementwise.exp(-x))


def decompose_log1mexp(node: Node) -> Node:
    """log(-(e^x - 1)) near 0, log1p(-e^x) far below (Maechler 2012)"""
    (x,) = node.inputs
    near = elementwise.greater(x, full_like(x, -math.log(2)))
    return where(
        near,
        elementwise.log(-elementwise.expm1(x)),
        elementwise.log1p(-elementwise.exp(x)),
    )


DECOMPOSE: dict[Op, Rule] = {
    tensor.logsumexp: decompose_logsumexp,
    tensor.softmax: decompose_softmax,
    tensor.log_softmax: decompose_log_softmax,
    special.softplus: decompose_softplus,
    special.sigmoid: decompose_sigmoid,
    special.log1mexp: decompose_log1mexp,
    tensor.einsum: pairwise,
}

decomposition = RuleSet()
for _op, _rule in DECOMPOSE.items():
    decomposition.add(_rule, [_op], [])
