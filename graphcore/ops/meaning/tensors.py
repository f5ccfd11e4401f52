"""What ops on tensors mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.special

from graphcore.ir import Array, Op
from graphcore.ir.literal import Literal as Number
from graphcore.ops import outside, tensor

Ints: TypeAlias = tuple[int, ...]


def expand(x: Array, axes: Ints, sizes: Ints) -> Array:
    """A view."""
    wide = np.expand_dims(x, axes)
    new = dict(zip(axes, sizes, strict=True))
    return np.broadcast_to(wide, [new.get(axis, size) for axis, size in enumerate(wide.shape)])


def ranges(starts: Ints, sizes: Ints, steps: Ints) -> tuple[Array, ...]:
    """The positions of a range on every axis, as an open mesh."""
    parts = zip(starts, sizes, steps, strict=True)
    return np.ix_(*[start + step * np.arange(size) for start, size, step in parts])


def overwrite(x: Array, part: Array, starts: Ints, steps: Ints) -> Array:
    found = x.copy()
    found[ranges(starts, part.shape, steps)] = part
    return found


def windows(x: Array, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Array:
    """One axis after the other: the starts of windows, and the places from there."""
    first = axes[0]
    for i, (axis, size, stride, dilation) in enumerate(
        zip(axes, sizes, strides, dilations, strict=True)
    ):
        starts = np.arange(0, max(x.shape[axis + i] - (size - 1) * dilation, 0), stride)
        places = dilation * np.arange(size)[:, None] + starts
        seen = np.take(x, places, axis + i)  # the axis of places, then that of windows
        x = np.moveaxis(seen, axis + i, first + i)
    return x


def overlap_add(x: Array, axes: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> Array:
    """Windows added up where `windows` takes them from."""
    first, wide = axes[0], len(axes)
    shape = [*x.shape[:first], *x.shape[first + wide :]]
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    total = np.zeros(shape, x.dtype)
    places = np.arange(total.size).reshape(shape)
    seen = windows(places, axes, x.shape[first : first + wide], strides, dilations)
    np.add.at(total.reshape(-1), seen, x)
    return total


def extreme(reduce: Callable[..., Any], sign: int) -> Callable[..., Array]:
    """The lowest or highest of the dtype, where there is nothing to choose from."""

    def run(x: Array, axes: Ints, initial: Number | None = None) -> Array:
        start: Any = sign * np.inf
        if x.dtype.kind in "iu":
            start = np.iinfo(x.dtype).max if sign > 0 else np.iinfo(x.dtype).min
        elif x.dtype.kind in "bc":
            start = sign > 0 if x.dtype.kind == "b" else complex(start, start)
        start = start if initial is None else initial.array
        return np.asarray(reduce(x, axis=axes, initial=start))

    return run


def norm(x: Array, axes: Ints) -> Array:
    """Squares stay within the range, as all values are multiplied by a power of 2 first."""
    _, exponent = np.frexp(np.max(np.abs(x), axis=axes, keepdims=True, initial=0))
    total = np.sum(np.square(np.ldexp(x, -exponent)), axis=axes)
    return np.asarray(np.ldexp(np.sqrt(total), exponent.reshape(total.shape)))


def argsort(x: Array, axis: int, size: int, descending: bool) -> Array:
    """The reverse of the order of the reverse leaves ties as they are."""
    if descending:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)
    else:
        order = np.argsort(x, axis, "stable")
    return np.asarray(order.take(range(size), axis))


def searchsorted(x: Array, values: Array, side: Literal["left", "right"]) -> Array:
    found = np.empty(values.shape, np.int64)
    for row in np.ndindex(x.shape[:-1]):
        found[row] = np.searchsorted(x[row], values[row], side)
    return found


def logsumexp(x: Array, axes: Ints) -> Array:
    if not x.size:
        return np.asarray(np.sum(x, axis=axes) - x.dtype.type(np.inf))
    return np.asarray(scipy.special.logsumexp(x, axis=axes) if axes else x)


def softmax(x: Array, axes: Ints) -> Array:
    if not x.size:
        return x
    lost = np.all(x == -np.inf, axis=axes, keepdims=True)
    return np.asarray(np.where(lost, 0, scipy.special.softmax(x, axis=axes)), x.dtype)


def log_softmax(x: Array, axes: Ints) -> Array:
    return np.asarray(scipy.special.log_softmax(x, axis=axes) if x.size else x)


def fft(x: Array, axis: int, inverse: bool) -> Array:
    if not x.shape[axis]:
        return x
    return np.fft.ifft(x, axis=axis, norm="forward") if inverse else np.fft.fft(x, axis=axis)


def rfft(x: Array, axis: int) -> Array:
    return fft(x, axis, False).take(range(x.shape[axis] // 2 + 1), axis)


def irfft(x: Array, axis: int, size: int) -> Array:
    if not size:
        return x.real.take((), axis)
    return np.fft.irfft(x, size, axis, "forward")


def recurrence(a: Array, b: Array, axis: int) -> Array:
    """h[t] = a[t] h[t-1] + b[t], where a factor of 0 drops even an infinity."""
    a, h = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0).copy()
    for t in range(1, len(h)):
        h[t] += np.where(a[t] == 0, 0, a[t] * h[t - 1])
    return np.moveaxis(h, 0, axis)


def gather(x: Array, *indices: Array, axes: Ints) -> Array:
    return np.moveaxis(x, axes, range(len(axes)))[indices]


def updated(change: Callable[[Array, Array, Array], Any]) -> Callable[..., Array]:
    """`change(values, places, updates)` in one row: updates come one after the other, row-major."""

    def run(x: Array, updates: Array, *indices: Array, axes: Ints) -> Array:
        found = x.copy(order="C")
        places = gather(np.arange(x.size).reshape(x.shape), *indices, axes=axes)
        change(found.reshape(-1), places.reshape(-1), updates.reshape(-1))
        return found

    return run


def scattered(start: int, ufunc: np.ufunc) -> Callable[..., Array]:
    """Updates of an array that has one value everywhere."""

    def run(updates: Array, *indices: Array, axes: Ints, shape: Ints) -> Array:
        return updated(ufunc.at)(np.full(shape, start, updates.dtype), updates, *indices, axes=axes)

    return run


def callback(
    *xs: Array,
    function: outside.Function,
    batch: tuple[str, ...],
    made: tuple[tuple[str, ...], ...],
    sizes: Ints,
    dtypes: tuple[np.dtype[Any], ...],
    masked: bool,
) -> tuple[Array, ...]:
    """A user's function of each element of the batch, where a mask holds if there is one."""
    lead = xs[0].shape[: len(batch)] if xs else ()
    shapes = zip(outside.regroup(sizes, made), dtypes, strict=True)
    found = tuple(np.zeros((*lead, *shape), dtype) for shape, dtype in shapes)
    *operands, mask = xs if masked else (*xs, np.ones(lead, bool))
    for at in np.ndindex(lead):
        if mask[at]:
            parts = function.parts(function([x[at].copy() for x in operands]))
            for y, (_, value) in zip(found, parts, strict=True):
                y[at] = value
    return found


TENSORS: dict[Op, Callable[..., Any]] = {
    tensor.print_: lambda x, **_: x,
    outside.callback_: callback,
    tensor.expand: expand,
    **dict.fromkeys((tensor.reshape, tensor.pack), lambda x, shape: x.reshape(shape)),
    tensor.transpose: lambda x, perm: x.transpose(perm),
    tensor.slice_: lambda x, starts, sizes, steps: x[ranges(starts, sizes, steps)],
    tensor.embed: lambda x, shape, starts, steps: overwrite(
        np.zeros(shape, x.dtype), x, starts, steps
    ),
    tensor.overwrite: overwrite,
    tensor.windows: windows,
    tensor.overlap_add: overlap_add,
    tensor.concat: lambda *xs, axis: np.concatenate(xs, axis),
    tensor.sum_: lambda x, axes: np.sum(x, axes),
    tensor.prod: np.prod,
    tensor.max_: extreme(np.max, -1),
    tensor.min_: extreme(np.min, 1),
    tensor.where_greater: lambda value, x, y: np.where(
        x > y, value, np.where(x == y, value / 2, 0)
    ),
    tensor.multiply_no_nan: lambda x, factor: np.where(
        (x == 0) & ~np.isfinite(factor), x, x * factor
    ),
    tensor.norm: norm,
    tensor.any_: lambda x, axes: np.any(x, axes),
    tensor.all_: lambda x, axes: np.all(x, axes),
    tensor.argmax: np.argmax,
    tensor.argmin: np.argmin,
    tensor.sort: np.sort,
    tensor.argsort: argsort,
    tensor.searchsorted: searchsorted,
    tensor.logsumexp: logsumexp,
    tensor.softmax: softmax,
    tensor.log_softmax: log_softmax,
    tensor.fft: fft,
    tensor.rfft: rfft,
    tensor.irfft: irfft,
    tensor.cumsum: np.cumsum,
    tensor.cumprod: np.cumprod,
    tensor.cummax: np.maximum.accumulate,
    tensor.cummin: np.minimum.accumulate,
    tensor.logcumsumexp: np.logaddexp.accumulate,
    tensor.recurrence: recurrence,
    tensor.einsum: lambda *xs, operands, result: np.einsum(
        *[term for pair in zip(xs, operands, strict=True) for term in pair], result
    ),
    tensor.matmul: np.matmul,
    tensor.matvec: lambda x, y: np.matmul(x, y[..., None])[..., 0],
    tensor.vecdot: lambda x, y: np.sum(x * y, axis=-1, dtype=np.result_type(x, y)),
    tensor.gather: gather,
    tensor.scatter: scattered(0, np.add),
    tensor.scatter_prod: scattered(1, np.multiply),
    tensor.put: updated(np.ndarray.__setitem__),
    tensor.scatter_add: updated(np.add.at),
    tensor.scatter_max: updated(np.maximum.at),
    tensor.scatter_min: updated(np.minimum.at),
}
"""The function of each op."""
