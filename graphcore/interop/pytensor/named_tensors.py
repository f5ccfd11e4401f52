"""Rules of PyTensor's xtensor, whose tensors have the same named dims here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import graphcore as gc
from graphcore.frontend.core.base import Tensor

from .indices import slice_of
from .reductions import REDUCTIONS
from .refused import Unsaid
from .rules import Apply, apply, lifted, names_of, rule
from .scalars import scalar_results
from .values import Value, axes, axis, is_known, lift, new_names, number, renamed


@rule("xtensor.TensorFromXTensor")
def without_names(node: Apply, x: Value) -> Value:
    """Dims as axes."""
    if is_known(x):
        return x
    type = node.inputs[0].type
    made = lift(x, type)
    made = made.isel({d: 0 for d, n in zip(type.dims, type.shape) if n == 1})
    return renamed(made, dict(zip(type.dims, axes(type.ndim))))


@rule("xtensor.XTensorFromTensor")
def with_names(node: Apply, x: Value) -> Value:
    """Axes as dims."""
    if is_known(x):
        return x
    type = node.outputs[0].type
    made = renamed(lift(x, node.inputs[0].type), dict(zip(axes(type.ndim), type.dims)))
    missing = {d: 1 for d in type.dims if d not in made.dims}
    return made.expand_dims(missing) if missing else made


@rule("xtensor.Rename")
@lifted
def named(node: Apply, x: Tensor) -> Value:
    """Other names for dims."""
    return renamed(x, dict(zip(node.inputs[0].type.dims, node.op.new_dims)))


@rule("xtensor.XElemwise")
@lifted
def elementwise(node: Apply, *xs: Tensor) -> Sequence[Value]:
    """A scalar op on tensors that align by name."""
    return scalar_results(node.op.scalar_op, xs, [v.type.dtype for v in node.outputs], node)


@rule("xtensor.XBlockwise")
@lifted
def blockwise(node: Apply, *xs: Tensor) -> Sequence[Value]:
    """A core op along some dims, for each position along the others."""
    reads, makes = node.op.core_dims
    core = node.op.core_op.make_node(
        *[core_input(v.type, dims) for v, dims in zip(node.inputs, reads)]
    )
    own = {dim for dims in reads for dim in dims}
    batch = list(dict.fromkeys(dim for x in xs for dim in x.dims if dim not in own))
    hidden = dict(zip(batch, new_names(batch, *xs)))
    inner: list[Value] = []
    for x, v, dims in zip(xs, core.inputs, reads):
        ones = {dim: 0 for dim, n in zip(dims, v.type.shape) if n == 1}
        places = {dim: axis(i) for i, dim in enumerate(dims)}
        inner.append(renamed(x.isel(ones) if ones else x, hidden | places))
    back = {new: old for old, new in hidden.items()}
    found: list[Value] = []
    for y, v, dims in zip(apply(core, inner), core.outputs, makes):
        made = renamed(lift(y, v.type), back | {axis(i): dim for i, dim in enumerate(dims)})
        missing = {dim: 1 for dim in dims if dim not in made.dims}
        found.append(made.expand_dims(missing) if missing else made)
    return found


def core_input(type: Any, dims: Sequence[str]) -> Any:
    """A variable with the core dims of an operand as axes."""
    from pytensor.tensor import tensor

    return tensor(dtype=type.dtype, shape=[type.shape[type.dims.index(dim)] for dim in dims])


@rule("xtensor.XReduce")
@lifted
def reduced(node: Apply, x: Tensor) -> Value:
    """A reduction over dims."""
    return REDUCTIONS[names_of(node.op.binary_op)[0]](x, list(node.op.dims))


@rule("xtensor.XCumReduce")
@lifted
def running(node: Apply, x: Tensor) -> Value:
    """Running sums or products along dims."""
    function = {"Add": gc.cumsum, "Mul": gc.cumprod}.get(names_of(node.op.binary_op)[0])
    if function is None:
        raise Unsaid("only running sums and products have counterparts", "write a scan")
    return reduce(lambda made, dim: function(made, dim), node.op.dims, x)


@rule("xtensor.Transpose")
@lifted
def transposed(node: Apply, x: Tensor) -> Value:
    """The same: the order of dims is that of the type."""
    return x


@rule("xtensor.Stack")
@lifted
def stacked(node: Apply, x: Tensor) -> Value:
    """Dims merged into one."""
    return x.stack({node.op.new_dim_name: list(node.op.stacked_dims)})


@rule("xtensor.UnStack")
def unstacked(node: Apply, x: Value, *sizes: Value) -> Value:
    """One dim split into several."""
    shape = {dim: number(n, "a size") for dim, n in zip(node.op.unstacked_dims, sizes)}
    return lift(x, node.inputs[0].type).unstack({node.op.old_dim_name: shape})


@rule("xtensor.Concat")
@lifted
def joined(node: Apply, *xs: Tensor) -> Value:
    """Tensors one after the other along a dim."""
    dim, dtype = node.op.dim, node.outputs[0].type.dtype
    every = gc.broadcast(*[x.isel({dim: 0}) if dim in x.dims else x for x in xs])
    sizes = {d: n for x in every for d, n in x.sizes.items()}
    parts = []
    for x in xs:
        new = {d: n for d, n in sizes.items() if d not in x.dims}
        wide = gc.full(new, x) if new else x
        parts.append(gc.astype(wide if dim in x.dims else wide.expand_dims({dim: 1}), dtype))
    return gc.concat(parts, dim)


@rule("xtensor.Squeeze")
@lifted
def squeezed(node: Apply, x: Tensor) -> Value:
    """Without dims of size 1."""
    return gc.squeeze(x, list(node.op.dims))


@rule("xtensor.ExpandDims")
def expanded(node: Apply, x: Value, size: Value) -> Value:
    """With a new dim."""
    return lift(x, node.inputs[0].type).expand_dims({node.op.dim: number(size, "a size")})


@rule("xtensor.Broadcast")
@lifted
def broadcast(node: Apply, *xs: Tensor) -> Sequence[Value]:
    """Each along the dims of all, but for some."""
    sizes = {d: n for x in xs for d, n in x.sizes.items() if d not in node.op.exclude}
    return [gc.full({d: n for d, n in sizes.items() if d not in x.dims}, x) for x in xs]


@rule("xtensor.Dot")
@lifted
def dot(node: Apply, x: Tensor, y: Tensor) -> Value:
    """A product summed over dims, also over those that only one has."""
    dtype, dims = node.outputs[0].type.dtype, list(node.op.dims)
    own = [[d for d in dims if d in a.dims and d not in b.dims] for a, b in ((x, y), (y, x))]
    x, y = (gc.sum(z, some) if some else z for z, some in zip((x, y), own))
    shared = [d for d in dims if d in x.dims]
    x, y = gc.astype(x, dtype), gc.astype(y, dtype)
    return gc.dot(x, y, dim=shared) if shared else x * y


def indexers(node: Apply, x: Tensor, indices: Sequence[Value]) -> dict[str, Any]:
    """The indexer of each dim."""
    found: dict[str, Any] = {}
    places = node.inputs[len(node.inputs) - len(indices) :]
    for dim, k, v in zip(node.inputs[0].type.dims, indices, places):
        if isinstance(k, slice):
            if (part := slice_of(x, dim, k)) != slice(None):
                found[dim] = part
        elif is_known(k) and not k.ndim:
            found[dim] = number(k, "a position")
        else:
            found[dim] = lift(k, v.type)
    return found


@rule("xtensor.Index")
def index(node: Apply, x: Value, *indices: Value) -> Value:
    """Elements along dims."""
    made = lift(x, node.inputs[0].type)
    return made.isel(indexers(node, made, indices))


@rule("xtensor.IndexUpdate")
def updated(node: Apply, x: Value, y: Value, *indices: Value) -> Value:
    """`x` with values set or added at positions along dims."""
    made = lift(x, node.inputs[0].type)
    by = indexers(node, made, indices) or {made.dims[0]: slice(None)}
    new = gc.astype(lift(y, node.inputs[1].type), made.dtype)
    region = made.at[by]
    return region.set(new) if node.op.mode == "set" else region.add(new)
