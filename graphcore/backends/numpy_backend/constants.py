"""What a program computes of constants alone is computed once, when the program is compiled."""

from __future__ import annotations

import numpy as np

from graphcore.ir import Graph, Literal, Node, Rule, TensorType, Trait
from graphcore.ir.graph import has_effect, unknowns_of
from graphcore.ir.transform import transform
from graphcore.ops import leaf, tensor

from .function import Function

MOST_VALUES = 2**17
"""The most values of a result that is kept: with many more, a program would take more memory."""
PLAIN = frozenset({"elementwise", "tensor", "linalg"})


def compute_constants(graph: Graph) -> Graph:
    """The graph of a program with inputs, in which results of constants alone are constants.

    One that cannot be computed, as a matrix without a Cholesky factor, is left to fail at a call.
    """
    if not graph.params:
        return graph
    found = [node for node in results_of_constants(graph) if node.inputs]
    if not found:
        return graph
    try:
        with np.errstate(all="ignore"):
            values = Function(Graph((), tuple(found)), ())([], ())
    except (ArithmeticError, ValueError, TypeError, IndexError, np.linalg.LinAlgError):
        return graph
    made = {
        node: constant(value, node).label(node.labels)
        for node, value in zip(found, values, strict=True)
    }

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        return (compute_constants, made[node]) if node in made else None

    return transform(graph, visit, at={node.op for node in made})


def constant(value: np.ndarray, like: Node) -> Node:
    """A computed value as a node."""
    literal = Literal(value, like.type.dtype)
    if not like.type.shape:
        return leaf.full(value=literal, shape=(), dims=None)
    return leaf.constant(value=literal, dims=None)


def results_of_constants(graph: Graph) -> list[Node]:
    """The results of work on constants alone that something else needs."""
    known, kept = set[Node](), dict[Node, None]()
    needed = set(graph.outputs)
    for node in graph.nodes():
        if is_computable(node) and all(x in known for x in node.inputs):
            known.add(node)
            if is_kept(node):
                kept[node] = None
                continue
        needed.update(node.inputs)
    return [node for node in kept if node in needed]


def is_computable(node: Node) -> bool:
    """Whether a node has values that are known once those of its operands are, at any sizes."""
    if not isinstance(node.type, TensorType) or has_effect(node):
        return False
    plain = bool(node.inputs) and node.op.dialect in PLAIN
    return not unknowns_of(node) and (plain or Trait.KNOWN in node.op.traits)


def is_kept(node: Node) -> bool:
    """Whether a result takes work, and little memory."""
    free = node.op is tensor.expand or Trait.VIEW in node.op.traits
    return bool(node.inputs) and not free and int(node.type.count) <= MOST_VALUES
