"""Lowering of functions that users give: the axes of the batch first, then those of a call."""

from __future__ import annotations

from graphcore.ir import Node, TensorType
from graphcore.ops import outside

from .table import align, lower


@lower(outside.callback)
def lower_callback(node: Node, *xs: Node) -> Node:
    attrs, types = node.attrs, [x.type for x in node.inputs]
    known = {dim for own in attrs["dims"] for dim in own}
    sizes = [size for type in types for size in type.sizes.items()]
    batch = {dim: size for dim, size in sizes if dim not in known}
    operands = []
    for x, type, own in zip(xs, types, attrs["dims"], strict=True):
        target = TensorType.of(type.dtype, batch | {dim: type.size(dim) for dim in own})
        operands.append(align(x, type.dims or (), target).label(target.dims))
    own_sizes = [list(y.sizes.items())[len(batch) :] for y in node.type.items]
    return outside.callback_(
        *operands,
        function=attrs["function"],
        batch=tuple(batch),
        made=tuple(tuple(dim for dim, _ in own) for own in own_sizes),
        sizes=tuple(size for own in own_sizes for _, size in own),
        dtypes=attrs["dtypes"],
        masked=attrs["masked"],
    )
