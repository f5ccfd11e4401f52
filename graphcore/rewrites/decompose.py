"""The last step down: ops that stood whole for the derivative rules become what a backend has."""

from __future__ import annotations

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import elementwise, tensor

from .contraction import pairwise
from .engine import Conversion, convert
from .plain import Axes, cast, nonzero, sum_over, unsum, where


def exponentials(x: Node, axes: Axes) -> tuple[Node, Node, Node]:
    """m = max(x), e^(x - m), and its sum; m is 0 where all are infinite, so that none is nan."""
    highest = elementwise.real(x) if x.type.dtype.kind == "c" else x
    m = tensor.max_(highest, axes=axes) if axes else highest
    m = cast(where(elementwise.isfinite(m), m, 0), x.type.dtype)
    e = elementwise.exp(x - unsum(m, axes, x))
    return m, e, sum_over(e, axes)


def decompose_logsumexp(node: Node, x: Node) -> Node:
    """m + log(sum(e^(x - m)))"""
    m, _, total = exponentials(x, node.attrs["axes"])
    return m + elementwise.log(total)


def decompose_softmax(node: Node, x: Node) -> Node:
    """e^(x - m) / sum(e^(x - m))"""
    axes = node.attrs["axes"]
    _, e, total = exponentials(x, axes)
    return e / unsum(nonzero(total), axes, x)


DECOMPOSE: dict[Op, Conversion] = {
    tensor.logsumexp: decompose_logsumexp,
    tensor.softmax: decompose_softmax,
    tensor.einsum: lambda node, *xs: pairwise(node.with_inputs(*xs)),
}


def decompose(graph: Graph) -> Graph:
    """The graph in the ops that backends emit."""
    return convert(graph, DECOMPOSE)
