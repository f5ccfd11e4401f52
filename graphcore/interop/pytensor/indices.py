"""Rules of indices: NumPy's, by position, as indexers by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import graphcore as gc
from graphcore.frontend.core.base import Tensor
from graphcore.ir.sizes import Expression, Size, same, upper_bound

from .rules import Apply, lifted, rule
from .values import (
    Type,
    Value,
    axes,
    axis,
    full,
    is_known,
    is_natural,
    is_sizes,
    known,
    lift,
    moved,
    new_names,
    number,
    renamed,
)


class Indexed(NamedTuple):
    """NumPy's indices by name: the indexer of each dim, and the dims of what they pick, in order.

    `mask` is the one index, if that is a mask of all axes which only the call gives.
    """

    by: dict[str, Any]
    dims: list[str]
    mask: Tensor | None


def entries(op: Any, flat: Sequence[Any]) -> list[Any]:
    """The indices of a node, in order: slices of numbers, or operands."""

    def given(k: Any) -> Any:
        return flat[k] if isinstance(k, int) else k

    found: list[Any] = []
    for entry in op.idx_list:
        if isinstance(entry, slice):
            found.append(slice(*[None if k is None else given(k)[0] for k in bounds_of(entry)]))
        else:
            found.append(given(entry))
    return found


def bounds_of(x: slice) -> tuple[Any, Any, Any]:
    """The start, stop and step of a slice."""
    return x.start, x.stop, x.step


def indexed(node: Apply, x: Tensor, type: Type, operands: Sequence[Value]) -> Indexed:
    """The indices of a node for `x`, of this type."""
    inputs = node.inputs[len(node.inputs) - len(operands) :]
    found = entries(node.op, [*zip(operands, inputs)])
    pairs = [arrays for pair in found for arrays in positions_of_mask(pair)]
    wide = max(
        [
            v.type.ndim
            for k, v in (p for p in pairs if isinstance(p, tuple))
            if hasattr(v.type, "ndim")
        ],
        default=0,
    )
    picked = new_names([f"at {i}" for i in range(wide)], x, *operands)
    by: dict[str, Any] = {}
    order: list[str | None] = []
    for i, pair in enumerate(pairs):
        dim = axis(i)
        if isinstance(pair, slice):
            part = slice_of(x, dim, pair)
            order.append(dim)
            if part != slice(None):
                by[dim] = part
        else:
            order.append(None)
            by[dim] = position(pair[0], pair[1], picked)
    order += axes(type.ndim - len(pairs), len(pairs))
    mask = None
    if len(pairs) == type.ndim and all(isinstance(p, tuple) for p in pairs):
        mask = same_mask(operands, inputs, type)
    return Indexed(by, in_numpys_order(order, picked), mask)


def same_mask(operands: Sequence[Value], inputs: Sequence[Any], type: Type) -> Tensor | None:
    """The mask that is the one index, known only at the call."""
    if len(operands) != 1 or not isinstance(operands[0], Tensor):
        return None
    whole = operands[0].dtype == bool and inputs[0].type.ndim == type.ndim
    return full(operands[0], inputs[0].type) if whole else None


def positions_of_mask(pair: Any) -> list[Any]:
    """An index; in place of a mask the positions where it holds, for each of its axes."""
    if not isinstance(pair, tuple) or getattr(pair[1].type, "dtype", "") != "bool":
        return [pair]
    mask, v = pair
    if is_known(mask):
        return [(at, Typed(Vector(at.shape))) for at in np.nonzero(mask)]
    found = gc.nonzero(full(mask, v.type), name="found")
    dims = axes(v.type.ndim)
    return [(renamed(found[dim], {"found": axis(0)}), Typed(Vector())) for dim in dims]


class Vector(NamedTuple):
    """The type of positions that a mask gives."""

    shape: tuple[int | None, ...] = (None,)
    ndim: int = 1
    dtype: str = "int64"


class Typed(NamedTuple):
    """What has a type, as a variable of PyTensor."""

    type: Vector


INTEGER = Vector((), 0)


def position(k: Value, v: Any, picked: Sequence[str]) -> Any:
    """An index of one axis: an integer, or positions along the dims that pick."""
    n = getattr(v.type, "ndim", 0)
    names = picked[len(picked) - n :]
    if n == 0:
        at = number(k, "a position") if is_known(k) else k
        counted = not isinstance(at, Expression) or is_natural(at)
        return at if counted else lift(k, INTEGER)  # negative for some sizes: from the end
    if not is_known(k) or is_sizes(k):
        return renamed(lift(k, v.type), {axis(j): name for j, name in enumerate(names)})
    kept = [j for j in range(n) if v.type.shape[j] != 1]
    values = k.reshape([k.shape[j] for j in kept])
    return (tuple(names[j] for j in kept), values) if kept else int(values)


def in_numpys_order(order: Sequence[str | None], picked: Sequence[str]) -> list[str]:
    """The dims of a result, where None stands for an axis that positions pick from.

    What they pick stands in place of the first of them if they stand side by side, else in front.
    """
    places = [i for i, dim in enumerate(order) if dim is None]
    rest = [dim for dim in order if dim is not None]
    if not places or not picked:
        return rest
    together = places[-1] - places[0] == len(places) - 1
    before = places[0] if together else 0
    return [*rest[:before], *picked, *rest[before:]]


def slice_of(x: Tensor, dim: str, given: slice) -> slice:
    """A slice of numbers and sizes; ends count from the end of `x` where they are negative."""
    size: Size = x.sizes[dim] if dim in x.dims else 1
    start, stop, step = bounds_of(given)
    by = 1 if step is None else number(step, "the step of a slice")
    back = isinstance(by, int) and by < 0
    return slice(end(start, size, back), end(stop, size, back), None if by == 1 else by)


def end(x: Value, size: Size, back: bool) -> Size | None:
    """An end of a slice; one that only the call gives counts from the start."""
    if x is None:
        return None
    if is_known(x):
        at = number(x, "an end of a slice")
        if not isinstance(at, Expression) or is_natural(at) or at is size - 1:
            return at  # size - 1 is negative where there is nothing to select
        if (highest := upper_bound(at)) is not None and highest < 0:
            from_start: Size = size + at
            return from_start
    wanted, least = gc.astype(lift(x, INTEGER), "int64"), -1 if back else 0
    counted = gc.maximum(gc.where(wanted < 0, wanted + size, wanted), least)
    found: Size = number(counted - least, "an end of a slice") + least
    return found


def picked_region(node: Apply, x: Value, operands: Sequence[Value]) -> tuple[Tensor, Indexed]:
    """A tensor with a dim for each axis that is indexed, and the indices."""
    type = node.inputs[0].type
    made = lift(x, type)
    found = indexed(node, made, type, operands)
    return full(made, type, [int(dim[1:]) for dim in found.by]), found


@rule("MakeSlice")
def made_slice(node: Apply, *ends: Value) -> Any:
    """A slice of numbers, sizes, or tensors."""
    return slice(*ends)


@rule("Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1", "ScalarSubtensor")
def subtensor(node: Apply, x: Value, *operands: Value) -> Value:
    """`x[indices]`."""
    if is_sizes(x) and all(k is None or is_known(k) for k in operands):
        flat = [(None if k is None else np.asarray(k).astype(int)[()], None) for k in operands]
        key = [k if isinstance(k, slice) else k[0] for k in entries(node.op, flat)]
        return known(np.asarray(x[tuple(key)], object))
    made, found = picked_region(node, x, operands)
    return moved(made.isel(found.by) if found.by else made, found.dims)


@rule("IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1")
def updated(node: Apply, x: Value, y: Value, *operands: Value) -> Value:
    """`x` with `y` set or added at indices."""
    made, found = picked_region(node, x, operands)
    made = full(made, node.inputs[0].type)
    type = node.inputs[1].type
    shift = len(found.dims) - type.ndim
    names = {axis(i): found.dims[shift + i] for i in range(type.ndim)}
    new = renamed(gc.astype(lift(y, type), made.dtype), names)
    made = with_batch(made, [new, *found.by.values()], found.dims)
    key: Any = found.by
    if found.mask is not None and found.dims[0] not in new.dims:
        key = found.mask
    elif not key:
        key = {dim: slice(None) for dim in made.dims[:1]}
        if not key:
            return new if node.op.set_instead_of_inc else made + new
    region = made.at[key]
    new = stretched(new, region.get()) if key is found.by else new
    if node.op.set_instead_of_inc:
        return region.set(new)
    if getattr(node.op, "ignore_duplicates", False):
        return region.set(region.get() + new)
    return region.add(new)


def with_batch(x: Tensor, others: Sequence[Any], picked: Sequence[str]) -> Tensor:
    """`x` repeated along the batch dims that only the values to be stored have."""
    extra = {
        dim: size
        for other in others
        if isinstance(other, Tensor)
        for dim, size in other.sizes.items()
        if dim not in x.dims and dim not in picked
    }
    return gc.full(extra, x) if extra else x


def stretched(y: Tensor, like: Tensor) -> Tensor:
    """`y` without the dims of size 1 in which a region is longer, as NumPy broadcasts."""
    ones = [d for d, n in y.sizes.items() if same(n, 1) and same(like.sizes[d], 1) is not True]
    return y.isel(dict.fromkeys(ones, 0)) if ones else y


@rule("PermuteRowElements")
def permuted(node: Apply, x: Value, order: Value) -> Value:
    """The elements of each row in another order, or back from it."""
    last = node.inputs[0].type.ndim - 1
    row = full(x, node.inputs[0].type, [last])
    places = full(order, node.inputs[1].type, [last])
    if node.op.inverse:
        places = gc.argsort(places, axis(last))
    return gc.take_along(row, places, axis(last))


@rule("FillDiagonal")
@lifted
def fill_diagonal(node: Apply, x: Tensor, value: Tensor) -> Value:
    """`x` with a value on its main diagonal."""
    made, n = full(x, node.inputs[0].type), node.inputs[0].type.ndim
    rows = [gc.arange(made.sizes[dim], dim=dim) for dim in axes(n)]
    on = gc.equal(rows[0], rows[1])
    for row in rows[2:]:
        on = gc.logical_and(on, gc.equal(rows[0], row))
    return gc.where(on, gc.astype(value, made.dtype), made)


@rule("FillDiagonalOffset")
@lifted
def fill_offset(node: Apply, x: Tensor, value: Tensor, offset: Tensor) -> Value:
    """`x` with a value on a diagonal."""
    made = full(x, node.inputs[0].type)
    row, col = (gc.arange(made.sizes[dim], dim=dim) for dim in axes(2))
    return gc.where(gc.equal(col - row, offset), gc.astype(value, made.dtype), made)
