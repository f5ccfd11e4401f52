"""How JAX arranges the elements of arrays: in other shapes and orders, in parts, and together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import jax.numpy as jnp
from jax import lax

from graphcore.ir import Node
from graphcore.ops import tensor

from . import complexes
from .entries import Emission, Value, entry

Ints: TypeAlias = "Sequence[int]"

SMALL = 64
"""An array of up to so many elements is made again where a part of it is overwritten."""


@entry(tensor.expand)
def expand(cx: Emission, node: Node, x: Value) -> Value:
    """`x` along the axes that are not new; XLA makes no copy."""
    new, rank = node.attrs["axes"], node.type.ndim
    old = [axis for axis in range(rank) if axis not in new]
    return lax.broadcast_in_dim(x, cx.shape(node.type), old)


@entry(tensor.reshape, tensor.pack)
def reshape(cx: Emission, node: Node, x: Value) -> Value:
    """The same values, row-major."""
    return lax.reshape(x, cx.shape(node.type))


@entry(tensor.transpose)
def transpose(cx: Emission, node: Node, x: Value) -> Value:
    """Axes in another order."""
    return lax.transpose(x, node.attrs["perm"])


@entry(tensor.concat)
def concat(cx: Emission, node: Node, *xs: Value) -> Value:
    """Arrays one after the other."""
    return lax.concatenate(xs, node.attrs["axis"])


@entry(tensor.slice_)
def slice_(cx: Emission, node: Node, x: Value) -> Value:
    """The places start, start + step, ... of each axis."""
    starts = cx.sizes(node.attrs["starts"])
    return ranges_of(x, starts, cx.shape(node.type), node.attrs["steps"])


def ranges_of(x: Value, starts: Ints, sizes: Ints, steps: Ints) -> Value:
    """A slice, from which axes with negative steps are turned around."""
    if 0 in sizes:
        return jnp.zeros(sizes, x.dtype)
    lasts = [start + (n - 1) * step for start, n, step in zip(starts, sizes, steps, strict=True)]
    firsts = [*map(min, starts, lasts)]
    ends = [max(pair) + 1 for pair in zip(starts, lasts, strict=True)]
    part = lax.slice(x, firsts, ends, [*map(abs, steps)])
    return lax.rev(part, turned(steps))


def turned(steps: Ints) -> list[int]:
    """The axes that are walked from their end."""
    return [axis for axis, step in enumerate(steps) if step < 0]


@entry(tensor.embed)
def embed(cx: Emission, node: Node, x: Value) -> Value:
    """Zeros with `x` at ranges."""
    starts = cx.sizes(node.attrs["starts"])
    return within_zeros(x, cx.shape(node.type), starts, node.attrs["steps"])


def within_zeros(x: Value, shape: Ints, starts: Ints, steps: Ints) -> Value:
    """Zeros of `shape` with `x` at ranges: a pad, which XLA fuses with what is done next."""
    if not x.size:
        return jnp.zeros(shape, x.dtype)
    x, padding = lax.rev(x, turned(steps)), []
    for start, step, size, whole in zip(starts, steps, x.shape, shape, strict=True):
        first, reach = min(start, start + (size - 1) * step), (size - 1) * abs(step)
        padding.append((first, whole - first - reach - 1, abs(step) - 1))
    return lax.pad(x, jnp.zeros((), x.dtype), padding)


@entry(tensor.overwrite)
def overwrite(cx: Emission, node: Node, x: Value, part: Value) -> Value:
    """`x` with `part` at ranges.

    An update in place, where ranges have no gaps and there is one device. On a mesh it would gather
    the axis that is updated; a pad and a choice ask neighbours alone. They join the loops over
    elements before and after as well, which is worth more than a small array.
    """
    starts, steps = cx.sizes(node.attrs["starts"]), node.attrs["steps"]
    if not part.size:
        return x
    if part.shape == x.shape:
        return lax.rev(part, turned(steps))
    if not cx.meshed and x.size > SMALL and all(step == 1 for step in steps):
        return lax.dynamic_update_slice(x, part, starts)
    there = within_zeros(jnp.ones(part.shape, bool), x.shape, starts, steps)
    return jnp.where(there, within_zeros(part, x.shape, starts, steps), x)


@entry(tensor.where_greater)
def where_greater(cx: Emission, node: Node, value: Value, x: Value, y: Value) -> Value:
    """`value` where x > y, half of it where they are tied, 0 elsewhere."""
    half = value * jnp.asarray(0.5, value.dtype)
    zero = jnp.zeros((), value.dtype)
    greater = complexes.ordered("greater")(x, y) if x.dtype.kind == "c" else x > y
    return jnp.where(greater, value, jnp.where(x == y, half, zero))


@entry(tensor.multiply_no_nan)
def multiply_no_nan(cx: Emission, node: Node, x: Value, factor: Value) -> Value:
    """`x` where that is 0, also where the factor is infinite or nan."""
    x, factor = x.astype(node.type.dtype), factor.astype(node.type.dtype)
    return jnp.where((x == 0) & ~jnp.isfinite(factor), x, x * factor)
