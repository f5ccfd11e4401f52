"""What NumPy has no single call for. Each writes into `out` where it is given one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def span(start: int, size: int, step: int) -> slice:
    """The slice of the places start, start + step, ..., `size` of them."""
    if size == 0:
        return slice(0, 0)
    stop = start + size * step
    return slice(start, stop if stop >= 0 else None, step)


def embed(x: Array, index: tuple[slice, ...], out: Array) -> Array:
    """Zeros with `x` at `index`."""
    out.fill(0)
    out[index] = x
    return out


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
    bits = BITS[out.dtype.itemsize]
    mask = np.negative(condition.view(np.int8))
    np.bitwise_and(x.view(bits), mask, out.view(bits))
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


BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def put(out: Array, view: Array, index: tuple[Array, ...], updates: Array) -> Array:
    """Zeros, but for `updates` at the places `index` of a view of `out`."""
    out.fill(0)
    view[index] = updates
    return out


def scatter(out: Array, view: Array, index: tuple[Array, ...], updates: Array) -> Array:
    """Zeros to which `updates` are added at the places `index` of a view of `out`."""
    out.fill(0)
    np.add.at(view, index, updates)
    return out


def recurrence(a: Array, b: Array, axis: int) -> Array:
    """h[t] = a[t] * h[t-1] + b[t] along `axis`.

    By doubling (Hillis & Steele 1986) where steps are many and narrow, else step by step.
    """
    a, h = np.moveaxis(a, axis, 0), np.array(np.moveaxis(b, axis, 0))
    steps = len(h)
    if steps <= 64 or h[0].size > 256:
        for t in range(1, steps):
            h[t] += a[t] * h[t - 1]
    else:
        a = np.array(a)
        reach = 1
        while reach < steps:
            h[reach:] += a[reach:] * h[:-reach]
            a[reach:] = a[reach:] * a[:-reach]
            reach *= 2
    return np.moveaxis(h, 0, axis)
