"""What a program computes of constants alone is computed once, by NumPy calls, for every target.

Little work is done when the program is compiled, much at its first call.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from graphcore.analysis.cost import bytes_of, cost, elements
from graphcore.ir import Graph, Literal, Node, Rule, Trait, TupleType, toposort, unwrap
from graphcore.ir.graph import has_effect, may_raise_inside, unknowns_of
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.literal import Computed
from graphcore.ir.transform import transform
from graphcore.ops import leaf, tensor

from .function import Function

MOST_BYTES = 2**26
"""The most memory that the results of a program take which are kept: 64 MB."""
VALUES_ALWAYS_KEPT = 2**17
"""How many values a result may have and be kept although its operands have fewer."""
FLOPS_AT_ONCE = 1e7
"""The floating-point operations that take too little time to wait for the first call."""
PLAIN = frozenset({"elementwise", "tensor", "linalg"})


def compute_constants(graph: Graph) -> Graph:
    """What constants alone give is computed once, in a program that has inputs.

    What cannot be computed, as of a matrix without a Cholesky factor, is left to fail at a call.
    """
    if not graph.params or not (found := results_of_constants(graph)):
        return graph
    risky = [node for node in found if any(map(may_raise_inside, toposort([node])))]
    safe = [node for node in found if node not in risky]
    made = {**values(safe, much_work(safe)), **values_if_any(risky)}

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node not in made:
            return None
        return compute_constants, constant(made[node], node).label(node.labels)

    return transform(graph, visit, at={node.op for node in made})


def much_work(nodes: Sequence[Node]) -> bool:
    """Whether computing nodes would delay a compilation."""
    return sum([cost(node).flops for node in toposort(nodes)]) > FLOPS_AT_ONCE


def values(nodes: Sequence[Node], later: bool = False) -> dict[Node, Literal]:
    """The values of nodes that are computed of constants: now, or when one is first asked for."""

    @cache
    def arrays() -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return Function(Graph((), tuple(nodes)), ())([], ())

    def value(i: int, node: Node) -> Literal:
        dtype, shape = node.type.dtype, tuple(map(int, node.type.shape))
        return Computed(lambda: arrays()[i], dtype, shape) if later else Literal(arrays()[i], dtype)

    return {node: value(i, node) for i, node in enumerate(nodes)}


def values_if_any(nodes: Sequence[Node]) -> dict[Node, Literal]:
    """The values of nodes that may refuse those of their operands; none if one does."""
    try:
        return values(nodes)
    except (ArithmeticError, ValueError, TypeError, IndexError, np.linalg.LinAlgError) as error:
        if is_interrupt(error):
            raise
        return {}


def constant(value: Literal, like: Node) -> Node:
    """A computed value as a node."""
    if not like.type.shape:
        return leaf.full(value=value, shape=(), dims=None)
    return leaf.constant(value=value, dims=None)


def results_of_constants(graph: Graph) -> list[Node]:
    """The results of work on constants alone that something else needs, as far as memory goes."""
    known = set[Node]()
    for node in graph.nodes():
        if is_computable(node) and known.issuperset(node.inputs):
            known.add(node)
    needed, found, left = {*graph.outputs}, list[Node](), MOST_BYTES
    for node in reversed(graph.nodes()):
        if node not in needed:
            continue
        if node in known and is_kept(node) and (size := bytes_of(node.type)) <= left:
            found.append(node)
            left -= size
        else:
            needed.update(node.inputs)
    return found[::-1]


def is_computable(node: Node) -> bool:
    """Whether a node has values that are known once those of its operands are, at any sizes."""
    if has_effect(node) or unknowns_of(node):
        return False
    plain = bool(node.inputs) and (node.op.dialect in PLAIN or node.op is leaf.project)
    return plain or Trait.KNOWN in node.op.traits


def is_kept(node: Node) -> bool:
    """Whether a result takes work, and not much more memory than its operands."""
    view = Trait.VIEW in node.op.traits and node.op is not leaf.project
    if view or node.op is tensor.expand or not node.inputs or isinstance(node.type, TupleType):
        return False
    given = sum([elements(unwrap(x, tensor.expand).type) for x in node.inputs])
    return elements(node.type) <= max(VALUES_ALWAYS_KEPT, given)
