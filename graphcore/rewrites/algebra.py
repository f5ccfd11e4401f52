"""Algebra that is exact for floating point, nan, infinities and the sign of zero included."""

from __future__ import annotations

import numpy as np

from graphcore.analysis.values import is_finite, is_normal, is_power_of_two
from graphcore.ir import BOOL, DType, Literal, Node, Trait
from graphcore.ir.axes import Pointwise
from graphcore.ir.sizes import minimum, same
from graphcore.ops import elementwise, leaf
from graphcore.ops.elementwise import cast, multiply, square, where
from graphcore.ops.tensor import expand, gather, multiply_no_nan, slice_

from . import plain
from .engine import RuleSet
from .pattern import P, variables

x, y, z, c = variables("x y z c")


def inexact(x: Node) -> Node | None:
    """`x` if it is floats; None for integers and bool, as their quotient has another dtype."""
    return x if x.type.dtype.kind in "fc" else None


def never(x: Node) -> Node | None:
    """False everywhere, as integers and bool have no nan."""
    return None if inexact(x) else plain.full(False, BOOL, x.type.shape)


algebra = RuleSet(
    [
        (x * 1, lambda x: x),
        (x / 1, lambda x: inexact(x)),
        (x - 0, lambda x: x),
        (x + -0.0, lambda x: x),
        (x * -1, lambda x: -x),
        (x / -1, lambda x: inexact(x) and -x),
        (P.negative(-x), lambda x: x),
        (x + -y, lambda x, y: x - y),
        (x - -y, lambda x, y: x + y),
        (-x * y, lambda x, y: -(x * y)),
        (-x / y, lambda x, y: -(x / y)),
        (x / -y, lambda x, y: -(x / y)),
        (P.square(-x), lambda x: square(x)),
        (P.absolute(-x), lambda x: inexact(elementwise.absolute(x))),
        (P.conjugate(P.conjugate(x)), lambda x: x),
        (P.isnan(x), lambda x: never(x)),
        (P.logical_not(P.logical_not(x)), lambda x: x if x.type.dtype.kind == "b" else None),
        (P.where(c, x, x), lambda c, x: x),
        (P.where(c, P.where(c, x, y), z), lambda c, x, y, z: where(c, x, z)),
        (P.where(c, x, P.where(c, y, z)), lambda c, x, y, z: where(c, x, z)),
        (P.where(P.logical_not(c), x, y), lambda c, x, y: where_bool(c, x, y)),
    ]
)


def where_bool(condition: Node, x: Node, y: Node) -> Node | None:
    """where(not c, x, y) = where(c, y, x)"""
    return where(condition, y, x) if condition.type.dtype.kind == "b" else None


@algebra.on(elementwise.where, under=[leaf.full])
def where_of_known(node: Node) -> Node | None:
    """where(True, x, y) = x, and where(False, x, y) = y"""
    condition, x, y = node.inputs
    if condition.op is not leaf.full:
        return None
    return x if condition.attrs["value"].item() else y


@algebra.on(elementwise.logical_and, elementwise.logical_or, under=[leaf.full, leaf.constant])
def logic_of_known(node: Node) -> Node | None:
    """(False and x) = False, (True and x) = x, and so for `or`, of bool"""
    for known, x in (node.inputs, node.inputs[::-1]):
        if Trait.KNOWN in known.op.traits and x.type.dtype.kind == known.type.dtype.kind == "b":
            decides = known.attrs["value"].array == (node.op is elementwise.logical_or)
            if decides.all():
                return plain.full(node.op is elementwise.logical_or, BOOL, node.type.shape)
            if not decides.any():
                return x
    return None


@algebra.on(multiply_no_nan, under=[leaf.full, elementwise.negative])
def multiply_no_nan_of_simple(node: Node) -> Node | None:
    """f = multiply_no_nan: f(x, c) = x * c, if c is known to be finite; f(-x, y) = -f(x, y)"""
    x, factor = node.inputs
    if is_finite(factor):
        return x * factor
    return -multiply_no_nan(x.inputs[0], factor) if x.op is elementwise.negative else None


@algebra.on(multiply, under=[multiply])
def scaled_twice(node: Node) -> Node | None:
    """a * (b * x) = (a * b) * x, where a or b is a power of two, as in 0.5 * (2 * x)"""
    if node.type.dtype.kind != "f" or (outer := number_and_factor(node)) is None:
        return None
    a, inner = outer
    if inner.op is not multiply or (factors := number_and_factor(inner)) is None:
        return None
    b, x = factors
    values = [c.attrs["value"].array for c in (a, b)]
    with np.errstate(all="ignore"):
        product = np.asarray(values[0] * values[1])
    if not all(is_normal(v) for v in (*values, product)) or not any(map(is_power_of_two, values)):
        return None
    return leaf.full(value=Literal(product, a.type.dtype), shape=a.type.shape, dims=None) * x


def number_and_factor(product: Node) -> tuple[Node, Node] | None:
    """The number and the other factor of a product with a number."""
    x, y = product.inputs
    return (x, y) if x.op is leaf.full else (y, x) if y.op is leaf.full else None


@algebra.on(cast)
def same_dtype(node: Node) -> Node | None:
    """cast(x, dtype of x) = x, and two casts are one where the first loses nothing"""
    (x,), dtype = node.inputs, node.attrs["dtype"]
    if x.type.dtype == dtype:
        return x
    if x.op is cast and lossless(x.inputs[0].type.dtype, x.type.dtype):
        return cast(x.inputs[0], dtype=dtype)
    return None


def lossless(source: DType, target: DType) -> bool:
    """Whether `target` has every value of `source`; NumPy calls a cast of int64 to float64 safe."""
    rounded = source.kind in "iu" and source.itemsize == 8 and target.kind in "fc"
    return np.can_cast(source, target) and not rounded


FOLDED = 4096
"""The most values of a folded constant: a larger array would cost more than computing it."""


@algebra.on(Pointwise, under=[leaf.full, leaf.constant])
def fold_constants(node: Node) -> Node | None:
    """An op of values known now is a value known now"""
    inputs = node.inputs
    if node.op is not cast and node.op not in elementwise.UFUNC:
        return None
    for x in inputs:
        if x.op is not leaf.full and x.op is not leaf.constant:
            return None
    values = [x.attrs["value"].array for x in inputs]
    arrays = [v for v in values if v.ndim]
    if any(v.size > FOLDED for v in arrays):
        return None
    folded = numpy_result(node, values)
    if folded is None:
        return None
    if arrays:
        return leaf.constant(value=Literal(folded, node.type.dtype), dims=None)
    return leaf.full(value=Literal(folded, node.type.dtype), shape=node.type.shape, dims=None)


def numpy_result(node: Node, values: list[np.ndarray]) -> np.ndarray | None:
    """The result that NumPy has for values; None if it takes SciPy, or fails as the call will."""
    ufunc = elementwise.UFUNC.get(node.op)
    with np.errstate(all="ignore"):
        try:
            if ufunc is None:
                (value,) = values
                real = value.real if node.type.dtype.kind not in "cb" else value
                return np.asarray(real.astype(node.type.dtype))
            return None if isinstance(ufunc, str) else np.asarray(ufunc(*values))
        except (ValueError, TypeError, OverflowError):
            return None


@algebra.on(slice_, under=[leaf.iota])
def slice_of_iota(node: Node) -> Node | None:
    """slice(0, 1, 2, ...) is counted from its own start, so that other positions are never made"""
    (x,) = node.inputs
    (start,), (size,), (step,) = (node.attrs[name] for name in ("starts", "sizes", "steps"))
    if start == 0 and step == 1:
        found: Node = leaf.iota(**x.attrs | {"size": size})
        return found
    if not isinstance(start, int) or not isinstance(size, int):
        return None
    if size <= FOLDED:
        return positions(start + step * np.arange(size), x)
    return leaf.iota(**x.attrs | {"size": size}) * step + start if is_short(node) else None


@algebra.on(slice_, under=[Pointwise])
def slice_of_counted(node: Node) -> Node | None:
    """slice(f(x, y)) = f(slice(x), slice(y)), of numbers that are counted, if most are left out"""
    (x,) = node.inputs
    if not is_short(node) or not is_counted(x):
        return None
    return x.with_inputs(*[slice_(y, **node.attrs) for y in x.inputs])


def is_short(part: Node) -> bool:
    """Whether a slice is known to have at most half of the places."""
    double, whole = 2 * part.type.count, part.inputs[0].type.count
    return same(minimum(double, whole), double) is True


def is_counted(x: Node, depth: int = 4) -> bool:
    """Whether `x` is made of nothing but numbers and positions, in few steps."""
    if x.op is expand:
        (x,) = x.inputs
    if x.op is leaf.full or x.op is leaf.iota:
        return True
    return depth > 0 and x.op.pointwise and all(is_counted(y, depth - 1) for y in x.inputs)


@algebra.on(gather, under=[leaf.iota])
def gather_of_iota(node: Node) -> Node | None:
    """gather(0, 1, 2, ...; i) = i, for positions known now"""
    x, *indices = node.inputs
    if x.op is not leaf.iota or indices[0].op is not leaf.constant:
        return None
    size, places = x.type.shape[0], indices[0].attrs["value"].array
    if not isinstance(size, int) or not ((places >= -size) & (places < size)).all():
        return None
    return positions(np.where(places < 0, places + size, places), x)


def positions(values: np.ndarray, like: Node) -> Node:
    """Positions known now, of the dtype of `like`."""
    found: Node = leaf.constant(value=Literal(values, like.type.dtype), dims=None)
    return found
