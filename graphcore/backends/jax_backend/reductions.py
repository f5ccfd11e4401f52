"""How JAX makes one value of several: sums, extremes, norms, and products of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.ir import Node, Op
from graphcore.ops import tensor

from . import floats
from .entries import TABLE, Emission, Entry, Value, entry
from .windows import are_few, reduced, seen_at


@entry(tensor.sum_)
def sum_(cx: Emission, node: Node, x: Value) -> Value:
    """Added up in the dtype of the result."""
    start = np.zeros((), node.type.dtype)
    found = reduced(cx, node, x, lax.add, start)
    return jnp.sum(x, node.attrs["axes"], dtype=start.dtype) if found is None else found


@entry(tensor.prod)
def prod(cx: Emission, node: Node, x: Value) -> Value:
    """Multiplied in the dtype of the result."""
    start = np.ones((), node.type.dtype)
    found = reduced(cx, node, x, lax.mul, start)
    return jnp.prod(x, node.attrs["axis"], dtype=start.dtype) if found is None else found


@entry(tensor.any_)
def any_(cx: Emission, node: Node, x: Value) -> Value:
    """Whether something is not 0, as nan is."""
    return jnp.any(x != 0, node.attrs["axes"])


@entry(tensor.all_)
def all_(cx: Emission, node: Node, x: Value) -> Value:
    """Whether nothing is 0, as nan is not."""
    return jnp.all(x != 0, node.attrs["axes"])


def extreme(function: Callable[..., Value], least: Callable[[np.dtype[Any]], Any]) -> Entry:
    """The largest or smallest value; the limit of the dtype where there is none, nan if any is.

    `function` takes two values, `least` is the limit that changes neither.
    """

    def run(cx: Emission, node: Node, x: Value) -> Value:
        axes, given = node.attrs["axes"], node.attrs.get("initial")
        start = np.array(least(x.dtype) if given is None else given.array, x.dtype)
        if x.dtype.kind != "c":
            found = reduced(cx, node, x, function, start)
            return lax.reduce(x, start, function, axes) if found is None else found
        found = lax.reduce(x, start, function, axes)
        # lax compares the parts of complex numbers, which tells nothing where one is nan.
        return jnp.where(jnp.any(jnp.isnan(x), axes), np.nan, found)

    return run


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest value of a dtype."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return False if dtype.kind == "b" else infinite(dtype, -np.inf)


def highest(dtype: np.dtype[Any]) -> Any:
    """The highest value of a dtype."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).max
    return True if dtype.kind == "b" else infinite(dtype, np.inf)


def infinite(dtype: np.dtype[Any], value: float) -> complex:
    """An infinite number; both parts of a complex one are."""
    return complex(value, value) if dtype.kind == "c" else value


TABLE[tensor.max_] = extreme(lax.max, lowest)
TABLE[tensor.min_] = extreme(lax.min, highest)


def position_of(op: Op, function: Callable[..., Value], best: Callable[..., Value]) -> None:
    """Enter the position of the first largest or smallest value: that of nan if any is."""

    @entry(op)
    def run(cx: Emission, node: Node, x: Value) -> Value:
        axis = node.attrs["axis"]
        if x.dtype.kind != "c":
            return function(x, axis)
        lost = jnp.isnan(x)
        same = x == best(x, axis, keepdims=True)
        return jnp.argmax(jnp.where(jnp.any(lost, axis, keepdims=True), lost, same), axis)


position_of(tensor.argmax, jnp.argmax, jnp.max)
position_of(tensor.argmin, jnp.argmin, jnp.min)


@entry(tensor.norm)
def norm(cx: Emission, node: Node, x: Value) -> Value:
    """Squares of values times a power of 2, which is exact and keeps them within the range."""
    x, axes = jnp.abs(x).astype(node.type.dtype), node.attrs["axes"]
    unit = floats.power_below(jnp.max(x, axes, keepdims=True, initial=0))
    root = jnp.sqrt(jnp.sum(jnp.square(x * (1 / unit)), axes))
    return root * unit.reshape(root.shape)


def exponentials(x: Value, axes: Sequence[int]) -> tuple[Value, Value, Value]:
    """m = max(x), e^(x - m), and its sum; m is no -inf, so that nothing is nan where x is -inf."""
    real = jnp.real(x)
    m = jnp.max(real, axes, keepdims=True, initial=np.finfo(real.dtype).min).astype(x.dtype)
    e = jnp.exp(x - m)
    return m, e, jnp.sum(e, axes, keepdims=True)


@entry(tensor.logsumexp)
def logsumexp(cx: Emission, node: Node, x: Value) -> Value:
    """m + log(sum(e^(x - m))), and inf where m is."""
    axes = node.attrs["axes"]
    m, _, total = exponentials(x.astype(node.type.dtype), axes)
    found = jnp.where(jnp.real(m) == np.inf, m, m + jnp.log(total))
    return jnp.squeeze(found, axes)


@entry(tensor.softmax)
def softmax(cx: Emission, node: Node, x: Value) -> Value:
    """e^(x - m) / sum(e^(x - m)), and 0 where all are -inf."""
    _, e, total = exponentials(x.astype(node.type.dtype), node.attrs["axes"])
    return e / jnp.where(total == 0, 1, total)


@entry(tensor.log_softmax)
def log_softmax(cx: Emission, node: Node, x: Value) -> Value:
    """(x - m) - log(sum(e^(x - m)))."""
    x = x.astype(node.type.dtype)
    m, _, total = exponentials(x, node.attrs["axes"])
    return (x - m) - jnp.log(total)


Letters = Sequence[int]


def contracted(
    node: Node, xs: Sequence[Value], letters: Sequence[Letters], result: Letters
) -> Value:
    """Products of arrays summed over letters; of bools whether any product is true.

    "highest": hardware that rounds the factors of a product to fewer bits does so only if it is
    asked for.
    """
    dtype = node.type.dtype
    within = np.dtype(np.int32) if dtype.kind == "b" else dtype
    terms: list[Any] = []
    for x, own in in_memory_order([*zip(xs, letters, strict=True)], result):
        terms += [x.astype(within), list(own)]
    found = jnp.einsum(*terms, list(result), precision=lax.Precision.HIGHEST)
    return found != 0 if dtype.kind == "b" else found


Term = tuple[Value, Letters]


def in_memory_order(terms: Sequence[Term], result: Letters) -> Sequence[Term]:
    """A matrix before its vector, or after it where its summed axes are the first ones.

    XLA wants the summed axes of the first factor last, and of the second one first; it transposes
    the matrix otherwise.
    """
    for vector, matrix in (terms, terms[::-1]) if len(terms) == 2 else ():
        own, other = matrix[1], vector[1]
        each = [letter for letter in own if letter not in other or letter not in result]
        if set(other) < set(own) and each:
            return (vector, matrix) if each[0] in other else (matrix, vector)
    return terms


@entry(tensor.einsum)
def einsum(cx: Emission, node: Node, *xs: Value) -> Value:
    """A contraction as it is: XLA keeps each axis."""
    for seen, weights in ((0, 1), (1, 0)) if len(xs) == 2 else ():
        if is_stencil(cx, node, seen, weights):
            return stencil(cx, node, seen, xs[weights])
    return contracted(node, xs, node.attrs["operands"], node.attrs["result"])


def is_stencil(cx: Emission, node: Node, seen: int, weights: int) -> bool:
    """Whether a contraction weighs windows by their places alone, of which there are few."""
    windows, letters = node.inputs[seen], node.attrs["operands"]
    if windows.op is not tensor.windows or node.type.dtype.kind not in "fc" or cx.meshed:
        return False
    first, wide = windows.attrs["axes"][0], len(windows.attrs["axes"])
    placed = letters[seen][first : first + wide]
    rest = [letter for letter in letters[seen] if letter not in placed]
    same = sorted(letters[weights]) == sorted(placed) and rest == [*node.attrs["result"]]
    sizes = cx.sizes(windows.attrs["sizes"])
    return same and 0 not in cx.shape(windows.type) and are_few(sizes)


def stencil(cx: Emission, node: Node, seen: int, weights: Value) -> Value:
    """The sum over the places of windows, in one loop: no windows are made."""
    windows, letters = node.inputs[seen], node.attrs["operands"]
    attrs, dtype = windows.attrs, node.type.dtype
    first, wide = attrs["axes"][0], len(attrs["axes"])
    placed, own = letters[seen][first : first + wide], letters[1 - seen]
    weights = weights.transpose([own.index(letter) for letter in placed]).astype(dtype)
    shape = cx.shape(windows.type)
    counts = [shape[axis + wide] for axis in attrs["axes"]]
    x = floats.KEPT(cx.value(windows.inputs[0])).astype(dtype)
    parts = seen_at(x, windows, weights.shape, counts)
    pairs = zip(weights.reshape(-1), parts, strict=True)
    return sum((w * part for w, part in pairs), jnp.zeros((), dtype))


@entry(tensor.matmul)
def matmul(cx: Emission, node: Node, x: Value, y: Value) -> Value:
    """Matrix products of a batch."""
    *batch, i, k, j = range(x.ndim + 1)
    return contracted(node, (x, y), ([*batch, i, k], [*batch, k, j]), [*batch, i, j])


@entry(tensor.matvec)
def matvec(cx: Emission, node: Node, x: Value, y: Value) -> Value:
    """Products of matrices with vectors."""
    *batch, i, k = range(x.ndim)
    return contracted(node, (x, y), ([*batch, i, k], [*batch, k]), [*batch, i])


@entry(tensor.vecdot)
def vecdot(cx: Emission, node: Node, x: Value, y: Value) -> Value:
    """Dot products of vectors."""
    *batch, k = range(x.ndim)
    return contracted(node, (x, y), ([*batch, k], [*batch, k]), batch)
