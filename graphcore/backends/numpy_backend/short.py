"""Short axes: starting one of NumPy's loops, which run along memory, costs as much as 50 values.

Where the last axes are short, one call is made for each index of them instead, along the long ones.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Axes = tuple[int, ...]

SHORT = 8
"""The most indices with a call each: with more, a call would skip most of the memory it reads."""

LONG = 128
"""The least values in each call, times the number of calls, that make these calls worthwhile."""


def fold(ufunc: np.ufunc, x: Array, axes: Axes, out: Array, *start: object) -> Array:
    """A reduction over few indices: all first values, combined with all second ones, and so on."""
    sizes = [x.shape[axis] for axis in axes]
    places = math.prod(sizes)
    if not 0 < places <= out.size // LONG:
        begin: Any = ufunc.reduce
        begin(x, axes, None, out, False, *start)
        return out
    whole: tuple[Any, ...] = (slice(None),) * x.ndim
    for at in product(*map(range, sizes)):
        index = list(whole)
        for axis, place in zip(axes, at, strict=True):
            index[axis] = place
        part = x[tuple(index)]
        if any(at):
            ufunc(out, part, out=out)
        elif start:
            ufunc(part, *start, out=out)
        else:
            np.copyto(out, part, casting="unsafe")
    return out


def reduce(ufunc: np.ufunc, x: Array, axes: Axes, out: Array, *start: object) -> Array:
    """A reduction over the first axes or the last ones, without many loops along short rows.

    Sums are products with ones; for other reductions short axes are transposed to the front.
    """
    wide = len(axes)
    last = axes[0] + wide == x.ndim
    count = out.size if last else x.size // max(out.size, 1)
    in_order = x.flags.c_contiguous and out.flags.c_contiguous
    if count >= 2 * LONG and in_order and (last or axes[-1] + 1 == wide):
        rows, flat = x.reshape(count, -1), out.reshape(-1)
        size = rows.shape[1]
        if ufunc is np.add and x.dtype.char in "fd" and size <= 2 * LONG:
            ones = np.ones(size if last else count, x.dtype)
            np.dot(rows, ones, flat) if last else np.dot(ones, rows, flat)
            return out
        if last and size <= 2 * SHORT:
            x, axes = np.array(rows.T, order="C").reshape(size, *out.shape), (0,)
    begin: Any = ufunc.reduce
    begin(x, axes, None, out, False, *start)
    return out


def limit(x: Array) -> int:
    """The most indices with a call each: more if the values of one index are contiguous."""
    return SHORT if x.strides[-1] == x.itemsize else 4 * SHORT


def vecdot(x: Array, y: Array, out: Array) -> Array:
    """Products of the vectors on the last axis."""
    size = x.shape[-1]
    if not 0 < size <= limit(x) or out.size < LONG * size:
        np.vecdot(x, y, out)
        return out
    np.multiply(x[..., 0], y[..., 0], out)
    for at in range(1, size):
        np.add(out, x[..., at] * y[..., at], out)
    return out


def matvec(a: Array, x: Array, out: Array) -> Array:
    """Products of matrices and vectors."""
    if not 0 < (places := math.prod(a.shape[-2:])) <= limit(a) or out.size < LONG * places:
        np.matvec(a, x, out)
        return out
    for row in range(a.shape[-2]):
        vecdot(a[..., row, :], x, out[..., row])
    return out


def matmul(a: Array, b: Array, out: Array) -> Array:
    """Products of matrices: where the batch runs along memory, `einsum` runs along it too."""
    places = math.prod(a.shape[-2:]) * b.shape[-1]
    if not 0 < places <= 4 * SHORT or out.size < LONG * places:
        np.matmul(a, b, out)
    elif all(x.strides[-1] != x.itemsize for x in (a, b)):
        made = np.einsum("...ik,...kj->ij...", a, b, dtype=out.dtype)
        np.copyto(out, np.moveaxis(made, (0, 1), (-2, -1)))
    elif places <= SHORT:
        for col in range(b.shape[-1]):
            for row in range(a.shape[-2]):
                vecdot(a[..., row, :], b[..., col], out[..., row, col])
    else:
        np.matmul(a, b, out)
    return out
