"""One exponential where both the softplus and the sigmoid of a value are computed.

A logistic loss is made of the first, its gradient of the second:

    max(x, 0) + log1p(e) and 1 / (1 + e^-x), with e = e^-|x|
        becomes   max(x, 0) + log1p(e) and (e if x < 0 else 1) / (1 + e)

Both forms of the sigmoid are off by a few units in the last place at most; where e^-x overflows the
first is 0 and the second a tiny number.
"""

from __future__ import annotations

from graphcore.analysis.values import is_one, is_part, is_real
from graphcore.ir import Graph, Node, Rule, full_like, unwrap
from graphcore.ir.transform import transform
from graphcore.ops.elementwise import absolute, add, divide, exp, greater, less, log1p, negative
from graphcore.rewrites.plain import where


def share_exponentials(graph: Graph) -> Graph:
    """The graph in which a sigmoid takes the exponential of the softplus of the same value."""
    if log1p not in graph.ops():
        return graph
    nodes = graph.nodes()
    made = {value_of(x.inputs[0]) for x in nodes if x.op is log1p and is_part(x.inputs[0])}

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        given = is_sigmoid(node) and value_of(node.inputs[1].inputs[1]) in made
        return (sigmoid_by_power, sigmoid_by_power(node.with_inputs(*inputs))) if given else None

    return transform(graph, visit, at={divide}, bodies=share_exponentials)


def value_of(power: Node) -> Node:
    """The x of e^-|x|, e^-x or e^x."""
    return unwrap(unwrap(power.inputs[0], negative), absolute)


def is_sigmoid(node: Node) -> bool:
    """Whether a quotient is 1 / (1 + e^-x) or 1 / (1 + e^x)."""
    one, below = node.inputs
    if not is_real(node) or not is_one(one) or below.op is not add:
        return False
    one, power = below.inputs
    return is_one(one) and power.op is exp and not is_part(power)


def sigmoid_by_power(node: Node) -> Node:
    """1 / (1 + e^-x) = (e if x < 0 else 1) / (1 + e), and 1 / (1 + e^x) that of -x; e = e^-|x|"""
    (exponent,) = node.inputs[1].inputs[1].inputs
    x = unwrap(exponent, negative)
    e = exp(-absolute(x))
    small = greater(x, full_like(x, 0)) if x is exponent else less(x, full_like(x, 0))
    return where(small, e, 1) / (1 + e)
