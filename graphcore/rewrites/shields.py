"""Products with cotangents and tangents, in which the zeros of values left out stay 0.

A program may leave out a value (by a slice, a choice, a maximum) at which the derivative of what
came before is infinite or nan, as that of log(x) is at 0. The cotangent of this value is a 0 that
must stay 0. `multiply_no_nan` keeps it but takes longer than a product, so it is chosen only
where `analysis.omissions` says that such zeros may be there, and goes where a whole graph shows
none.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.analysis.omissions import NOTHING, OMISSIONS, WHOLE, Omits, may_omit, omits
from graphcore.analysis.values import is_finite, is_zero
from graphcore.ir import Expression, Graph, Hidden, Node, Op, Size
from graphcore.ir.graph import bodies_of, with_bodies
from graphcore.ops import control, elementwise, tensor

from .engine import Conversion, convert
from .plain import equals, expand, negate, unless_empty, where


def shield(ct: Node, factor: Node) -> Node:
    """ct * factor, and 0 where `ct` is 0 because a value was left out, whatever the factor is.

        where(condition, inner, 0) * factor = where(condition, inner * factor, 0)

    Conditions that follow each other are made one, so that a long chain stays as short. Signs are
    taken outside.
    """
    if factor.op is elementwise.negative:
        return negate(shield(ct, factor.inputs[0]))
    if ct.op is elementwise.negative:
        return negate(shield(ct.inputs[0], factor))
    if is_finite(factor) or not may_omit(ct):
        return ct * factor
    masks, inner = [], ct
    while is_masked(inner):
        masks.append(inner)
        inner = inner.inputs[place_of(inner)]
    if may_omit(inner):
        return tensor.multiply_no_nan(ct, factor)
    product = inner * factor
    for mask in reversed(masks):
        product = masked_like(mask, product)
    return product


def contracted(ct: Node, product: Node) -> Node:
    """A contraction of `ct` with other values, and 0 where `ct` is a sum over no places.

    A number of steps that a loop finds is known where this loop stands, and it may go: there `ct`
    itself is looked at. It may be 0 by chance, where the slope of a finite contraction counts.
    """
    for sizes in sorted(omits(ct), key=lambda sizes: sorted(map(str, sizes))):
        if not sizes or any(isinstance(n, int) or n in product.type.shape for n in sizes):
            continue
        names = [name for n in sizes if isinstance(n, Expression) for name in n.unknowns]
        if any(isinstance(name, Hidden) for name in names):
            undefined = elementwise.logical_not(elementwise.isfinite(product))
            left_out = elementwise.logical_and(is_all_zero(ct, product), undefined)
            product = where(left_out, 0, product)
        else:
            product = unless_empty(sum(sizes), product)
    return product


def is_all_zero(x: Node, like: Node) -> Node:
    """Whether all elements of `x` are 0, in the shape of `like`."""
    zero = equals(x, 0)
    if x.type.ndim:
        zero = tensor.all_(zero, axes=tuple(range(x.type.ndim)))
    return expand(zero, tuple(range(like.type.ndim)), like.type.shape)


def masked_like(mask: Node, inner: Node) -> Node:
    """`inner`, left out where `mask` leaves something out."""
    if mask.op is tensor.where_greater:
        return tensor.where_greater(inner, *mask.inputs[1:])
    condition, _, zero = mask.inputs
    if inner.op is elementwise.where and is_zero(inner.inputs[2]):
        condition = elementwise.logical_and(condition, inner.inputs[0])
        inner = inner.inputs[1]
    return elementwise.where(condition, inner, zero)


def place_of(masked: Node) -> int:
    """Which operand of a masked value is the value."""
    return 0 if masked.op is tensor.where_greater else 1


def is_masked(node: Node) -> bool:
    """Whether `node` is where(condition, inner, 0), or the like by a comparison."""
    return node.op is tensor.where_greater or (
        node.op is elementwise.where and is_zero(node.inputs[2])
    )


def added(x: Node, y: Node) -> Node:
    """x + y; where(condition, x, 0) + where(condition, y, 0) = where(condition, x + y, 0)"""
    if y.op is elementwise.negative:
        return x - y.inputs[0]
    if x.op is elementwise.negative:
        return y - x.inputs[0]
    if is_masked(x) and is_masked(y) and x.op is y.op and mask_of(x) == mask_of(y):
        return masked_like(x, x.inputs[place_of(x)] + y.inputs[place_of(y)])
    return x + y


def mask_of(masked: Node) -> tuple[Node, ...]:
    """The condition that decides which elements are left out."""
    return masked.inputs[1:] if masked.op is tensor.where_greater else masked.inputs[::2]


def repeated_along(graph: Graph) -> dict[Node, frozenset[Size]]:
    """For each node the unknown sizes along which all that is made of it is repeated.

    Where such a size is 0, nothing is made of it.
    """
    found = dict.fromkeys(graph.outputs, frozenset[Size]())
    for node in reversed(graph.nodes()):
        sizes = found.get(node, frozenset())
        if node.op is tensor.expand:
            sizes = sizes.union(n for n in node.attrs["sizes"] if isinstance(n, Expression))
        for x in node.inputs:
            found[x] = found.get(x, sizes) & sizes
    return found


def drop_shields(graph: Graph, given: Sequence[Omits] = ()) -> Graph:
    """multiply_no_nan(x, y) = x * y, where no zero of `x` stands for a value left out.

    Only a whole graph shows that inside the bodies of loops: `given` says for which params of a
    body there may be such zeros. Inputs of the user hold none.
    """
    if tensor.multiply_no_nan not in graph.ops():
        return graph
    known = OMISSIONS.inside(graph, given or [NOTHING] * len(graph.params))
    repeated = repeated_along(graph)

    def without(node: Node, x: Node, factor: Node) -> Node:
        left_out = omits(node.inputs[0], known)
        if all(repeated[node] & pattern for pattern in left_out):
            return x * factor
        return tensor.multiply_no_nan(x, factor)

    def inside(node: Node, *operands: Node) -> Node:
        if not any(tensor.multiply_no_nan in body.ops() for body in bodies_of(node)):
            return node.with_inputs(*operands)
        params = OMISSIONS.given_to_bodies(node, [omits(x, known) for x in node.inputs])
        own = control.computed_bodies(node)

        def without_shields(body: Graph) -> Graph:
            return drop_shields(body, params if body in own else [WHOLE] * len(body.params))

        return Node(node.op, operands, with_bodies(node, without_shields))

    holding = [op for op in graph.ops() if op.dialect == "control"]
    rules: dict[Op, Conversion] = {tensor.multiply_no_nan: without}
    return convert(graph, rules | dict.fromkeys(holding, inside))
