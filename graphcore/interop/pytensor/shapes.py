"""Rules of shapes: sizes, dims moved and merged, tensors made, joined and split."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.frontend.core.base import Tensor
from graphcore.ir.sizes import Size, same

from .refused import Unsaid
from .rules import Apply, lifted, rule
from .scalars import truth
from .values import (
    Type,
    Value,
    aligned,
    axes,
    axis,
    full,
    have_size,
    is_known,
    known,
    lift,
    moved,
    number,
    numbers,
    renamed,
    single,
    size_along,
)


@rule(
    "TensorFromScalar",
    "ScalarFromTensor",
    "TypeCastingOp",
    "DeepCopyOp",
    "Rebroadcast",
    "CpuContiguous",
)
def same_value(node: Apply, x: Value, *more: Value) -> Value:
    """What copies, or says more of a type."""
    return x


@rule("DisconnectedGrad", "ZeroGrad", "UndefinedGrad")
@lifted
def stopped(node: Apply, x: Tensor) -> Value:
    """A value that is constant to derivatives."""
    return gc.stop_gradient(x)


@rule("GradClip", "GradScale")
@lifted
def changed_slope(node: Apply, x: Tensor) -> Value:
    """A value whose cotangent is clipped, or scaled."""

    def pullback(operands: Any, y: Tensor, ct: Tensor) -> Any:
        if hasattr(node.op, "multiplier"):
            return (ct * float(node.op.multiplier),)
        return (ct.clip(float(node.op.clip_lower_bound), float(node.op.clip_upper_bound)),)

    made: Tensor = gc.custom_pullback(lambda x: x * 1, pullback)(x)
    return made


@rule("Print")
def printed(node: Apply, x: Value, *more: Value) -> Value:
    """A value that is printed when it is computed."""
    return gc.print(lift(x, node.inputs[0].type), node.op.message)


@rule("CheckAndRaise")
@lifted
def checked(node: Apply, x: Tensor, *conditions: Tensor) -> Value:
    """A value, if conditions hold; -inf in place of it where PyMC says so, else an error."""
    holds = reduce(gc.logical_and, [gc.all(truth(c)) for c in conditions])
    if getattr(node.op, "can_be_replaced_by_ninf", False):
        return gc.where(holds, x, -np.inf)
    kind, words = node.op.exc_type, node.op.msg

    def check(held: Any) -> Any:
        if not held:
            raise kind(words)
        return held

    passed: Any = gc.callback(check, gc.zeros({}, dtype=bool))(holds)
    return gc.where(passed, x, gc.zeros_like(x))


@rule("SpecifyShape")
def specified(node: Apply, x: Value, *sizes: Value) -> Value:
    """A value that must have these sizes."""
    made = lift(x, node.inputs[0].type)
    for i, size in enumerate(sizes):
        if size is not None and axis(i) in made.dims:
            made = have_size(made, axis(i), number(size, "a size"))
    return x if is_known(x) else made


@rule("Shape")
def shape(node: Apply, x: Value) -> Value:
    """The sizes of all axes."""
    made = lift(x, node.inputs[0].type)
    return known([size_along(made, i) for i in range(node.inputs[0].type.ndim)])


@rule("Shape_i")
def one_size(node: Apply, x: Value) -> Value:
    """The size of one axis."""
    return known(size_along(lift(x, node.inputs[0].type), node.op.i))


@rule("DimShuffle")
def shuffled(node: Apply, x: Value) -> Value:
    """Axes in a new order, without some of size 1 and with new ones ("x")."""
    order, type = node.op.new_order, node.inputs[0].type
    kept = [i for i in order if i != "x"]
    if is_known(x):
        gone = [i for i in range(type.ndim) if i not in kept]
        bare = x.squeeze(tuple(gone)) if gone else x
        left = [i for i in range(type.ndim) if i in kept]
        turned = bare.transpose([left.index(i) for i in kept])
        return turned.reshape([1 if i == "x" else x.shape[i] for i in order])
    made = lift(x, type)
    for i in range(type.ndim):
        if i not in kept and axis(i) in made.dims:  # of size 1, but its type does not say so
            made = single(made, axis(i))
    return renamed(made, {axis(old): axis(new) for new, old in enumerate(order) if old != "x"})


@rule("MakeVector")
def vector(node: Apply, *xs: Value) -> Value:
    """Numbers as a vector."""
    if all(map(is_known, xs)) and np.dtype(node.op.dtype).kind in "iu":
        return known([np.asarray(x)[()] for x in xs])
    numbers = [gc.astype(lift(x, v.type), node.op.dtype) for x, v in zip(xs, node.inputs)]
    return gc.concat([x.expand_dims({axis(0): 1}) for x in numbers], axis(0))


@rule("Alloc")
def filled(node: Apply, value: Value, *sizes: Value) -> Value:
    """A value repeated to a shape."""
    out = node.outputs[0].type
    made = aligned(value, node.inputs[0].type, out.ndim)
    wanted = {axis(i): number(n, "a size") for i, n in enumerate(sizes) if out.shape[i] != 1}
    for dim in made.dims:
        if dim in wanted:
            made = have_size(made, dim, wanted[dim])
    return gc.full({dim: n for dim, n in wanted.items() if dim not in made.dims}, made)


@rule("AllocEmpty")
def empty(node: Apply, *sizes: Value) -> Value:
    """A tensor whose values do not matter."""
    type = node.outputs[0].type
    shape = {axis(i): number(n, "a size") for i, n in enumerate(sizes) if type.shape[i] != 1}
    return gc.zeros(shape, dtype=type.dtype)


def reshaped(x: Value, type: Type, sizes: Sequence[Size], start: int = 0, n: int = -1) -> Value:
    """`n` axes from `start` on, by default all, in another shape; -1 is what the rest leaves."""
    n = type.ndim if n < 0 else n
    if is_known(x):
        whole = [size for size in sizes if isinstance(size, int)]
        if len(whole) == len(sizes):
            return x.reshape([*x.shape[:start], *whole, *x.shape[start + n :]])
    made = full(x, type)
    flat = made.stack({"flat": axes(n, start)}) if n else made.expand_dims({"flat": 1})
    shape = {f"new {i}": None if same(size, -1) is True else size for i, size in enumerate(sizes)}
    flat = flat.unstack({"flat": shape}) if shape else single(flat, "flat")
    names = {f"new {i}": axis(start + i) for i in range(len(sizes))}
    later = {axis(i): axis(i + len(sizes) - n) for i in range(start + n, type.ndim)}
    return renamed(flat, names | later)


@rule("Reshape")
def reshape(node: Apply, x: Value, sizes: Value) -> Value:
    """The same values, row-major, in another shape."""
    return reshaped(x, node.inputs[0].type, numbers(sizes, node.outputs[0].type.ndim, "a size"))


@rule("JoinDims")
def merged(node: Apply, x: Value) -> Value:
    """Axes in a row as one."""
    op, type = node.op, node.inputs[0].type
    made = full(x, type)
    product: Size = reduce(mul, [made.sizes[d] for d in axes(op.n_axes, op.start_axis)], 1)
    return reshaped(x, type, [product], op.start_axis, op.n_axes)


@rule("SplitDims")
def split_axis(node: Apply, x: Value, sizes: Value) -> Value:
    """One axis as several."""
    wanted = numbers(sizes, node.outputs[0].type.ndim - node.inputs[0].type.ndim + 1, "a size")
    return reshaped(x, node.inputs[0].type, wanted, node.op.axis, 1)


@rule("Join", "ScalarizedJoin")
def joined(node: Apply, *xs: Value) -> Value:
    """Tensors one after the other along an axis."""
    types = [v.type for v in node.inputs]
    if not hasattr(node.op, "axis"):  # PyTensor 3.0: the first operand is the axis
        at, xs, types = number(xs[0], "the axis"), xs[1:], types[1:]
    else:
        at = node.op.axis
    place = int(at) % types[0].ndim
    if all(map(is_known, xs)) and np.dtype(node.outputs[0].type.dtype).kind in "iu":
        return np.concatenate([np.asarray(x) for x in xs], place)
    dtype = node.outputs[0].type.dtype
    return gc.concat(
        [gc.astype(full(x, type, [place]), dtype) for x, type in zip(xs, types)], axis(place)
    )


@rule("Split")
def parts(node: Apply, x: Value, *more: Value) -> Sequence[Value]:
    """A tensor cut along an axis."""
    *place, sizes = more
    at = number(place[0], "the axis") if place else node.op.axis
    type = node.inputs[0].type
    dim = axis(int(at) % type.ndim)
    made, start, found = full(x, type, [int(dim[1:])]), 0, list[Value]()
    wanted = numbers(sizes, len(node.outputs), "the size of a part")
    made = have_size(made, dim, reduce(lambda a, b: a + b, wanted, 0))
    for n in wanted:
        found.append(made.isel({dim: slice(start, start + n)}))
        start = start + n
    return found


@rule("Eye")
def identity(node: Apply, n: Value, m: Value, k: Value) -> Value:
    """Ones on a diagonal."""
    shape = {axis(0): number(n, "a size"), axis(1): number(m, "a size")}
    return gc.eye(shape, k=number(k, "the diagonal"), dtype=node.op.dtype)


@rule("ARange")
def arange(node: Apply, start: Value, stop: Value, step: Value) -> Value:
    """Numbers at even distances."""
    ends: list[Any] = []
    for x, v in zip((start, stop, step), node.inputs):
        whole = np.dtype(v.type.dtype).kind in "iub"
        if not whole and not is_known(x):
            raise Unsaid(
                "only the call gives its floats, and so its size", "scale an arange of integers"
            )
        ends.append(number(x, "an end") if whole else np.asarray(x).item())
    return gc.arange(*ends, dim=axis(0), dtype=node.op.dtype)


@rule("ExtractDiag")
def diagonal(node: Apply, x: Value) -> Value:
    """A diagonal of two axes, as the last axis."""
    op, n = node.op, node.inputs[0].type.ndim
    pair = axis(op.axis1), axis(op.axis2)
    made = gc.diagonal(full(x, node.inputs[0].type), pair, "diag", op.offset)
    rest = [i for i in range(n) if i not in (op.axis1, op.axis2)]
    return moved(made, [*rest, "diag"])


@rule("Bartlett")
def bartlett(node: Apply, n: Value) -> Value:
    """Bartlett's window."""
    return gc.signal.bartlett(number(n, "a size"), dim=axis(0))
