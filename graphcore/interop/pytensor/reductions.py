"""Rules along axes: reductions, softmax, running sums, order, distinct values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

import graphcore as gc
from graphcore import special
from graphcore.frontend.core.base import Tensor
from graphcore.ir.sizes import Size

from .refused import Unsaid
from .rules import Apply, names_of, rule
from .scalars import SIZES
from .shapes import reshaped
from .values import (
    Value,
    aligned,
    axes,
    axis,
    full,
    is_known,
    is_sizes,
    known,
    lift,
    moved,
    new_names,
    number,
    numbers,
    renamed,
    without,
)


def by_bits(whole: Callable[..., Tensor], bits: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A reduction of bools, or of each bit of integers, which are 0 and 1."""

    def reduction(x: Tensor, dims: Sequence[str]) -> Tensor:
        if x.dtype == bool:
            return whole(x, dims)
        (dim,) = new_names(["bit"], x)
        place = gc.arange(8 * x.dtype.itemsize, dim=dim)
        each = gc.bitwise_and(gc.right_shift(gc.astype(x, "int64"), place), 1)
        return gc.astype(gc.sum(gc.left_shift(bits(each, dims), place), dim), x.dtype)

    return reduction


def is_odd(x: Tensor, dims: Sequence[str]) -> Tensor:
    """The sum modulo 2."""
    return gc.sum(x, dims) % 2


REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "AND": by_bits(gc.all, gc.min),
    "Add": gc.sum,
    "Maximum": gc.max,
    "Minimum": gc.min,
    "Mul": gc.prod,
    "MulWithoutZeros": lambda x, dims: gc.prod(gc.where(gc.equal(x, 0), 1, x), dims),
    "OR": by_bits(gc.any, gc.max),
    "ScalarMaximum": gc.max,
    "ScalarMinimum": gc.min,
    "XOR": by_bits(lambda x, dims: gc.equal(is_odd(x, dims), 1), is_odd),
}
"""The reduction by each scalar op."""


@rule("CAReduce", "ScalarCAReduce")
def reduced(node: Apply, x: Value) -> Value:
    """A reduction over axes."""
    op, type, out = node.op, node.inputs[0].type, node.outputs[0].type
    name = names_of(op.scalar_op)[0]
    over = range(type.ndim) if op.axis is None else [i % type.ndim for i in op.axis]
    if is_sizes(x) and name in SIZES:
        first, *rest = x.flat if len(over) == x.ndim else [None]
        if first is not None:
            return known(reduce(SIZES[name], rest, first))
    made = lift(x, type)
    if name in ("Add", "Mul", "MulWithoutZeros"):
        kind = made.dtype.kind  # sums of floats are exact enough in their own dtype
        made = (
            made if kind == "c" else gc.astype(made, op.acc_dtype if kind in "biu" else out.dtype)
        )
    dims = [axis(i) for i in over if axis(i) in made.dims]
    if getattr(op, "initial", False) is True:  # nothing has an extreme: that of one more element
        made = gc.pad(made, dict.fromkeys(dims, (0, 1)), constant_values=lowest(name, made.dtype))
    if name == "MulWithoutZeros" or dims:
        made = REDUCTIONS[name](made, dims)
    if made.dtype.kind == "c" and np.dtype(out.dtype).kind != "c":  # as its dtype asks for
        made = gc.real(made)
    return without(made, over, type.ndim)


def lowest(name: str, dtype: np.dtype[Any]) -> Any:
    """The value that changes no maximum, or no minimum."""
    sign = 1 if "Minimum" in name else -1
    if dtype.kind not in "iu":
        return sign > 0 if dtype.kind == "b" else sign * np.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def axes_of(node: Apply) -> list[int]:
    """The axes that an op works along: one, several, or None for all."""
    given, n = node.op.axis, node.inputs[0].type.ndim
    some = range(n) if given is None else [given] if isinstance(given, int) else given
    return [i % n for i in some]


def along(name: str, function: Callable[[Tensor, list[str]], Tensor]) -> None:
    """Registers a function of a tensor and dims that keeps them."""

    @rule(name)
    def made(node: Apply, x: Value) -> Value:
        over = axes_of(node)
        return function(full(x, node.inputs[0].type, over), [axis(i) for i in over])


along("Softmax", special.softmax)
along("LogSoftmax", special.log_softmax)


@rule("LogSumExp")
def logsumexp(node: Apply, x: Value) -> Value:
    """`log(sum(exp(x)))` over axes."""
    over, type = axes_of(node), node.inputs[0].type
    made = special.logsumexp(full(x, type, over), [axis(i) for i in over])
    return made if getattr(node.op, "keepdims", False) else without(made, over, type.ndim)


def broadcasting(name: str, function: Callable[..., Tensor]) -> None:
    """Registers a function of tensors in the dtype of the result, whose last axes are aligned."""

    @rule(name)
    def made(node: Apply, *operands: Value) -> Value:
        out = node.outputs[0].type
        tensors = [aligned(x, v.type, out.ndim) for x, v in zip(operands, node.inputs)]
        return function(*[gc.astype(x, out.dtype) for x in tensors])


broadcasting("LogAddExp", lambda *xs: reduce(gc.logaddexp, xs))
broadcasting("XLogY", special.xlogy)
broadcasting("XLog1PY", special.xlog1py)


@rule("Argmax")
def argmax(node: Apply, x: Value) -> Value:
    """The first position of the largest value, row-major where there are several axes."""
    type, over = node.inputs[0].type, axes_of(node)
    made = full(x, type, over)
    dims = [axis(i) for i in over]
    flat = made.stack({"flat": dims}) if len(dims) != 1 else renamed(made, {dims[0]: "flat"})
    return without(gc.argmax(flat, "flat"), over, type.ndim)


@rule("CumOp")
def running(node: Apply, x: Value) -> Value:
    """Running sums or products."""
    type = node.inputs[0].type
    if node.op.mode == "add" and type.dtype == "bool":
        raise Unsaid(
            "PyTensor types a running sum of bools as bool, which holds no counts",
            'cast first: pt.cumsum(x.astype("int64"))',
        )
    function = {"add": gc.cumsum, "mul": gc.cumprod}[node.op.mode]
    if node.op.axis is None:
        return function(lift(reshaped(x, type, [-1]), node.outputs[0].type), axis(0))
    return function(full(x, type, [node.op.axis]), axis(node.op.axis))


@rule("SortOp", "ArgSortOp")
def ordered(node: Apply, x: Value, *place: Value) -> Value:
    """Values in ascending order, or their positions; PyTensor 3.0 gives the axis as an operand."""
    at = number(place[0], "the axis") if place else node.op.axis
    i = int(at) % node.inputs[0].type.ndim
    function = gc.sort if "SortOp" in names_of(node.op) else gc.argsort
    return function(full(x, node.inputs[0].type, [i]), axis(i))


@rule("SearchsortedOp")
def searchsorted(node: Apply, x: Value, values: Value, *sorter: Value) -> Value:
    """Positions in a sorted vector."""
    row = full(x, node.inputs[0].type)
    if sorter:
        row = row.isel({axis(0): lift(sorter[0], node.inputs[2].type)})
    wanted = lift(values, node.inputs[1].type)
    return gc.searchsorted(renamed(row, {axis(0): "sorted"}), wanted, "sorted", node.op.side)


@rule("Unique")
def unique(node: Apply, x: Value) -> Sequence[Value]:
    """Distinct values, or slices along an axis, as many as the program finds."""
    op, type = node.op, node.inputs[0].type
    made = full(x, type)
    whole = op.axis is None or type.ndim == 1
    dims = axes(type.ndim) if whole else [axis(op.axis % type.ndim)]
    found = gc.unique_all(made if whole else ranks(made, dims[0]), name="unique")
    inverse = found.inverse_indices.transpose(*dims).stack({"flat": dims})
    if whole:
        values = moved(found.values, ["unique"])
    else:
        values = renamed(made.isel({dims[0]: found.indices}), {"unique": dims[0]})
    wanted = [op.return_index, op.return_inverse, op.return_counts]
    more = [y for y, keep in zip((found.indices, inverse, found.counts), wanted) if keep]
    return [values, *[moved(y, [*y.dims]) for y in more]]


def ranks(x: Tensor, dim: str) -> Tensor:
    """The place of each slice along a dim among the distinct ones, in lexicographic order."""
    flat = x.stack({"flat": [d for d in x.dims if d != dim]})
    n = x.sizes[dim]

    def sort(order: Tensor, column: Tensor) -> tuple[Tensor, None]:
        return order.isel({dim: gc.argsort(column.isel({dim: order}), dim)}), None

    order, _ = gc.scan(sort, gc.arange(n, dim=dim), flat, "flat", reverse=True)
    rows = flat.isel({dim: order})
    earlier, later = rows.isel({dim: slice(None, -1)}), rows.isel({dim: slice(1, None)})
    changes = gc.cumsum(gc.astype(gc.any(gc.not_equal(earlier, later), "flat"), "int64"), dim)
    places = gc.pad(changes, {dim: (1, 0)}, constant_values=0).isel({dim: slice(0, n)})
    return places.isel({dim: gc.argsort(order, dim)})


@rule("Nonzero")
def nonzero(node: Apply, x: Value) -> Sequence[Value]:
    """The positions of nonzero elements along each axis, as many as the program finds."""
    type = node.inputs[0].type
    found = gc.nonzero(full(x, type), name="found")
    return [moved(found[d], ["found"]) for d in axes(type.ndim)]


@rule("Repeat")
def repeated(node: Apply, x: Value, repeats: Value) -> Value:
    """Elements along an axis, each as often as it says."""
    i, type = node.op.axis, node.inputs[1].type
    made = full(x, node.inputs[0].type, [i])
    if is_known(repeats) and np.unique(np.asarray(repeats, object)).size == 1:
        return gc.repeat(made, number(np.asarray(repeats).flat[0], "a number"), axis(i))
    if type.ndim == 0:
        return gc.repeat(made, number(repeats, "a number"), axis(i))
    counts = moved(full(repeats, type), [0])
    if type.shape[0] == 1:
        return gc.repeat(made, number(counts.isel({axis(0): 0}), "a number"), axis(i))
    return gc.repeat(made, renamed(counts, {axis(0): axis(i)}), axis(i))


def inside(i: Tensor, size: Size) -> Tensor:
    """Positions that must be inside of an axis, counted from its start."""
    (dim,) = new_names(["position"], i)
    return gc.arange(size, dim=dim).isel({dim: gc.where(i < 0, gc.full({}, size), i)})


@rule("UnravelIndex")
def unravelled(node: Apply, at: Value, sizes: Value) -> Sequence[Value]:
    """Positions along each axis from row-major positions in all."""
    shape = numbers(sizes, len(node.outputs), "a size")
    rest, found = lift(at, node.inputs[0].type), list[Value]()
    *later, first = shape[::-1] if node.op.order == "C" else shape
    for size in later:
        found.append(rest % size)
        rest = rest // size
    found.append(inside(rest, first))
    return found[::-1] if node.op.order == "C" else found


@rule("RavelMultiIndex")
def ravelled(node: Apply, *operands: Value) -> Value:
    """Row-major positions from those along each axis."""
    *places, sizes = operands
    shape = numbers(sizes, len(places), "a size")
    pairs: list[Any] = list(zip(places, node.inputs, shape))
    n = max([v.type.ndim for v in node.inputs[:-1]], default=0)
    total: Any = 0
    for place, v, size in pairs if node.op.order == "C" else pairs[::-1]:
        i = aligned(place, v.type, n)
        match node.op.mode:
            case "wrap":
                i = i % size
            case "clip":
                i = gc.minimum(gc.maximum(i, 0), size - 1)
            case _:
                i = inside(i, size)
        total = total * size + i
    return gc.astype(total, "int64")
