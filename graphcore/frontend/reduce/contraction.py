"""Products of several tensors, summed over dims that are given by name."""

from __future__ import annotations

from collections import Counter

from graphcore.frontend.core.arguments import Dim, dim_of, names, order_set, require_dims
from graphcore.frontend.core.base import Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, common
from graphcore.frontend.create.inputs import zeros_like
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.shape import dims as shape
from graphcore.ir import Expression, Node
from graphcore.ir.help_text import parameters
from graphcore.ops import named

__all__ = [
    "cross",
    "dot",
    "einsum",
]


@parameters(
    xs="One or more tensors.",
    dim="The dims to sum over: one name, several, None for those that at least two operands share, "
    "or ... for all. A dim that only one operand has is summed as well, as in xarray. `gc.einsum` "
    "states the dims of each operand and refuses one that is missing.",
)
def dot(*xs: Operand, dim: Dim = None) -> Tensor:
    """Product of all operands, aligned by name, summed over dims.

    The result has the dims that remain, in order of first appearance, and the operands' common
    dtype. A dim that no operand has is refused.

    GraphError if no operand has one of the dims to sum over.

    >>> x = gc.constant([[1, 2], [3, 4]], ("batch", "feature"))
    >>> w = gc.constant([[1, 0, 2], [0, 1, 2]], ("feature", "out"))
    >>> gc.compile([], [gc.dot(x, w), gc.dot(x, w, dim=...)])()
    [array([[ 1,  2,  6],
           [ 3,  4, 14]]), array(30)]
    >>> gc.dot(x, w).dims
    ('batch', 'out')
    """
    if not xs:
        raise type_refusal("takes at least one operand", cure="give the tensors to multiply")
    nodes = common(*xs)
    return wrap(named.dot(*nodes, dims=dims_to_contract(nodes, dim)))


def dims_to_contract(nodes: tuple[Node, ...], dim: Dim) -> tuple[str, ...]:
    """The dims to sum over, in order of first appearance."""
    uses = Counter(name for node in nodes for name in node.type.dims)
    if dim is ...:
        return tuple(uses)
    if dim is None:
        return tuple(name for name, count in uses.items() if count > 1)
    meant = names(order_set(dim), nodes[0])
    if len(set(meant)) < len(meant) or not set(meant) <= uses.keys():
        return meant  # the type rule will refuse, and suggest
    return tuple(name for name in uses if name in meant)


@parameters(
    x="Vectors along `dim`; other dims align by name.",
    y="Vectors along `dim`.",
    dim="The dim of the vectors and of the result.",
)
def cross(x: Operand, y: Operand, dim: str | None = None) -> Tensor:
    """Cross product of the vectors along `dim`, of size 3, or of size 2 with third component 0.

    Where both have size 2, the result is the third component of the product alone, without `dim`. A
    size known only at the call must be 3.

    >>> x, y = gc.constant([1, 0, 0], "axis"), gc.constant([0, 1, 0], "axis")
    >>> gc.compile([], gc.cross(x, y, "axis"))()
    array([0, 0, 1])
    """
    left, right = (wrap(node) for node in common(x, y))
    dim = dim_of(left.node, dim)
    (a, b, c), (d, e, f) = (components(v, dim) for v in (left, right))
    last = a * e - b * d
    if left.sizes[dim] == right.sizes[dim] == 2:
        return last
    parts = [b * f - c * e, c * d - a * f, last]
    order = tuple(dict.fromkeys((*left.dims, *right.dims)))
    made = shape.transpose(
        shape.concat([shape.expand_dims(part, dim) for part in parts], dim), *order
    )
    of = right if left.sizes[dim] == 2 else left
    return wrap(shape.keep_labels(made.node, of.node, (dim,)))


def components(x: Tensor, dim: str) -> list[Tensor]:
    """The three components along `dim`; the third is 0 where the size is 2."""
    size = x.sizes[dim_of(x.node, dim)]
    if isinstance(size, Expression):
        size, x = 3, wrap(shape.with_size(x.node, dim, 3))
    if size not in (2, 3):
        raise refusal(f"dim {dim!r} has size {size}", x, cure="give it the size 3, or 2")
    parts = [isel(x, {dim: i}) for i in range(2 if size == 2 else 3)]
    return parts if size == 3 else [*parts, zeros_like(parts[0])]


@parameters(
    spec="For each operand some of its dims, separated by spaces, with commas between operands; "
    "after `->` the dims of the result.",
    xs="As many tensors as `spec` lists.",
)
def einsum(spec: str, *xs: Operand) -> Tensor:
    """Product of all operands summed over dims, written as an equation of dim names.

    Dims listed before the arrow and not after it are summed over. Dims that are not listed at all
    are batch: they come first in the result, or where `...` stands in it.

    GraphError if the equation has no arrow, if an operand lacks a listed dim, or if no operand
    lists a dim of the result.

    >>> x = gc.constant([[1, 2], [3, 4]], ("row", "inner"))
    >>> y = gc.constant([[1, 0, 2], [0, 1, 2]], ("inner", "col"))
    >>> gc.compile([], gc.einsum("row inner, inner col -> col row", x, y))()
    array([[ 1,  3],
           [ 2,  4],
           [ 6, 14]])
    >>> batch = gc.tensor("batch", {"batch": None, "row": 2, "inner": 2})
    >>> gc.einsum("row inner, inner col -> ... col row", batch, y)
    <Tensor: f64[batch, col=3, row=2]>
    """
    nodes = common(*xs)
    listed, result = equation(spec, *nodes)
    for dims, node in zip(listed, nodes, strict=True):
        require_dims(node, dims)
    spoken = dict.fromkeys(dim for dims in listed for dim in dims)
    for dim in result:
        if dim not in spoken and dim != "...":
            cure = named.close_match(dim, tuple(spoken))
            raise refusal(f"{spec!r}: no operand lists {dim!r}", *nodes, cure=cure)
    product = named.dot(*nodes, dims=tuple(dim for dim in spoken if dim not in result))
    batch = [dim for dim in product.type.dims if dim not in spoken]
    at = result.index("...") if "..." in result else 0
    order = (*result[:at], *batch, *[dim for dim in result[at:] if dim != "..."])
    return wrap(shape.in_order(product, order))


def equation(spec: str, *nodes: Node) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The dims listed for each operand and for the result."""
    left, arrow, right = spec.partition("->")
    cure = "write gc.einsum('row inner, inner col -> row col', x, y)"
    if not arrow:
        raise refusal(f"{spec!r} has no arrow", *nodes, cure=cure)
    *operands, result = (tuple(part.split()) for part in [*left.split(","), right])
    if len(operands) != len(nodes):
        reason = f"{spec!r} lists {len(operands)} operands, {len(nodes)} are given"
        raise refusal(reason, *nodes, cure="list the dims of each, between commas")
    for dims in (*operands, result):
        if len(set(dims)) < len(dims):
            reason = f"{spec!r} repeats a dim of one operand"
            raise refusal(reason, *nodes, cure="use gc.diagonal for a diagonal")
    return [tuple(dim for dim in dims if dim != "...") for dims in operands], result
