"""Sums whose error does not grow with the number of values, for any dtype and order in memory.

NumPy adds up the values of a row in memory pairwise, but others, and running sums, one after the
other, and BLAS adds up long parts of products so. Each addition may round by half an eps of the
magnitudes so far. So what would be added to more than SHORT values is cut into blocks here, whose
sums are added up pairwise: no value takes part in more than ADDITIONS.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from graphcore.backends.rounding import ADDITIONS, PRODUCTS_OF_BLAS

Array = npt.NDArray[Any]
Axes = tuple[int, ...]

SHORT = ADDITIONS
"""The most values, or products, that are added up one after the other."""
ROWS, WIDE = 16, 512
"""How many rows are added up so, each of so many values: several rows side by side, if these are
shorter."""
DOT, ROW = 256, 128
"""How many products BLAS adds up for a number or a vector: it has several sums for each result."""
SUMS_AT_ONCE, BLOCKS_AT_ONCE = 2**18, 8
"""How many sums of blocks are kept at once, and of how many blocks where the result is large."""


def sum_in_blocks(x: Array, axes: Axes, out: Array) -> Array:
    """The sum over `axes`."""
    if x.size <= SHORT * out.size or lie_in_rows(x, axes):
        return np.add.reduce(x, axes, out=out)
    axis = min(axes, key=lambda axis: abs(x.strides[axis]) if x.shape[axis] > 1 else math.inf)
    rest = tuple([other - (other > axis) for other in axes if other != axis])
    into = np.empty((*x.shape[:axis], *x.shape[axis + 1 :]), out.dtype) if rest else out
    if lie_in_rows(x, (axis,)):
        np.add.reduce(x, axis, out=into)
    else:
        add_rows(np.moveaxis(x, axis, 0) if axis else x, into)
    return sum_in_blocks(into, rest, out) if rest else out


def lie_in_rows(x: Array, axes: Axes) -> bool:
    """Whether the values along `axes` are nearest each other in memory, in one row."""
    if x.flags.c_contiguous and axes[0] == x.ndim - len(axes):
        return True
    if len(axes) > 1:
        return False
    nearest = abs(x.strides[axes[0]])
    others = zip(x.shape, x.strides, range(x.ndim), strict=True)
    return all(size == 1 or abs(far) > nearest for size, far, i in others if i != axes[0])


def add_rows(x: Array, out: Array) -> Array:
    """The sum over the first axis."""
    rows = len(x)
    if rows <= ROWS:
        return np.add.reduce(x, 0, out=out)
    beside = min(max(WIDE // max(out.size, 1), 1), rows // ROWS)
    many = rows // (ROWS * beside)
    whole = many * ROWS * beside
    sums = np.add.reduce(x[:whole].reshape(many, ROWS, beside, *x.shape[1:]), 1)
    total = add_halves(sums.reshape(many * beside, *x.shape[1:]), ROWS)
    if whole == rows:
        np.copyto(out, total)
        return out
    return np.add(total, add_rows(x[whole:], np.empty(out.shape, out.dtype)), out)


def add_halves(x: Array, few: int = 8) -> Array:
    """The sum over the first axis, pairwise until few rows remain, in the memory of `x`."""
    while len(x) > few:
        half = len(x) // 2
        np.add(x[:half], x[-half:], x[:half])
        x = x[: len(x) - half]
    return np.asarray(np.add.reduce(x, 0))


def cumsum(x: Array, axis: int, out: Array) -> Array:
    """Running sums along `axis`."""
    return accumulate(np.add, x, axis, out)


def logcumsumexp(x: Array, axis: int, out: Array) -> Array:
    """Logarithms of running sums of exponentials along `axis`."""
    return accumulate(np.logaddexp, x, axis, out)


def accumulate(ufunc: np.ufunc, x: Array, axis: int, out: Array) -> Array:
    """The running reduction along `axis`: an element has all values up to its place."""
    if x.shape[axis] <= SHORT:
        return np.asarray(ufunc.accumulate(x, axis, None, out))
    accumulate_groups(ufunc, np.moveaxis(x, axis, -1), np.moveaxis(out, axis, -1))
    return out


def accumulate_groups(ufunc: np.ufunc, x: Array, out: Array) -> None:
    """First within groups of four, then from the last of each group to those of the next one."""
    if x.shape[-1] <= 8:
        ufunc.accumulate(x, -1, None, out)
        return
    if x is not out:
        out[..., ::4] = x[..., ::4]
    for j in range(1, 4):
        part = out[..., j::4]
        ufunc(out[..., j - 1 :: 4][..., : part.shape[-1]], x[..., j::4], part)
    last = out[..., 3::4]
    accumulate_groups(ufunc, last, last)
    for j in range(4, 7):
        part = out[..., j::4]
        ufunc(last[..., : part.shape[-1]], part, part)


def vecdot_in_blocks(x: Array, y: Array, out: Array) -> Array:
    """Sums of products along the last axes."""
    inner = x.shape[-1]
    if inner > SHORT:
        x, y = in_rows(x), in_rows(y)
    if inner <= DOT:
        return np.asarray(np.vecdot(x, y, out) if x.ndim > 1 else np.dot(x, y, out))
    whole = inner - inner % DOT
    sums = np.vecdot(*[cut(a[..., :whole], DOT) for a in (x, y)])
    sum_in_blocks(sums, (sums.ndim - 1,), out)
    return np.add(out, np.vecdot(x[..., whole:], y[..., whole:]), out)


def matvec_in_blocks(x: Array, y: Array, out: Array) -> Array:
    """Products of matrices with vectors."""
    inner = x.shape[-1]
    if inner > SHORT:
        x, y = in_rows_or_columns(x), in_rows(y)
    if inner <= ROW:
        return np.asarray(np.matvec(x, y, out) if y.ndim > 1 else np.dot(x, y, out))
    whole = inner - inner % ROW
    sums = add_halves(np.matvec(*[columns_in_blocks(a[..., :whole], ROW) for a in (x, y)]))
    if whole == inner:
        np.copyto(out, sums)
        return out
    return np.add(sums, matvec_in_blocks(x[..., whole:], y[..., whole:], out), out)


def in_rows(x: Array) -> Array:
    """`x` with the values of a row side by side: BLAS and NumPy add up others one by one."""
    return x if x.strides[-1] == x.itemsize else x.copy()


def in_rows_or_columns(x: Array) -> Array:
    """`x` with the values of rows, or of columns, side by side, as BLAS takes matrices."""
    sides = zip(x.strides[-2:], x.strides[:-3:-1], x.shape[-2:], strict=True)
    return x if any(s == x.itemsize and t >= s * n for s, t, n in sides) else x.copy()


def matmul_in_blocks(x: Array, y: Array, out: Array) -> Array:
    """Products of matrices: where sums of blocks do not fit the cache, of parts of these."""
    inner = x.shape[-1]
    if inner <= SHORT:
        return np.asarray(np.matmul(x, y, out))
    many = inner // PRODUCTS_OF_BLAS
    if many * out.size > SUMS_AT_ONCE:
        if many > BLOCKS_AT_ONCE:
            half = many // 2 * PRODUCTS_OF_BLAS
            matmul_in_blocks(x[..., :half], y[..., :half, :], out)
            other = matmul_in_blocks(
                x[..., half:], y[..., half:, :], np.empty(out.shape, out.dtype)
            )
            return np.add(out, other, out)
        axis = max(range(out.ndim), key=out.shape.__getitem__)
        half = out.shape[axis] // 2
        for part in (slice(half), slice(half, None)):
            at = (*[slice(None)] * axis, part)
            of_x, of_y = x if axis == out.ndim - 1 else x[at], y if axis == out.ndim - 2 else y[at]
            matmul_in_blocks(of_x, of_y, out[at])
        return out
    whole = many * PRODUCTS_OF_BLAS
    left, right = x[..., :whole], y[..., :whole, :].swapaxes(-1, -2)
    below = columns_in_blocks(right, PRODUCTS_OF_BLAS).swapaxes(-1, -2)
    sums = add_halves(np.matmul(columns_in_blocks(left, PRODUCTS_OF_BLAS), below))
    return np.add(sums, np.matmul(x[..., whole:], y[..., whole:, :]), out)


def columns_in_blocks(x: Array, block: int) -> Array:
    """Some columns at a time, along a new first axis."""
    blocks, last = cut(x, block), x.ndim
    return blocks.transpose(last - 1, *range(last - 1), last)


def cut(x: Array, block: int) -> Array:
    """The last axis in blocks, which are an axis before it."""
    return x.reshape(*x.shape[:-1], x.shape[-1] // block, block)


def add_groups(x: Array, places: Array, sizes: tuple[int, ...], out: Array) -> None:
    """Add rows of `x` at places, counted through the first axes of `out`: of one place pairwise."""
    order = np.argsort(
        places.astype(np.uint16) if math.prod(sizes) <= 2**16 else places, stable=True
    )
    places = places.take(order)
    begins = np.empty(len(places), np.bool_)
    begins[0] = True
    np.not_equal(places[1:], places[:-1], begins[1:])
    firsts = np.flatnonzero(begins)
    at = np.unravel_index(places.take(firsts), sizes)
    out[at] += np.add.reduceat(x.take(order, 0), firsts, 0)
