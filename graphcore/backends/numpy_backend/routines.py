"""Operations for which NumPy has no single call; each writes into `out` where it is given one."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from .short import LONG, SHORT

Array = npt.NDArray[Any]
Axes = tuple[int, ...]
ALL = slice(None)


def span(start: int, size: int, step: int) -> slice:
    """The slice of `size` positions: start, start + step, and so on."""
    if size == 0:
        return slice(0, 0)
    stop = start + size * step
    return slice(start, stop if stop >= 0 else None, step)


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
        if places != ALL:
            along = (ALL,) * axis
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
    window, whichever takes fewer steps; along a short last axis, one element.
    """
    out.fill(0)
    first, wide = axes[0], len(axes)
    sizes = x.shape[first : first + wide]
    view = windows(out, sizes, axes, strides, dilations, writeable=True)
    stepped = [
        min(first + i, wide + axis, key=x.shape.__getitem__)
        for i, axis in enumerate(axes)
        if strides[i] <= (sizes[i] - 1) * dilations[i]
    ]
    rest = [size for axis, size in enumerate(x.shape[:-1]) if axis not in stepped]
    if 1 < x.shape[-1] <= SHORT and x.ndim - 1 not in stepped and math.prod(rest) >= LONG:
        stepped.append(x.ndim - 1)
    index: list[Any] = [slice(None)] * x.ndim
    for place in product(*[range(x.shape[axis]) for axis in stepped]):
        for axis, at in zip(stepped, place, strict=True):
            index[axis] = at
        target = view[tuple(index)]
        np.add(target, x[tuple(index)], target)
    return out


def sort(x: Array, axis: int, out: Array) -> Array:
    """The values along `axis` in order."""
    np.copyto(out, x)
    out.sort(axis)
    return out


def argsort(x: Array, axis: int, size: int, descending: bool) -> Array:
    """Positions of the first `size` values in order, nan the largest; ties keep their order.

    A few of very many are picked by partition, and only they are put in order.
    """
    x = np.moveaxis(x, axis, -1)
    if 0 < 8 * size <= x.shape[-1] >= 1024:
        few = first(x, size, descending)
        inner = order(np.take_along_axis(x, few, -1), descending)
        found = np.take_along_axis(few, inner, -1)
    else:
        found = order(x, descending)[..., :size]
    return np.moveaxis(found, -1, axis)


def order(x: Array, descending: bool) -> Array:
    """The stable order of the last axis; without ties the quicker sort finds the same."""
    if descending:
        last = np.int64(x.shape[-1] - 1)
        return np.subtract(last, order(x[..., ::-1], False)[..., ::-1], dtype=np.int64)
    if x.dtype.kind == "f" and x.shape[-1] >= 256:
        found = np.argsort(x, -1)
        ordered = np.take_along_axis(x, found, -1)
        if np.all(ordered[..., 1:] > ordered[..., :-1]):
            return found
    return np.argsort(x, -1, kind="stable")


def first(x: Array, size: int, descending: bool) -> Array:
    """Where the first `size` values in order stand on the last axis, from left to right."""
    at = x.shape[-1] - size if descending else size - 1
    last = np.partition(x, at, -1)[..., at, None]
    tied, ahead = x == last, x > last if descending else x < last
    if np.any(missing := x != x):
        tied |= missing & (last != last)
        ahead |= missing & (last == last) if descending else ~missing & (last != last)
    room = size - ahead.sum(-1, keepdims=True)
    if np.any(tied.sum(-1, keepdims=True) > room):
        tied &= tied.cumsum(-1) <= room
    return np.nonzero(ahead | tied)[-1].reshape(*x.shape[:-1], size)


def searchsorted(x: Array, values: Array, side: Literal["left", "right"]) -> Array:
    """How many of each sorted row of `x` are below, or not above, its own `values`."""
    count = math.prod(x.shape[:-1])
    if count >= 64 and 0 < values.size <= 16 * count and x.size and x.dtype.kind != "c":
        rows, own = x.reshape(count, -1), values.reshape(count, -1)
        return bisect(rows, own, side).reshape(values.shape)
    found = np.empty(values.shape, np.int64)
    for row in np.ndindex(x.shape[:-1]):
        found[row] = places(x[row], values[row], side)
    return found


def bisect(x: Array, values: Array, side: str) -> Array:
    """Where a few values of each of many sorted rows go: found for all at once, bit by bit."""
    count, size = x.shape
    flat, before = x.reshape(-1), (np.arange(count) * size - 1)[:, None]
    found = np.zeros(values.shape, np.int64)
    for bit in reversed(range(size.bit_length())):
        reached = found + (1 << bit)
        last = flat[before + np.minimum(reached, size)]
        passed = is_less(last, values) if side == "left" else ~is_less(values, last)
        found += (passed & (reached <= size)) * (1 << bit)
    return found


def is_less(x: Array, y: Array) -> Array:
    """Whether `x` comes before `y` in order, nan last."""
    less: Array = x < y
    return less | ((y != y) & (x == x)) if x.dtype.kind == "f" or y.dtype.kind == "f" else less


def places(row: Array, values: Array, side: Literal["left", "right"]) -> Array:
    """Where values go in a sorted row; guessed by division if it is even, seven times quicker.

    Values for which the guess proves wrong, and nan, are searched for.
    """
    if values.size < 16 * row.size or not is_even(row):
        return np.searchsorted(row, values, side)
    last = row.size - 2
    scaled: Array = (values - row[0]) * ((last + 1) / (row[-1] - row[0]))
    guess = np.fmin(np.fmax(scaled, 0, scaled), last, scaled).astype(np.int64)
    low, high = row[guess], row[1:][guess]
    if side == "right":
        right = (low <= values) & (values < high)
    else:
        right = (low < values) & (values <= high)
    guess += 1
    if (wrong := np.flatnonzero(~right.reshape(-1))).size:
        guess.reshape(-1)[wrong] = np.searchsorted(row, values.reshape(-1)[wrong], side)
    return guess


def is_even(row: Array) -> bool:
    """Whether a row of floats rises in steps that are about the same."""
    if row.dtype.kind != "f" or row.size < 3:
        return False
    step = (row[-1] - row[0]) / (row.size - 1)
    return bool(np.isfinite(1 / step) and (np.abs(np.diff(row) - step) < step / 4).all())


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


def keep(condition: Array, x: Array, out: Array) -> Array:
    """Real floats where the condition holds, else 0: their bits masked, without branches."""
    return masked(x, np.negative(condition.view(np.int8)), out)


def omit(condition: Array, x: Array, out: Array) -> Array:
    """Real floats where the condition does not hold, else 0."""
    return masked(x, np.subtract(condition.view(np.int8), 1), out)


def masked(x: Array, mask: Array, out: Array) -> Array:
    """The bits of `x` where `mask` has ones; it is 0 or -1."""
    bits = BITS[out.dtype.itemsize]
    np.bitwise_and(x.view(bits), mask, out.view(bits))
    return out


def either(condition: Array, x: Array, y: Array, out: Array) -> Array:
    """`x` where the condition holds, else `y`; writing through a mask is quicker than a choice."""
    if condition.shape == out.shape and (x.ndim == 0 or x.shape == out.shape):
        np.copyto(out, y)
        np.putmask(out, condition, x)
    else:
        np.copyto(out, np.where(condition, x, y))
    return out


def wins(value: Array, x: Array, y: Array, out: Array) -> Array:
    """`value` where x > y, half of it where they are tied, 0 elsewhere."""
    if value.dtype.kind == "f":
        keep(np.greater_equal(x, y), value, out)
    else:
        np.copyto(out, np.where(np.greater_equal(x, y), value, 0))
    tied = np.equal(x, y)
    if tied.any():
        np.multiply(out, 0.5, out, where=tied)
    return out


def absorb(x: Array, factor: Array, out: Array) -> Array:
    """`x` times `factor`, but `x` where that is 0, even if the factor is not finite there.

    If the sum of the factors is finite, found in one pass, all of them are; else each is tested.
    For a single row the sum of squares takes a fraction of the time.
    """
    total = factor.dot(factor) if factor.ndim == 1 else np.add.reduce(factor, None)
    if total - total == 0:
        return np.multiply(x, factor, out)
    absorbed = np.logical_and(np.equal(x, 0), np.logical_not(np.isfinite(factor)))
    np.copyto(out, np.where(absorbed, x, np.multiply(x, factor)))
    return out


BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def norm(x: Array, axes: tuple[int, ...], out: Array) -> Array:
    """Square root of the sum of squares over `axes`; scaled where squares leave the range."""
    least = least_exact(x.dtype)
    if x.ndim == 1 and least < (one := math.sqrt(np.dot(x, x))) < math.inf:
        out[...] = one  # mostly a few values, for which NumPy would take longer
        return out
    root_of_squares(x, axes, out)
    sound = (least < out) & (out < np.inf)
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
    if len(axes) == x.ndim and x.flags.c_contiguous:
        np.dot(x.reshape(-1), x.reshape(-1), out)
    else:
        np.add.reduce(np.square(x), axes, out=out)
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
    """`start`, combined by `ufunc` with `updates` at positions `index` along `axes`.

    Along one axis NumPy is ten times quicker.
    """
    if start is not out:
        np.copyto(out, start)
    places = row_major(out.shape, axes, index)
    ufunc.at(out.reshape(-1), places.reshape(-1), flat(updates, places.shape))
    return out


def sums(axes: Axes, index: tuple[Array, ...], updates: Array, out: Array) -> Array:
    """Zeros with `updates` added at positions `index` along `axes`: counts with weights.

    One call counts the positions for each index of the other axes, if there are few of these.
    """
    if out.ndim == 1:
        places = from_start(index[0], out.size)
        out[:] = np.bincount(places.reshape(-1), flat(updates, places.shape), out.size)
        return out
    sizes = tuple([out.shape[axis] for axis in axes])
    places = row_major(sizes, tuple(range(len(axes))), index)
    others = tuple([axis for axis in range(out.ndim) if axis not in axes])
    width, count = tuple([out.shape[axis] for axis in others]), math.prod(sizes)
    if math.prod(width) > places.size:
        return scatter(np.add, np.zeros((), out.dtype), axes, index, updates, out)
    if updates.shape != (shape := (*places.shape, *width)):
        updates = np.broadcast_to(updates, shape)
    places, target = places.reshape(-1), out.transpose((*axes, *others))
    for other in product(*map(range, width)):
        at: tuple[Any, ...] = (..., *other)
        target[at] = np.bincount(places, updates[at].reshape(-1), count).reshape(sizes)
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
    """h[t] = a[t] * h[t-1] + b[t] along `axis`, where a factor of 0 drops even an infinity.

    By doubling (Hillis & Steele 1986) where steps are many and narrow, else step by step.
    """
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    h = np.array(b)
    steps = len(h)
    if steps <= 64 or h[0].size > 256:
        for t in range(1, steps):
            h[t] += a[t] * h[t - 1]
    else:
        factors = np.array(a)
        reach = 1
        while reach < steps:
            h[reach:] += factors[reach:] * h[:-reach]
            factors[reach:] = factors[reach:] * factors[:-reach]
            reach *= 2
    if not np.isfinite(h).all():  # 0 * inf may have made nan: again, step by step
        h = np.array(b)
        for t in range(1, steps):
            h[t] += np.where(a[t] == 0, 0, a[t] * h[t - 1])
    return np.moveaxis(h, 0, axis)


class Recorder:
    """The results of single steps, whose number is known only after the last."""

    def __init__(self, like: Array) -> None:
        self.room = np.empty((8, *like.shape), like.dtype)
        self.count = 0

    def append(self, value: Array) -> None:
        """The result of one more step."""
        if self.count == len(self.room):
            self.room = np.concatenate([self.room, np.empty_like(self.room)])
        self.room[self.count] = value
        self.count += 1

    def all(self) -> Array:
        """The results of all steps, along a new first axis."""
        return self.room[: self.count]


def choose(index: Array | int, branches: int) -> int:
    """The number of a branch, refused unless there is a branch of that number."""
    number = int(index)
    if not 0 <= number < branches:
        raise IndexError(f"there is no branch {number} among {branches}")
    return number
