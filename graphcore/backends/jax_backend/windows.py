"""Windows on JAX: made, added up where they come from, and reduced without being made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.ir import Node
from graphcore.ops import tensor

from . import floats
from .arrays import within_zeros
from .entries import Emission, Value, entry

Ints: TypeAlias = "Sequence[int]"

FEW_PLACES = 64
"""Windows of up to so many places are one slice for each of them."""


def are_few(sizes: Ints) -> bool:
    """Whether windows of these sizes have so few places that each is a slice."""
    return math.prod(sizes) <= FEW_PLACES


@entry(tensor.windows)
def windows(cx: Emission, node: Node, x: Value) -> Value:
    """The axes of places come before the first axis of windows."""
    attrs, shape = node.attrs, cx.shape(node.type)
    axes, sizes = attrs["axes"], cx.sizes(attrs["sizes"])
    first, wide = axes[0], len(axes)
    if 0 in shape:
        return jnp.zeros(shape, x.dtype)
    counts = [shape[axis + wide] for axis in axes]
    if are_few(sizes):
        return lax.reshape(jnp.stack([*seen_at(x, node, sizes, counts)], first), shape)
    each = zip(axes, sizes, counts, attrs["strides"], attrs["dilations"], strict=True)
    for k, (axis, *own) in enumerate(each):
        x = jnp.moveaxis(seen_along(x, axis + k, *own), axis + k, first + k)
    return x


def seen_at(x: Value, node: Node, sizes: Ints, counts: Ints) -> Iterator[Value]:
    """What all windows have at each of their places: a slice of `x`."""
    attrs = node.attrs
    for place in product(*map(range, sizes)):
        starts, ends, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
        for axis, j, count, stride, dilation in zip(
            attrs["axes"], place, counts, attrs["strides"], attrs["dilations"], strict=True
        ):
            starts[axis], steps[axis] = j * dilation, stride
            ends[axis] = j * dilation + (count - 1) * stride + 1
        yield lax.slice(x, starts, ends, steps)


def seen_along(x: Value, axis: int, size: int, count: int, stride: int, dilation: int) -> Value:
    """Windows along one axis, in whose place there are two: (place, window).

    XLA computes the positions where it reads them: an array of all could be far larger than `x`.
    """
    number = jnp.int32 if x.shape[axis] < 2**31 else jnp.int64
    if dilation == 1:  # slices, which are copied as they lie
        starts = lax.iota(number, count)[:, None] * stride
        kept = tuple(i for i in range(x.ndim + 1) if i != axis + 1)
        numbers = lax.GatherDimensionNumbers(kept, (), (axis,))
        shape = *x.shape[:axis], size, *x.shape[axis + 1 :]
        return lax.gather(x, starts, numbers, shape, mode="promise_in_bounds")
    place, window = (lax.broadcasted_iota(number, (size, count), i) for i in (0, 1))
    at = (slice(None),) * axis + (place * dilation + window * stride,)
    return x.at[at].get(mode="promise_in_bounds")


@entry(tensor.overlap_add)
def overlap_add(cx: Emission, node: Node, x: Value) -> Value:
    """Windows added up where they come from: one pad a place, or a sum where these are many."""
    attrs, shape = node.attrs, cx.shape(node.type)
    axes, strides, dilations = attrs["axes"], attrs["strides"], attrs["dilations"]
    first, wide = axes[0], len(axes)
    sizes = x.shape[first : first + wide]
    if not x.size or 0 in shape:
        return jnp.zeros(shape, x.dtype)
    if are_few(sizes):
        total: Value = 0
        for place in product(*map(range, sizes)):
            starts, steps = [0] * len(shape), [1] * len(shape)
            for axis, j, stride, dilation in zip(axes, place, strides, dilations, strict=True):
                starts[axis], steps[axis] = j * dilation, stride
            total = total + within_zeros(x[(slice(None),) * first + place], shape, starts, steps)
        return total
    x, same = x.astype(floats.adding(x.dtype, math.prod(sizes))), is_everywhere(node)
    if same:
        x = x[(slice(None),) * first + (0,) * wide]
    each = zip(axes, sizes, strides, dilations, strict=True)
    for k, (axis, size, stride, dilation) in enumerate(each):
        if same:
            x = spread(x, axis, size, shape[axis], stride, dilation)
        else:
            at = axis + wide - k - 1
            x = laid_out(jnp.moveaxis(x, first, at), at, shape[axis], stride, dilation).sum(at)
    return x


def is_everywhere(node: Node) -> bool:
    """Whether windows that are added up have the same at all their places, as a sum's pullback."""
    (x,), axes = node.inputs, node.attrs["axes"]
    return x.op is tensor.expand and {*x.attrs["axes"]} == {*range(axes[0], axes[0] + len(axes))}


def spread(x: Value, axis: int, size: int, whole: int, stride: int, dilation: int) -> Value:
    """What windows along one axis have at each of their places, added up where these lie."""
    reach, padding = (x.shape[axis] - 1) * stride + 1, [(0, 0)] * x.ndim
    padding[axis] = (size - 1) * dilation, whole - reach
    ones = ones_but(x.ndim, axis, 1)
    own = [ones_but(x.ndim, axis, number) for number in (size, stride, dilation)]
    return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, own[0], ones, padding, *own[1:])


def ones_but(rank: int, axis: int, number: int) -> list[int]:
    """Ones for all axes but one, which has another number."""
    return [number if i == axis else 1 for i in range(rank)]


def laid_out(x: Value, axis: int, whole: int, stride: int, dilation: int) -> Value:
    """Windows along one axis, (place, window), as rows of the axis that they come from.

    The rows of all places follow each other, each by `dilation` longer than the axis: cut to its
    length, each lies so much further on than the one before.
    """
    size, count = x.shape[axis : axis + 2]
    shape, row = [*x.shape], whole + dilation
    padding = [(0, 0, 0)] * x.ndim
    padding[axis + 1] = 0, row - (count - 1) * stride - 1, stride - 1
    x = lax.pad(x, np.zeros((), x.dtype), padding)
    x = lax.reshape(x, (*shape[:axis], size * row, *shape[axis + 2 :]))
    x = lax.slice_in_dim(x, 0, size * whole, axis=axis)
    return lax.reshape(x, (*shape[:axis], size, whole, *shape[axis + 2 :]))


Reduce: TypeAlias = Callable[[Value, Value], Value]


def reduced(cx: Emission, node: Node, x: Value, function: Reduce, start: Any) -> Value:
    """What a reduction makes of windows, which are not made for it; None where it needs them.

    It reduces all places of each window by a function of two values; `start` is of the dtype.
    """
    made = node.inputs[0]
    if made.op is not tensor.windows:
        return None
    attrs, shape = made.attrs, cx.shape(made.type)
    axes, sizes = attrs["axes"], cx.sizes(attrs["sizes"])
    over = node.attrs["axes"] if "axes" in node.attrs else (node.attrs["axis"],)
    places = {*range(axes[0], axes[0] + len(axes))}
    if {*over} != places or are_few(sizes) or 0 in shape or x is not cx.value(made):
        return None
    y = cx.value(made.inputs[0])
    if function is lax.add:
        start = start.astype(floats.adding(start.dtype, math.prod(sizes)))
    y = y.astype(start.dtype)
    each = zip(axes, sizes, attrs["strides"], attrs["dilations"], strict=True)
    for axis, *numbers in each:
        size, stride, dilation = (ones_but(y.ndim, axis, number) for number in numbers)
        y = lax.reduce_window(y, start, function, size, stride, "VALID", None, dilation)
    return y
