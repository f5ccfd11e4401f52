"""Rules and a pass that a package of its own adds to the compiler, for every target."""

from __future__ import annotations

from math import log

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.rewrites.engine import convert, on
from graphcore.rewrites.pattern import P, variables
from graphcore.rewrites.pipeline import EXPANDED, Pass, register

(x,) = variables("x")


def double_angle(x: Node) -> Node:
    """sin(x) cos(x) = sin(2 x) / 2"""
    return 0.5 * e.sin(2 * x)


@on(e.log, under=[e.cosh])
def log_of_cosh(node: Node) -> Node:
    """log(cosh(x)) = |x| + log1p(exp(-2 |x|)) - log(2)"""
    size = e.absolute(node.inputs[0].inputs[0])
    return size + e.log1p(e.exp(-2 * size)) - log(2)


RULES = [(P.sin(x) * P.cos(x), double_angle), log_of_cosh]


def double_sums(graph: Graph) -> Graph:
    """x + x = 2 x"""

    def double(node: Node, x: Node, y: Node) -> Node:
        return 2 * x if x is y else node.with_inputs(x, y)

    return convert(graph, {e.add: double})


register(Pass("sums doubled", double_sums, EXPANDED), after="expanded")
