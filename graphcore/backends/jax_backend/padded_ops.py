"""Ops that move elements along padded axes: by positions that count the elements there really are.

Entries of the table know sizes in memory alone. Where a start, a stride or an end depends on how
many elements an axis has, the rules here stand in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from graphcore.backends.errors import indexed_tensor
from graphcore.ir import Node, Op, Size
from graphcore.ops import tensor

from .entries import TABLE, Value
from .failures import Tracing
from .padding import Neutral, along, filled, highest, last, lowest, mixed, one, valid, zero

Rule = Callable[..., Value]
PADDED: dict[Op, Rule] = {}
"""The rule of an op where an axis of an operand or of the result is padded."""


def padded(*ops: Op) -> Callable[[Rule], Rule]:
    """Enter the decorated rule for these ops."""

    def enter(rule: Rule) -> Rule:
        PADDED.update(dict.fromkeys(ops, rule))
        return rule

    return enter


def taken(x: Value, at: Value, axis: int) -> Value:
    """Elements at positions along an axis; those in the padding of the result are any."""
    if not x.shape[axis]:
        shape = *x.shape[:axis], at.size, *x.shape[axis + 1 :]
        return jnp.zeros(shape, x.dtype)
    return jnp.take(x, jnp.clip(at, 0, x.shape[axis] - 1), axis=axis)


def places(cx: Tracing, size: Size) -> Value:
    """The numbers of the places along an axis in memory."""
    return lax.iota(jnp.int64, cx.size(size))


@padded(tensor.slice_)
def sliced(cx: Tracing, node: Node, x: Value) -> Value:
    """A range on each axis, as positions where its start or its end is counted."""
    plain: list[Any] = [slice(None)] * x.ndim
    ranges = zip(node.attrs["starts"], node.attrs["steps"], node.type.shape, strict=True)
    for axis, (start, step, size) in enumerate(ranges):
        many = cx.size(size)
        first, end = cx.size(start), cx.size(start) + step * max(many - 1, 0)
        fits = min(first, end) >= 0 and max(first, end) < x.shape[axis]
        if many and fits and not cx.found.is_padded(start):
            stop = end + step
            plain[axis] = slice(first, stop if stop >= 0 else None, step)
        else:
            x = taken(x, cx.found.count(start) + step * places(cx, size), axis)
    return x[tuple(plain)]


def embedded(cx: Tracing, node: Node, x: Value) -> tuple[Value, Value]:
    """`x` at ranges of a larger array, and which elements of that it has."""
    there: Value = jnp.ones((1,) * x.ndim, bool)
    own, whole = node.inputs[-1].type.shape, node.type.shape
    for axis, (start, step) in enumerate(
        zip(node.attrs["starts"], node.attrs["steps"], strict=True)
    ):
        gap = places(cx, whole[axis]) - cx.found.count(start)
        at = gap // step
        inside = (gap == at * step) & (at >= 0) & (at < cx.found.count(own[axis]))
        x, there = taken(x, at, axis), there & along(inside, axis, x.ndim)
    return x, there


@padded(tensor.embed)
def embed(cx: Tracing, node: Node, x: Value) -> Value:
    """Zeros with `x` at ranges."""
    x, there = embedded(cx, node, x)
    return jnp.where(there, x, jnp.zeros_like(x))


@padded(tensor.overwrite)
def overwrite(cx: Tracing, node: Node, x: Value, part: Value) -> Value:
    """`x` with `part` at ranges."""
    part, there = embedded(cx, node, part)
    return jnp.where(there, part, x)


@padded(tensor.concat)
def concat(cx: Tracing, node: Node, *xs: Value) -> Value:
    """Each operand is written over the padding of the one before."""
    axis, capacity = node.attrs["axis"], cx.size(node.type.shape[node.attrs["axis"]])
    shape = list(xs[0].shape)
    shape[axis] = max(capacity, sum(x.shape[axis] for x in xs))
    whole, start = jnp.zeros(shape, node.type.dtype), jnp.zeros((), jnp.int64)
    for x, of in zip(xs, node.inputs, strict=True):
        whole = lax.dynamic_update_slice_in_dim(whole, x.astype(whole.dtype), start, axis)
        start = start + cx.found.count(of.type.shape[axis])
    return lax.slice_in_dim(whole, 0, capacity, axis=axis)


@padded(tensor.reshape, tensor.pack)
def reshape(cx: Tracing, node: Node, x: Value) -> Value:
    """The elements in the same row-major order, whose numbers the counts of axes give."""
    old, new = node.inputs[0].type.shape, node.type.shape
    if not any(mixed(node, cx.found.counts)):  # padded axes stay as they are
        return x.reshape(cx.sizes(new))
    if in_order(cx, old) and in_order(cx, new):
        flat = x.reshape(-1)
        shape = cx.sizes(new)
        many = 1
        for size in shape:
            many *= size
        flat = jnp.pad(flat, (0, max(many - flat.size, 0)))[:many]
        return flat.reshape(shape)
    number: Value = jnp.zeros((1,) * len(new), jnp.int64)
    for axis, size in enumerate(new):
        number = number * cx.found.count(size) + along(places(cx, size), axis, len(new))
    at: Value = jnp.zeros_like(number)
    stride: Value = 1
    memory = 1
    for size in reversed(old):
        count = jnp.maximum(cx.found.count(size), 1)
        at = at + number // stride % count * memory
        stride, memory = stride * count, memory * cx.size(size)
    if not x.size:
        return jnp.zeros(cx.sizes(new), x.dtype)
    return x.reshape(-1)[jnp.clip(at, 0, x.size - 1)]


def in_order(cx: Tracing, shape: Sequence[Size]) -> bool:
    """Whether all elements of an array lie together in memory, before the padding."""
    first = next((i for i, size in enumerate(shape) if cx.size(size) != 1), len(shape))
    return not any(cx.found.is_padded(size) for size in shape[first + 1 :])


@padded(tensor.argsort)
def argsort(cx: Tracing, node: Node, x: Value) -> Value:
    """There are as many places as the result has room for; those in the padding come last."""
    axis, size = node.attrs["axis"], node.inputs[0].type.shape[node.attrs["axis"]]
    neutral = lowest if node.attrs["descending"] else last
    fill = jnp.asarray(neutral(x.dtype), x.dtype)
    x = filled(cx, x, axis, size, neutral)
    missing = max(cx.size(node.attrs["size"]) - x.shape[axis], 0)
    x = lax.pad(x, fill, [(0, missing if i == axis else 0, 0) for i in range(x.ndim)])
    return TABLE[tensor.argsort](cx, node, x)


@padded(tensor.searchsorted)
def searchsorted(cx: Tracing, node: Node, x: Value, values: Value) -> Value:
    """No more than there are elements."""
    found: Value = TABLE[tensor.searchsorted](cx, node, x, values)
    return jnp.minimum(found, cx.found.count(node.inputs[0].type.shape[-1]))


def from_start(cx: Tracing, node: Node, indices: Sequence[Value]) -> list[Value]:
    """Positions counted from the start; those that are outside are noted as they were given."""
    found = []
    for axis, at in zip(node.attrs["axes"], indices, strict=True):
        size = indexed_tensor(node).type.shape[axis]
        if cx.found.is_padded(size) and at.dtype.kind == "i":
            cx.fail_outside(node, axis, at, size)
            wide = at.astype(jnp.int64)
            at = jnp.where(wide < 0, wide + cx.found.count(size), wide)
        found.append(at)
    return found


@padded(tensor.gather)
def gather(cx: Tracing, node: Node, x: Value, *indices: Value) -> Value:
    """Elements at positions."""
    made: Value = TABLE[tensor.gather](cx, node, x, *from_start(cx, node, indices))
    return made


UPDATES: dict[Op, Neutral] = {
    **dict.fromkeys((tensor.scatter, tensor.scatter_add), zero),
    tensor.scatter_prod: one,
    tensor.scatter_max: lowest,
    tensor.scatter_min: highest,
}


@padded(*UPDATES)
def receive(cx: Tracing, node: Node, *operands: Value) -> Value:
    """Updates in the padding change nothing."""
    axes = node.attrs["axes"]
    first, indices = operands[: -len(axes)], from_start(cx, node, operands[-len(axes) :])
    *kept, updates = first
    for axis, size in enumerate(node.inputs[-1].type.shape):
        if cx.found.is_padded(size):
            updates = filled(cx, updates, axis, size, UPDATES[node.op])
    return TABLE[node.op](cx, node, *kept, updates, *indices)


@padded(tensor.put)
def put(cx: Tracing, node: Node, x: Value, updates: Value, *given: Value) -> Value:
    """Updates in the padding are the last one once more; without any, `x` stays."""
    type = node.inputs[-1].type
    indices, there = from_start(cx, node, given), valid(cx, given[0].shape, type)
    if there is None or not updates.size:
        return TABLE[tensor.put](cx, node, x, updates, *indices)
    final, none = [], jnp.zeros((), bool)
    for size in type.shape:
        final.append(jnp.maximum(cx.found.count(size) - 1, 0))
        none = none | (cx.found.count(size) == 0)
    at = tuple(final)
    more = there.reshape(there.shape + (1,) * (updates.ndim - there.ndim))
    updates = jnp.where(more, updates, updates[at])
    indices = [jnp.where(there, each, each[at]) for each in indices]
    made = TABLE[tensor.put](cx, node, x, updates, *indices)
    return jnp.where(none, x, made)
