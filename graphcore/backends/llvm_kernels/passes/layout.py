"""Layout for machine code: values whose short axes come first in memory.

Its lanes run along the last long axis: where short axes come after it, their values lie apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.ir import Graph, Node, Rule, Shape, Size, TensorType, Trait
from graphcore.ir.axes import Along, Joins, Pointwise, Ranges, Reduces
from graphcore.ir.node import type_of
from graphcore.ir.transform import transform
from graphcore.ops import leaf, tensor
from graphcore.rewrites import motion
from graphcore.rewrites.engine import RuleSet, simplifier, simplify
from graphcore.rewrites.plain import Axes, transpose

SHORT_AXIS = 16
"""The largest size of a short axis."""

ROW_BY_ROW = frozenset({tensor.argmax, tensor.argmin, tensor.logcumsumexp, tensor.recurrence})
"""Ops that are computed one row after the other: another order of axes is no quicker."""

views = RuleSet()
views.add(motion.view_of_full, [tensor.transpose, tensor.expand], [leaf.full])
views.add(motion.transpose_of_view, [tensor.transpose], [])
views.add(motion.expand_of_expand, [tensor.expand], [])
views.add(motion.view_later, [Pointwise], [tensor.transpose])


def short_axes_first(graph: Graph) -> Graph:
    """The graph whose ops compute with short axes first, and read each other's results like that.

    Bodies of loops and branches are left as they are: the arrays of a single step are small. So are
    ops that read values with short axes last in memory: they would read these with strides, which
    costs as much as the order gains. A long product that is given in another shape is left, too.
    """
    types = [type for type in set(map(type_of, graph.nodes())) if isinstance(type, TensorType)]
    if not any(by_length(type.shape) for type in types):
        return graph
    results, bound = {*graph.outputs} | products_given(graph), bound_by_memory(graph)
    simplified = simplifier(views)

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        """A product that is a result stays: BLAS minds no short axis, and it is stored in order."""
        stays = node.op is tensor.matmul and node in results
        perm = None if stays or not bound.isdisjoint(node.inputs) else order(node)
        return None if perm is None else (moved, simplified(moved(node, inputs, perm)))

    new = transform(graph, visit)
    return graph if new is graph else simplify(new, views)


def products_given(graph: Graph) -> set[Node]:
    """Matrix products whose result is only reshaped, as in convolutions: they stay as they are."""
    found = {*graph.outputs}
    for node in reversed(graph.nodes()):
        if node in found and node.op is tensor.reshape:
            found.add(node.inputs[0])
    products = {node for node in found if node.op is tensor.matmul}
    rows = {node: node.inputs[0] for node in products}
    return {
        node
        for node, x in rows.items()
        if x.op is not tensor.transpose and not is_short(x.type.shape[-1])
    }


def is_short(size: Size) -> bool:
    """Whether an axis comes before those that are not."""
    return isinstance(size, int) and size <= SHORT_AXIS


def bound_by_memory(graph: Graph) -> set[Node]:
    """The nodes that inherit short axes at the end from an operand that is stored so.

    Such operands are arguments, constants, and results of ops that cannot be computed in another
    order.
    """
    found: set[Node] = set()
    for node in graph.nodes():
        given = not node.inputs or not (Trait.VIEW in node.op.traits or is_moved(node))
        type = node.type
        if node.op is leaf.full or not isinstance(type, TensorType) or not by_length(type.shape):
            continue
        if given or not found.isdisjoint(node.inputs):
            found.add(node)
    return found


def is_moved(node: Node) -> bool:
    """Whether a node can be computed in another order of axes, which moves its operands too."""
    return isinstance(node.op.axes, Pointwise | Joins | Ranges | Along | Reduces)


def order(node: Node) -> Axes | None:
    """The order of axes in which `node` is computed faster, if there is one."""
    if node.op is tensor.matmul and node.type.ndim == 2:
        return by_length(node.type.shape)
    match node.op.axes:
        case _ if Trait.VIEW in node.op.traits or node.op in ROW_BY_ROW:
            return None
        case Pointwise() | Joins() | Ranges() | Along(moves=False):
            return by_length(node.type.shape)
        case Reduces():
            return by_length(node.inputs[0].type.shape)
    return None


def by_length(shape: Shape) -> Axes | None:
    """The short axes, then the long ones; None if they are in that order or all of one kind."""
    short = [axis for axis, size in enumerate(shape) if is_short(size)]
    long = [axis for axis in range(len(shape)) if axis not in short]
    wide = [axis for axis in short if shape[axis] != 1]
    return (*short, *long) if wide and long and wide[-1] > long[0] else None


def moved(node: Node, inputs: Sequence[Node], perm: Axes) -> Node:
    """`node` computed with the axes of its operands in the order `perm`, then transposed back."""
    if node.op is tensor.matmul:  # (a b)ᵀ = bᵀ aᵀ
        a, b = inputs
        return transpose(tensor.matmul(transpose(b, perm), transpose(a, perm)), perm)
    return motion.in_order(node, [transpose(x, perm) for x in inputs], perm)
