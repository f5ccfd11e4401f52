"""How JAX reads and writes at positions.

Positions outside of their axis are noted, and those that XLA gets are clipped: it need not check.
An axis of the positions along which one of them just counts (the iotas that stand for batch dims)
is a batch axis for XLA: on a mesh each device reads and writes its own part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.analysis.values import are_distinct, counts_along
from graphcore.ir import Node
from graphcore.ops import tensor

from . import floats
from .entries import TABLE, Emission, Entry, Value, entry

IN_BOUNDS = lax.GatherScatterMode.PROMISE_IN_BOUNDS
DROP = lax.GatherScatterMode.FILL_OR_DROP


class Places(NamedTuple):
    """Positions as XLA takes them: an axis at the end has one for each axis in `picked`.

    The axes `walked` of the indexed array go along with the axes `beside` of the positions.
    """

    at: Value
    picked: tuple[int, ...]
    walked: tuple[int, ...]
    beside: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of axes of each position."""
        return int(self.at.ndim) - 1

    @property
    def meeting(self) -> int:
        """How many positions may be one place."""
        return math.prod(n for i, n in enumerate(self.at.shape[:-1]) if i not in self.beside)

    def gather(self, x: Value) -> Value:
        """The values of `x` there: the axes of the positions, then its other axes."""
        indexed = {*self.picked, *self.walked}
        numbers = lax.GatherDimensionNumbers(
            offset_dims=tuple(range(self.rank, self.rank + x.ndim - len(indexed))),
            collapsed_slice_dims=tuple(sorted(self.picked)),
            start_index_map=self.picked,
            operand_batching_dims=self.walked,
            start_indices_batching_dims=self.beside,
        )
        sizes = [1 if axis in indexed else size for axis, size in enumerate(x.shape)]
        return lax.gather(x, self.at, numbers, sizes, mode=IN_BOUNDS)

    def scatter(
        self, function: Callable[..., Value], x: Value, updates: Value, mode: Any = IN_BOUNDS
    ) -> Value:
        """`x` with `updates` brought there by a scatter of lax."""
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(range(self.rank, updates.ndim)),
            inserted_window_dims=tuple(sorted(self.picked)),
            scatter_dims_to_operand_dims=self.picked,
            operand_batching_dims=self.walked,
            scatter_indices_batching_dims=self.beside,
        )
        return function(x, self.at, updates, numbers, mode=mode)

    def read_one(self, x: Value) -> Value:
        """The values of `x` at a single position, as a slice: XLA reads nothing else."""
        sizes = [1 if axis in self.picked else size for axis, size in enumerate(x.shape)]
        part = lax.dynamic_slice(x, self.starts(x), sizes, allow_negative_indices=False)
        return lax.squeeze(part, self.picked)

    def write_one(self, x: Value, updates: Value) -> Value:
        """`x` with `updates` at a single position, in place."""
        part = lax.expand_dims(updates, self.picked)
        return lax.dynamic_update_slice(x, part, self.starts(x), allow_negative_indices=False)

    def starts(self, x: Value) -> list[Value]:
        """Where a single position begins along each axis."""
        known = {axis: self.at[number] for number, axis in enumerate(self.picked)}
        return [known.get(axis, jnp.zeros((), self.at.dtype)) for axis in range(x.ndim)]

    def of_indexed(self) -> Places:
        """The same in an array that has the indexed axes alone."""
        order = sorted((*self.picked, *self.walked))
        picked, walked = (
            tuple([order.index(axis) for axis in some]) for some in (self.picked, self.walked)
        )
        return self._replace(picked=picked, walked=walked)


def places(cx: Emission, node: Node, sizes: Sequence[int], indices: Sequence[Value]) -> Places:
    """The positions of a node in an array of these sizes; its failures are noted."""
    axes = node.attrs["axes"]
    nodes = node.inputs[-len(axes) :]
    walks: dict[int, int] = {}
    picked = []
    for number, (axis, index, at) in enumerate(zip(axes, nodes, indices, strict=True)):
        along = counts_along(index)
        if along is None or along in walks.values() or at.shape[along] != sizes[axis]:
            picked.append(number)
        else:
            walks[axis] = along
    if not picked:  # XLA wants one at least
        picked = [len(axes) - 1]
        del walks[axes[-1]]
    found = []
    for number in picked:
        axis, at = axes[number], indices[number]
        cx.fail_outside(node, axis, at, sizes[axis])
        found.append(inside(at, sizes[axis]))
    walked = tuple(sorted(walks))
    return Places(
        jnp.stack(found, -1),
        tuple([axes[number] for number in picked]),
        walked,
        tuple([walks[axis] for axis in walked]),
    )


def inside(at: Value, size: int) -> Value:
    """Positions counted from the start, as if the axis went on with its first and last place."""
    last = max(size - 1, 0)
    narrow = jnp.int32 if size < 2**31 else jnp.int64
    if at.dtype.kind == "u":  # huge ones have no sign to lose
        return jnp.minimum(at.astype(jnp.uint64), np.uint64(last)).astype(narrow)
    at = at.astype(jnp.int64)
    return jnp.clip(jnp.where(at < 0, at + size, at), 0, last).astype(narrow)


@entry(tensor.gather)
def gather(cx: Emission, node: Node, x: Value, *indices: Value) -> Value:
    """Values at positions."""
    at, shape = places(cx, node, x.shape, indices), cx.shape(node.type)
    if not x.size or 0 in shape:
        return jnp.zeros(shape, x.dtype)
    return at.gather(x) if at.rank or cx.meshed else at.read_one(x)


Change = Callable[[Places, Value, Value], Value]
"""An array with updates brought to places."""


def receiving(change: Change, start: int | None = None) -> Entry:
    """Updates of the first operand, or of an array that has `start` everywhere."""

    def run(cx: Emission, node: Node, *operands: Value) -> Value:
        if start is not None:
            operands = (jnp.full(cx.shape(node.type), start, operands[0].dtype), *operands)
        x, updates, *indices = operands
        at = places(cx, node, x.shape, indices)
        return change(at, x, updates) if x.size and updates.size else x

    return run


def add(at: Places, x: Value, updates: Value) -> Value:
    """Sums of bools are `or`.

    XLA adds one update after the other. Where so many may meet that their rounding would count,
    they are added in a longer dtype.
    """
    if x.dtype.kind == "b":
        return highest(at, x, updates)
    wide = floats.adding(x.dtype, at.meeting)
    return at.scatter(lax.scatter_add, x.astype(wide), updates.astype(wide)).astype(x.dtype)


def multiply(at: Places, x: Value, updates: Value) -> Value:
    """Products of bools are `and`."""
    if x.dtype.kind == "b":
        return lowest(at, x, updates)
    return at.scatter(lax.scatter_mul, x, updates)


def highest(at: Places, x: Value, updates: Value) -> Value:
    """The largest of all; nan if any is."""
    if x.dtype.kind == "b":
        found = at.scatter(lax.scatter_max, x.astype(jnp.int8), updates.astype(jnp.int8))
        return found != 0
    found = at.scatter(lax.scatter_max, x, updates)
    if x.dtype.kind == "c":  # lax compares the parts, which tells nothing where one is nan
        found = jnp.where(highest(at, jnp.isnan(x), jnp.isnan(updates)), np.nan, found)
    return found


def lowest(at: Places, x: Value, updates: Value) -> Value:
    """The smallest of all; nan if any is."""
    if x.dtype.kind == "b":
        return ~highest(at, ~x, ~updates)
    if x.dtype.kind == "c":
        return -highest(at, -x, -updates)
    return at.scatter(lax.scatter_min, x, updates)


def put_last(at: Places, x: Value, updates: Value) -> Value:
    """Of several updates of a place the last, in whatever order a device takes them.

    The highest number of all updates of a place is found first; the others are dropped.
    """
    shape, own = at.at.shape[:-1], at.of_indexed()
    numbers = lax.iota(jnp.int64, math.prod(shape)).reshape(shape)
    none = jnp.full([x.shape[axis] for axis in sorted((*at.picked, *at.walked))], -1, jnp.int64)
    latest = own.scatter(lax.scatter_max, none, numbers)
    wins = own.gather(latest) == numbers
    beyond = np.array([x.shape[axis] for axis in at.picked], at.at.dtype)
    kept = at._replace(at=jnp.where(wins[..., None], at.at, beyond))
    return kept.scatter(lax.scatter, x, updates, DROP)


def put_distinct(at: Places, x: Value, updates: Value) -> Value:
    """Each place has one update at most."""
    return at.scatter(lax.scatter, x, updates)


def put_one(at: Places, x: Value, updates: Value) -> Value:
    """There is one place."""
    return at.write_one(x, updates)


@entry(tensor.put)
def put(cx: Emission, node: Node, *operands: Value) -> Value:
    """Updates in place of what is there."""
    positions = node.inputs[2:]
    single = math.prod(cx.shape(positions[0].type)) <= 1
    change = put_distinct if single or are_distinct(positions) else put_last
    if not cx.meshed and all(at.type.ndim == 0 for at in positions):
        change = put_one
    return receiving(change)(cx, node, *operands)


TABLE[tensor.scatter] = receiving(add, 0)
TABLE[tensor.scatter_prod] = receiving(multiply, 1)
TABLE[tensor.scatter_add] = receiving(add)
TABLE[tensor.scatter_max] = receiving(highest)
TABLE[tensor.scatter_min] = receiving(lowest)
