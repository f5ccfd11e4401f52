"""Names -> positions. One rule an op: `(node, *lowered inputs) -> plain node`."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.ir import INT, DType, Graph, Literal, Node, Op, Shape, TensorType, unwrap
from graphcore.ir.axes import Reduces
from graphcore.ir.dtypes import HALF, SINGLE, float_for, promote
from graphcore.ir.graph import with_bodies
from graphcore.ir.op import for_every
from graphcore.ir.sizes import count, maximum
from graphcore.ops import autodiff, control, elementwise, leaf, named, tensor
from graphcore.ops.control import Loop
from graphcore.rewrites.engine import convert
from graphcore.rewrites.plain import (
    cast,
    equals,
    full,
    nonzero,
    number,
    reshape,
    sum_over,
    transpose,
    unsum,
    where,
)

from . import matrices, outside, positions
from .table import LOWER, align, axes, lower, plain

__all__ = ["LOWER", "lower_names", "matrices", "outside", "positions"]


def lower_names(graph: Graph) -> Graph:
    """The same program on plain tensors; every axis keeps its dim as a label."""
    return convert(graph, LOWER)


@lower(leaf.input_)
def lower_input(node: Node) -> Node:
    dims = node.attrs["dims"]
    return node if dims is None else node.op(**node.attrs | {"dims": None, "labels": dims})


@lower(leaf.full, leaf.iota, leaf.extent)
def lower_leaf(node: Node) -> Node:
    return node.op(**node.attrs | {"dims": None})


@lower(leaf.constant)
def lower_constant(node: Node) -> Node:
    value, shape = node.attrs["value"], node.type.shape
    if not shape:
        return leaf.full(value=value, shape=shape, dims=None)
    return leaf.constant(value=value, dims=None)


@lower(autodiff.barrier, autodiff.stop_gradient, elementwise.real, elementwise.imag)
@lower(elementwise.cast, leaf.as_size)
def lower_unary(node: Node, x: Node) -> Node:
    return node.op(x, **node.attrs)


@lower(leaf.after)
def lower_after(node: Node, *xs: Node) -> Node:
    return leaf.after(*xs, **node.attrs)


def lower_elementwise(node: Node, *xs: Node) -> Node:
    dtypes = elementwise.compute_dtypes(node.op, *[x.type.dtype for x in xs])
    return node.op(
        *[
            align(cast(x, dtype), old.type.dims, node.type)
            for x, old, dtype in zip(xs, node.inputs, dtypes, strict=False)
        ]
    )


for_every("elementwise", lambda op: LOWER.setdefault(op, lower_elementwise))


@lower(elementwise.where)
def lower_where(node: Node, condition: Node, *xs: Node) -> Node:
    operands = [condition, *[cast(x, node.type.dtype) for x in xs]]
    return node.op(
        *[align(x, old.type.dims, node.type) for x, old in zip(operands, node.inputs, strict=True)]
    )


def lower_derived(node: Node, x: Node) -> Node:
    """The plain op over the axes of the dims"""
    form, attrs = named.FORMS[node.op], dict(node.attrs)
    dims = attrs.pop(form.dims)
    over = axes(node, (dims,) if form.dims == "dim" else dims)
    x = converted(x, form.operand(x.type.dtype) if form.operand else node.type.dtype)
    reduces = isinstance(node.op.axes, Reduces)
    if reduces and not over:
        if node.op in OVER_NOTHING:
            return OVER_NOTHING[node.op](x, **attrs)
        x, over = reshape(x, (*x.type.shape, 1)), (x.type.ndim,)
    if form.axes == "axes":
        return form.plain(x, axes=over, **attrs)
    for axis in sorted(over, reverse=True) if reduces else over:
        x = form.plain(x, axis=axis, **attrs)
    return x


for_every("named", lambda op: op in named.FORMS and LOWER.setdefault(op, lower_derived))


def converted(x: Node, dtype: DType) -> Node:
    """`x` in `dtype`: as a bool whether it is not 0, as a real number its absolute value."""
    if dtype.kind == "b":
        return truth(x)
    return cast(elementwise.absolute(x) if x.type.dtype.kind == "c" != dtype.kind else x, dtype)


def truth(x: Node) -> Node:
    """Where `x` is not 0."""
    if x.type.dtype.kind == "b":
        return x
    return elementwise.not_equal(x, full(0, x.type.dtype, x.type.shape))


def extreme(of_two: Op) -> Callable[..., Node]:
    """The value itself, or the extreme of it and the initial one."""

    def over_nothing(x: Node, initial: Literal | None = None) -> Node:
        if initial is None:
            return x
        return of_two(x, leaf.full(value=initial, shape=x.type.shape, dims=None))

    return over_nothing


OVER_NOTHING: dict[Op, Callable[..., Node]] = {
    **dict.fromkeys((named.sum_, named.prod, named.any_, named.all_, named.logsumexp), lambda x: x),
    named.norm: lambda x: elementwise.absolute(unwrap(x, elementwise.absolute)),
    named.max_: extreme(elementwise.maximum),
    named.min_: extreme(elementwise.minimum),
}
"""What a reduction over no dims is; any other is one over an axis of size 1."""


@lower(named.mean)
def lower_mean(node: Node, x: Node) -> Node:
    return cast(mean(at_least_single(cast(x, node.type.dtype)), axes(node)), node.type.dtype)


def at_least_single(x: Node) -> Node:
    """`x`, in float32 if it is float16, which sums and numbers of elements soon exceed."""
    return cast(x, SINGLE) if x.type.dtype == HALF else x


def mean(x: Node, over: tuple[int, ...], ddof: int = 0) -> Node:
    """sum(x) / (count - ddof)"""
    total = sum_over(x, over)
    places = maximum(count(x.type.shape[axis] for axis in over) - ddof, 0)
    return total / number(places, x.type.dtype, total.type.shape)


@lower(named.var)
def variance(node: Node, x: Node) -> Node:
    """mean(|x - mean(x)|^2), over count - ddof"""
    return cast(wide_variance(node, x), node.type.dtype)


def wide_variance(node: Node, x: Node) -> Node:
    """The variance, of float16 in float32."""
    x = at_least_single(cast(x, float_for(x.type.dtype)))
    over = axes(node)
    away = x - unsum(mean(x, over), over, x)
    if x.type.dtype.kind == "c":
        squared = elementwise.real(away * elementwise.conjugate(away))
    else:
        squared = elementwise.square(away)
    return mean(squared, over, node.attrs["ddof"])


@lower(named.std)
def lower_std(node: Node, x: Node) -> Node:
    # The square root of a variance of 0 is shielded, so that its derivative is 0 and not nan.
    v = wide_variance(node, x)
    return cast(where(equals(v, 0), 0, elementwise.sqrt(nonzero(v))), node.type.dtype)


@lower(named.argmax, named.argmin)
def lower_place_of_extreme(node: Node, x: Node) -> Node:
    """All its axes merged: positions are counted row-major"""
    return plain(node)(merge_last(x, axes(node)), axis=node.type.ndim)


def merge_last(x: Node, merged: tuple[int, ...]) -> Node:
    """`x` with the axes `merged` made one, the last, row-major."""
    rest = [axis for axis in range(x.type.ndim) if axis not in merged]
    kept: Shape = tuple(x.type.shape[axis] for axis in rest)
    size = count(x.type.shape[axis] for axis in merged)
    return reshape(transpose(x, (*rest, *merged)), (*kept, size))


@lower(named.print_)
def lower_print(node: Node, x: Node) -> Node:
    return tensor.print_(x, **node.attrs, dims=node.type.dims)


@lower(named.searchsorted)
def lower_searchsorted(node: Node, x: Node, values: Node) -> Node:
    """The dims of the result are those of x, less the sorted one, and then those of values."""
    dtype = promote(x.type.dtype, values.type.dtype)
    rows = merge_last(x, axes(node, (node.attrs["dim"],)))
    places = align(values, node.inputs[1].type.dims, node.type)
    return tensor.searchsorted(cast(rows, dtype), cast(places, dtype), side=node.attrs["side"])


@lower(named.dot)
def lower_dot(node: Node, *xs: Node) -> Node:
    # bool: an `and` of operands and an `or` over places, counted in integers.
    inside = INT if node.type.dtype.kind == "b" else node.type.dtype
    letter: dict[str, int] = {}
    for old in node.inputs:
        for dim in old.type.dims:
            letter.setdefault(dim, len(letter))
    product = tensor.einsum(
        *[cast(x, inside) for x in xs],
        operands=tuple(tuple(letter[dim] for dim in old.type.dims) for old in node.inputs),
        result=tuple(letter[dim] for dim in node.type.dims),
    )
    return truth(product) if node.type.dtype.kind == "b" else product


@lower(named.transpose)
def lower_transpose(node: Node, x: Node) -> Node:
    return transpose(x, axes(node))


@lower(named.rename, named.swap_dims)
def lower_rename(node: Node, x: Node) -> Node:
    return x


@lower(named.labelled)
def lower_labelled(node: Node, x: Node, like: Node) -> Node:
    return x


@lower(named.broadcast)
def lower_broadcast(node: Node, x: Node) -> Node:
    return align(x, node.inputs[0].type.dims, node.type)


@lower(named.squeeze)
def lower_squeeze(node: Node, x: Node) -> Node:
    return reshape(x, node.type.shape)


@lower(named.concat)
def lower_concat(node: Node, *xs: Node) -> Node:
    dim, dims = node.attrs["dim"], node.type.dims
    axis = dims.index(dim)
    parts = []
    for x, old in zip(xs, node.inputs, strict=True):
        shape = list(node.type.shape)
        shape[axis] = old.type.sizes.get(dim, 1)
        target = TensorType(node.type.dtype, tuple(shape), dims)
        parts.append(align(cast(x, node.type.dtype), old.type.dims, target))
    return tensor.concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


@lower(named.stack)
def lower_stack(node: Node, x: Node) -> Node:
    return merge_last(x, axes(node))


@lower(named.unstack)
def lower_unstack(node: Node, x: Node) -> Node:
    (split,) = axes(node, (node.attrs["dim"],))
    rest = [axis for axis in range(x.type.ndim) if axis != split]
    return reshape(transpose(x, (*rest, split)), node.type.shape)


@lower(control.scan)
def lower_scan(node: Node, *xs: Node) -> Node:
    """The steps run along the first axis of sequences."""
    dim, groups = node.attrs["dim"], Loop.of(node).params
    given, index = groups.split(xs), groups.split(range(len(xs)))
    sequences = [
        transpose(x, axes(node, (dim, *[d for d in node.inputs[i].type.dims if d != dim]), i))
        for i, x in zip(index.sequences, given.sequences, strict=True)
    ]
    attrs = with_bodies(node, lower_names) | {"dim": None}
    return node.op(*given.carries, *sequences, *given.captured, **attrs)


@lower(control.while_loop, control.switch, control.call, control.custom, control.linear)
def lower_control(node: Node, *xs: Node) -> Node:
    return node.op(*xs, **with_bodies(node, lower_names))
