"""How JAX computes along an axis: running sums, recurrences, orders, Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.ir import Node
from graphcore.ops import tensor

from .entries import TABLE, Emission, Entry, Value, entry


@entry(tensor.cumsum)
def cumsum(cx: Emission, node: Node, x: Value) -> Value:
    """In the dtype of the result."""
    return jnp.cumsum(x, node.attrs["axis"], dtype=node.type.dtype)


@entry(tensor.cumprod)
def cumprod(cx: Emission, node: Node, x: Value) -> Value:
    """In the dtype of the result."""
    return jnp.cumprod(x, node.attrs["axis"], dtype=node.type.dtype)


def running(function: Callable[..., Value]) -> Entry:
    """The largest or smallest value so far; nan from the first on."""

    def run(cx: Emission, node: Node, x: Value) -> Value:
        axis = node.attrs["axis"]
        if x.dtype.kind == "b":
            return function(x.astype(jnp.int8), axis=axis) != 0
        found = function(x, axis=axis)
        if x.dtype.kind == "c":  # lax compares the parts, which tells nothing where one is nan
            lost = lax.cummax(jnp.isnan(x).astype(jnp.int8), axis=axis) != 0
            found = jnp.where(lost, np.nan, found)
        return found

    return run


TABLE[tensor.cummax] = running(lax.cummax)
TABLE[tensor.cummin] = running(lax.cummin)


@entry(tensor.logcumsumexp)
def logcumsumexp(cx: Emission, node: Node, x: Value) -> Value:
    """log of the running sum of exp."""
    return lax.cumlogsumexp(x.astype(node.type.dtype), axis=node.attrs["axis"])


@entry(tensor.recurrence)
def recurrence(cx: Emission, node: Node, a: Value, b: Value) -> Value:
    """One step after the other: a factor of 0 drops what was before, which no product does."""
    axis = node.attrs["axis"]
    if not b.size:
        return b

    def step(h: Value, given: tuple[Value, Value]) -> tuple[Value, Value]:
        factor, term = given
        h = term + jnp.where(factor == 0, jnp.zeros_like(h), factor * h)
        return h, h

    a, b = jnp.moveaxis(a, axis, 0), jnp.moveaxis(b, axis, 0)
    _, rest = lax.scan(step, b[0], (a[1:], b[1:]))
    return jnp.moveaxis(jnp.concatenate([b[:1], rest]), 0, axis)


def keys(x: Value) -> tuple[Value, ...]:
    """Arrays that stand in the order of `x` when the first one decides, then the next.

    Complex numbers are ordered by the real part, then by the imaginary one. Those with nan are
    last: first those with a real part, then those with an imaginary one.
    """
    if x.dtype.kind != "c":
        return (x,)
    real, imag = jnp.real(x), jnp.imag(x)
    lost = 2 * jnp.isnan(real).astype(jnp.int8) + jnp.isnan(imag)
    return lost, *[jnp.where(jnp.isnan(part), 0, part) for part in (real, imag)]


def ordered(x: Value, axis: int, descending: bool) -> Value:
    """The positions of the values along an axis in order; ties keep theirs.

    Nan is last, where values fall first. Floats are sorted as integers: devices have faster ways
    for these than for functions that compare.
    """
    by = [whole(key) for key in keys(x)]
    if descending:
        by = [~key for key in by]
    narrow = np.int32 if x.shape[axis] < 2**31 else np.int64
    numbers = lax.broadcasted_iota(narrow, x.shape, axis)
    return lax.sort((*by, numbers), dimension=axis, is_stable=True, num_keys=len(by))[-1]


def whole(x: Value) -> Value:
    """Integers in the order of some numbers: of floats the bits, equal ones for zeros."""
    if x.dtype.kind == "b":
        return x.astype(np.int8)
    if x.dtype.kind != "f":
        return x
    most = np.iinfo(f"i{x.dtype.itemsize}").max
    bits = lax.bitcast_convert_type(jnp.where(x == 0, jnp.zeros_like(x), x), f"i{x.dtype.itemsize}")
    return jnp.where(jnp.isnan(x), most, jnp.where(bits < 0, bits ^ most, bits))


@entry(tensor.sort)
def sort(cx: Emission, node: Node, x: Value) -> Value:
    """The values in order, nan last."""
    axis, by = node.attrs["axis"], keys(x)
    if len(by) == 1:
        return lax.sort(x, dimension=axis)
    return lax.sort((*by, x), dimension=axis, num_keys=len(by))[-1]


@entry(tensor.argsort)
def argsort(cx: Emission, node: Node, x: Value) -> Value:
    """The positions of the first values in order."""
    axis, size = node.attrs["axis"], cx.size(node.attrs["size"])
    return lax.slice_in_dim(ordered(x, axis, node.attrs["descending"]), 0, size, axis=axis)


@entry(tensor.searchsorted)
def searchsorted(cx: Emission, node: Node, x: Value, values: Value) -> Value:
    """Each row by bisection; numbers of different dtypes meet in the common one."""
    common = np.result_type(x.dtype, values.dtype)
    if not values.size:
        return jnp.zeros(values.shape, jnp.int64)

    def search(row: Value, wanted: Value) -> Value:
        return jnp.searchsorted(row, wanted, side=node.attrs["side"])

    for _ in x.shape[:-1]:
        search = jax.vmap(search)
    return search(x.astype(common), values.astype(common))


@entry(tensor.fft)
def fft(cx: Emission, node: Node, x: Value) -> Value:
    """Without a factor, in both directions."""
    function: Any = jnp.fft.ifft if node.attrs["inverse"] else jnp.fft.fft
    norm = "forward" if node.attrs["inverse"] else "backward"
    return function(x, axis=node.attrs["axis"], norm=norm) if x.size else x


@entry(tensor.rfft)
def rfft(cx: Emission, node: Node, x: Value) -> Value:
    """Half precision is computed in single."""
    if not x.size:
        return jnp.zeros(cx.shape(node.type), node.type.dtype)
    wide = x.astype(jnp.float32) if x.dtype.itemsize == 2 else x
    return jnp.fft.rfft(wide, axis=node.attrs["axis"])


@entry(tensor.irfft)
def irfft(cx: Emission, node: Node, x: Value) -> Value:
    """Without a factor."""
    size, shape = cx.size(node.attrs["size"]), cx.shape(node.type)
    if not x.size or 0 in shape:
        return jnp.zeros(shape, node.type.dtype)
    return jnp.fft.irfft(x, size, node.attrs["axis"], "forward")
