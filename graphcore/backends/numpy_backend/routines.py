"""Operations for which NumPy has no single call; each writes into `out` where it is given one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from graphcore.backends.failing import SizeError
from graphcore.backends.rounding import GROUP

from .sums import SHORT, add_groups, sum_in_blocks

Array = npt.NDArray[Any]
Axes = tuple[int, ...]
WHOLE = slice(None)


def span(start: int, size: int, step: int) -> slice:
    """The slice of `size` positions: start, start + step, and so on."""
    if size == 0:
        return slice(0, 0)
    stop = start + size * step
    return slice(start, stop if stop >= 0 else None, step)


def found_size(value: int) -> int:
    """A computed value as a size."""
    if value < 0:
        raise SizeError(f"a computed size is {value}, but sizes are 0 or more")
    return value


def require_size(holds: bool, left: int, right: int, needs: str) -> None:
    """Refuse two sizes, found while the program runs, that an op needs in a relation."""
    if not holds:
        raise SizeError(f"{needs}, but they are {left} and {right}")


def as_array(function: Callable[..., Any], *operands: Any, **attrs: Any) -> Array:
    """What a function of another package returns, as an array."""
    return np.asarray(function(*operands, **attrs))


def pack(x: Array, out: Array) -> Array:
    """`x` in the memory of `out`, row-major."""
    np.copyto(out.reshape(x.shape), x)
    return out


def embed(x: Array, index: tuple[slice, ...], out: Array) -> Array:
    """Zeros with `x` at `index`; along axes of step 1 zeros are written only outside of `x`."""
    rest = out
    for axis, places in enumerate(index):
        if places.step not in (None, 1):
            rest.fill(0)
            break
        if places != WHOLE:
            along = (WHOLE,) * axis
            rest[(*along, slice(places.start))] = 0
            rest[(*along, slice(places.stop, None))] = 0
            rest = rest[(*along, places)]
    out[index] = x
    return out


def windows(
    x: Array, sizes: Axes, axes: Axes, strides: Axes, dilations: Axes, writeable: bool = False
) -> Array:
    """The view of the windows along `axes`; their own axes come before the first of these.

    As many as fit are counted here, so that no memory outside `x` is ever read.
    """
    shape, steps = list(x.shape), list(x.strides)
    inner = [steps[axis] * dilation for axis, dilation in zip(axes, dilations, strict=True)]
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        shape[axis] = max((shape[axis] - (size - 1) * dilation - 1) // stride + 1, 0)
        steps[axis] *= stride
    first = axes[0]
    shape[first:first], steps[first:first] = sizes, inner
    return as_strided(x, shape, steps, writeable=writeable)


def overlap_add(x: Array, axes: Axes, strides: Axes, dilations: Axes, out: Array) -> Array:
    """Windows added up where `windows` takes them from.

    Along axes where windows overlap, one element of all windows is added at a time, or one whole
    window, whichever takes fewer steps.
    """
    first, wide = axes[0], len(axes)
    sizes = x.shape[first : first + wide]
    stepped = [
        min(first + i, wide + axis, key=x.shape.__getitem__)
        for i, axis in enumerate(axes)
        if strides[i] <= (sizes[i] - 1) * dilations[i]
    ]

    def add(places: list[Axes], total: Array) -> Array:
        """Few steps are added up one after the other, and their sums pairwise."""
        if len(places) > GROUP:
            half = len(places) // 2
            add(places[:half], total)
            return np.add(total, add(places[half:], np.empty_like(total)), total)
        total.fill(0)
        view = windows(total, sizes, axes, strides, dilations, writeable=True)
        index: list[Any] = [WHOLE] * x.ndim
        for place in places:
            for axis, at in zip(stepped, place, strict=True):
                index[axis] = at
            target = view[tuple(index)]
            np.add(target, x[tuple(index)], target)
        return total

    return add([*product(*[range(x.shape[axis]) for axis in stepped])], out)


def sort(x: Array, axis: int, out: Array) -> Array:
    """The values along `axis` in order."""
    np.copyto(out, x)
    out.sort(axis)
    return out


def argsort(x: Array, axis: int, size: int, descending: bool) -> Array:
    """Positions of the first `size` values in order, nan the largest; ties keep their order."""
    x = np.moveaxis(x, axis, -1)
    if descending:  # ties keep their order: the reverse of the order of the reverse
        found = x.shape[-1] - 1 - np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
    else:
        found = np.argsort(x, -1, kind="stable")
    return np.moveaxis(found[..., :size], -1, axis)


def searchsorted(x: Array, values: Array, side: Literal["left", "right"]) -> Array:
    """How many of each sorted row of `x` are below, or not above, its own `values`."""
    found = np.empty(values.shape, np.int64)
    for row in np.ndindex(x.shape[:-1]):
        found[row] = np.searchsorted(x[row], values[row], side)
    return found


def cast(x: Array, out: Array) -> Array:
    """`x` in the dtype of `out`."""
    if x.dtype.kind == "c" and out.dtype.kind not in "cb":
        x = x.real
    np.copyto(out, x, casting="unsafe")
    return out


def real(x: Array, out: Array) -> Array:
    """The real part."""
    np.copyto(out, x.real)
    return out


def imag(x: Array, out: Array) -> Array:
    """The imaginary part."""
    np.copyto(out, x.imag)
    return out


def either(condition: Array, x: Array, y: Array, out: Array) -> Array:
    """`x` where the condition holds, else `y`."""
    np.copyto(out, y)
    np.copyto(out, x, where=condition)
    return out


def where_greater(value: Array, x: Array, y: Array, out: Array) -> Array:
    """`value` where x > y, half of it where they are tied, 0 elsewhere."""
    half = np.multiply(value, 0.5, dtype=value.dtype)
    np.copyto(out, np.where(np.greater(x, y), value, np.where(np.equal(x, y), half, 0)))
    return out


def multiply_no_nan(x: Array, factor: Array, out: Array) -> Array:
    """`x` times `factor`, but `x` where that is 0, even if the factor is not finite there."""
    if (finite := np.isfinite(factor)).all():
        return np.multiply(x, factor, out)
    kept = np.logical_and(np.equal(x, 0), np.logical_not(finite))
    np.copyto(out, np.where(kept, x, np.multiply(x, factor)))  # `out` may be an operand
    return out


def norm(x: Array, axes: tuple[int, ...], out: Array) -> Array:
    """Square root of the sum of squares over `axes`; scaled where squares leave the range."""
    root_of_squares(x, axes, out)
    sound = (least_exact(x.dtype) < out) & (out < np.inf)
    if not sound.all():
        largest = np.max(np.abs(x), axes, keepdims=True, initial=0)
        _, exponent = np.frexp(largest)  # products with powers of 2 are exact
        found = root_of_squares(np.ldexp(x, -exponent), axes, np.empty_like(out))
        np.copyto(out, np.ldexp(found, exponent.reshape(out.shape)), where=~sound)
    return out


@cache
def least_exact(dtype: np.dtype[Any]) -> float:
    """The number above which the root of a sum of squares has lost nothing to underflow."""
    limits = np.finfo(dtype)
    return float(np.sqrt(limits.tiny / limits.eps))


def root_of_squares(x: Array, axes: tuple[int, ...], out: Array) -> Array:
    """Square root of the sum of squares over `axes`, without scaling."""
    sum_in_blocks(np.square(x), axes, out)
    return np.sqrt(out, out)


def overwrite(x: Array, part: Array, index: tuple[slice, ...], out: Array) -> Array:
    """`x` with `part` at `index`."""
    if x is not out:
        np.copyto(out, x)
    out[index] = part
    return out


def place(start: Array, view: Array, index: tuple[Array, ...], updates: Array, out: Array) -> Array:
    """`start` with `updates` at the positions `index` of a view of `out`, which all differ."""
    if start is not out:
        np.copyto(out, start)
    view[index] = updates
    return out


def combine(
    ufunc: np.ufunc,
    start: Array,
    view: Array,
    index: tuple[Array, ...],
    updates: Array,
    out: Array,
) -> Array:
    """As `place`, but `updates` are combined with the elements of `start`."""
    if start is not out:
        np.copyto(out, start)
    view[index] = ufunc(view[index], updates)
    return out


def put(start: Array, axes: Axes, index: tuple[Array, ...], updates: Array, out: Array) -> Array:
    """`start` with `updates` at positions `index` along `axes`; of several at one, the last.

    NumPy assigns in order only along one axis.
    """
    if start is not out:
        np.copyto(out, start)
    places = row_major(out.shape, axes, index)
    out.reshape(-1)[places.reshape(-1)] = flat(updates, places.shape)
    return out


def scatter(
    ufunc: np.ufunc, start: Array, axes: Axes, index: tuple[Array, ...], updates: Array, out: Array
) -> Array:
    """`start`, combined by `ufunc` with `updates` at positions `index` along `axes`."""
    if start is not out:
        np.copyto(out, start)
    if ufunc is np.add and out.dtype.kind in "fc":
        front = np.moveaxis(out, axes, range(len(axes)))
        sizes, rest = front.shape[: len(axes)], front.shape[len(axes) :]
        places = row_major(sizes, tuple(range(len(axes))), index)
        if places.size > SHORT and np.bincount(places.reshape(-1)).max() > SHORT:
            several = np.broadcast_to(updates, (*places.shape, *rest)).reshape(places.size, *rest)
            add_groups(several, places.reshape(-1), sizes, front)
            return out
    places = row_major(out.shape, axes, index)
    ufunc.at(out.reshape(-1), places.reshape(-1), flat(updates, places.shape))
    return out


def flat(x: Array, shape: tuple[int, ...]) -> Array:
    """`x`, which broadcasts to `shape`, in one row."""
    return (x if x.shape == shape else np.broadcast_to(x, shape)).reshape(-1)


def row_major(shape: tuple[int, ...], axes: Axes, index: tuple[Array, ...]) -> Array:
    """Positions `index` along `axes`, and all along the others, counted through the whole shape."""
    places: Array | None = None
    for axis, positions in zip(axes, index, strict=True):
        found = from_start(positions, shape[axis])
        if (stride := math.prod(shape[axis + 1 :])) != 1:
            found = found * stride
        places = found if places is None else places + found
    assert places is not None
    for axis, size in enumerate(shape):
        if axis not in axes:
            places = np.add.outer(places, np.arange(size) * math.prod(shape[axis + 1 :]))
    return places


def from_start(positions: Array, size: int) -> Array:
    """Positions counted from the start; an IndexError where one is outside.

    Unsigned ones count from the start alone, even those that would be negative if they were signed.
    """
    counted = positions.view(np.intp) if positions.itemsize == 8 else positions.astype(np.intp)
    # Negative ones are huge as unsigned: one pass finds out whether all is well.
    if counted.size and np.maximum.reduce(counted.view(np.uintp), None) >= size:
        if positions.dtype.kind == "i":
            counted = np.where(counted < 0, counted + size, counted)
        if counted.view(np.uintp).max() >= size:
            raise IndexError("a position is outside")
    return counted


def rows(x: Array, positions: Array) -> Array:
    """Some of the places on the first axis: taken, which is quicker than an index for short rows.

    `take` would first copy all of an array that is not contiguous. Both make copies, as `positions`
    is an array.
    """
    return x.take(positions, 0) if x.flags.c_contiguous else x[positions]


def recurrence(a: Array, b: Array, axis: int) -> Array:
    """h[t] = a[t] * h[t-1] + b[t] along `axis`, where a factor of 0 drops even an infinity."""
    a, h = np.moveaxis(a, axis, 0), np.array(np.moveaxis(b, axis, 0))
    for t in range(1, len(h)):
        h[t] += np.where(a[t] == 0, 0, a[t] * h[t - 1])
    return np.moveaxis(h, 0, axis)


class Recorder:
    """The results of single steps, whose number is known only after the last."""

    def __init__(self, like: Array) -> None:
        self.buffer = np.empty((8, *like.shape), like.dtype)
        self.count = 0

    def append(self, value: Array) -> None:
        """The result of one more step."""
        if self.count == len(self.buffer):
            self.buffer = np.concatenate([self.buffer, np.empty_like(self.buffer)])
        self.buffer[self.count] = value
        self.count += 1

    def all(self) -> Array:
        """The results of all steps, along a new first axis."""
        return self.buffer[: self.count]


def choose(index: Array | int, branches: int) -> int:
    """The number of a branch, refused unless there is a branch of that number."""
    number = int(index)
    if not 0 <= number < branches:
        raise IndexError(f"there is no branch {number} among {branches}")
    return number
