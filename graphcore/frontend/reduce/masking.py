"""Masked operands of reductions: the one place where masks become neutral elements and counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphcore.frontend.core.arguments import Dim, dims_of, whole
from graphcore.frontend.core.base import Tensor, brief, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, common, condition, single
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.elementwise import equal, maximum, sqrt, square
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.pointwise.missing import isnull, may_be_null, notnull
from graphcore.frontend.shape.dims import broadcast
from graphcore.ir import DType, Op, TensorType
from graphcore.ir.dtypes import HALF, SINGLE
from graphcore.ir.sizes import count
from graphcore.ops import leaf, named

Mask: TypeAlias = "Operand | None"
"""A bool tensor, true for the elements that a reduction counts; None if all are."""

REDUCED = {
    "x": "A tensor or number.",
    "dim": "The dims to reduce: one name, several, or None for all.",
}
"""Descriptions of the parameters of reductions."""


class Masked(NamedTuple):
    """The elements of `x` that a reduction over `dims` counts: all, or those where `mask` is true.

    The mask has the dims of `x`, in their order.
    """

    x: Tensor
    dims: tuple[str, ...]
    mask: Tensor | None = None

    def fill(self, neutral: complex) -> Tensor:
        """`x` with `neutral` where the mask is false; the masked elements have no influence."""
        return self.x if self.mask is None else choose(self.mask, self.x, neutral)

    def reduce(self, op: Op, neutral: complex, **attrs: Any) -> Tensor:
        """`op` over the elements counted, where `neutral` is its neutral element."""
        return over(op, self.fill(neutral), self.dims, **attrs)

    def size(self) -> Tensor:
        """The number of elements counted, in int64."""
        if self.mask is not None:
            return over(named.sum_, self.mask, self.dims)
        return wrap(single(count(self.x.sizes[dim] for dim in self.dims)))

    def where_some(self, found: Tensor, none: complex) -> Tensor:
        """`found` where any element is counted, else `none`."""
        if self.mask is None:
            return found
        return choose(over(named.any_, self.mask, self.dims), found, none)

    def ratio(self, total: Tensor, ddof: int = 0) -> Tensor:
        """total / (count - ddof); nan where the divisor is not positive."""
        return ratio(total, astype(maximum(self.size() - ddof, 0), total.dtype))


def ratio(total: Tensor, divisor: Tensor, none: float = math.nan) -> Tensor:
    """total / divisor; where the divisor is 0 it is `none`, with derivative 0."""
    empty = equal(divisor, 0)
    return choose(empty, none, total / choose(empty, 1, divisor))


def over(op: Op, x: Tensor, dims: tuple[str, ...], **attrs: Any) -> Tensor:
    """A named reduction."""
    return wrap(op(x.node, dims=dims, **attrs))


def mask_operand(x: Operand, dim: Dim, where: Mask, skipna: bool = False) -> Masked:
    """The operand of a reduction, with the mask that `where` and `skipna` make."""
    node = single(x)
    value = wrap(node)
    mask = None if where is None else mask_of(where)
    if skipna and may_be_null(value):
        mask = notnull(value) if mask is None else notnull(value) & mask
    if mask is not None:
        value, mask = broadcast(value, mask)
    return Masked(value, dims_of(value.node, dim), mask)


def mask_of(where: Operand) -> Tensor:
    """The mask that a user gave as `where`."""
    return condition("where=", where, "compare it: where=(x != 0)")


def identity_of_extreme(dtype: DType, sign: int = 1) -> complex:
    """The identity of max (`sign` 1) or min (-1): no value of the dtype is below, or above, it."""
    match dtype.kind:
        case "b":
            return sign < 0
        case "i" | "u":
            bounds = np.iinfo(dtype)
            return int(bounds.min if sign > 0 else bounds.max)
        case "c":
            return complex(-sign * math.inf, -sign * math.inf)
    return -sign * math.inf


def mean_of(data: Masked) -> Tensor:
    """The mean of the elements counted; nan if there are none."""
    if data.mask is None:
        return data.reduce(named.mean, 0)

    def mean(x: Tensor) -> Tensor:
        own = data._replace(x=x)
        return own.ratio(over(named.sum_, as_float(own.fill(0)), own.dims))

    return by_single(mean, data.x)


def by_single(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """function(x), of float16 by float32: sums and numbers of elements soon exceed float16."""
    if x.dtype != HALF:
        return function(x)
    return astype(function(astype(x, SINGLE)), HALF)


def var_of(data: Masked, ddof: int) -> Tensor:
    """The sum of |x - mean|^2 over (count - ddof), for the elements counted."""
    ddof = whole(ddof, "ddof", data.x, least=None)
    if data.mask is None:
        return data.reduce(named.var, 0, ddof=ddof)

    mask = data.mask

    def var(x: Tensor) -> Tensor:
        own = data._replace(x=x)
        away = choose(mask, as_float(own.fill(0)) - mean_of(own), 0)
        return own.ratio(over(named.sum_, squared_modulus(away), own.dims), ddof)

    return by_single(var, data.x)


def extreme_of(data: Masked, op: Op, sign: int, initial: complex | None = None) -> Tensor:
    """The largest (sign 1) or smallest (-1) of `initial` and the elements counted; nan of none."""
    if initial is None:
        return data.where_some(data.reduce(op, checked_identity(data, sign)), math.nan)
    dtype, (_, start) = data.x.dtype, common(data.x, initial)
    if start.op is not leaf.full or start.type != TensorType(dtype, (), ()):
        reason = f"initial={brief(initial)} is not a number of {dtype}"
        cure = "give a number of Python, or cast the tensor with astype"
        raise type_refusal(reason, data.x, cure=cure)
    return data.reduce(op, identity_of_extreme(dtype, sign), initial=start.attrs["value"])


def running_extreme(data: Masked, op: Op, sign: int) -> Tensor:
    """The largest (sign 1) or smallest (-1) element counted so far; nan before the first."""
    found = data.reduce(op, checked_identity(data, sign))
    if data.mask is None:
        return found
    return choose(over(named.cummax, data.mask, data.dims), found, math.nan)


def checked_identity(data: Masked, sign: int) -> complex:
    """The identity that replaces masked elements; refused for dtypes that have no nan."""
    if data.mask is not None and not may_be_null(data.x):
        reason = f"where= may leave no element, and {data.x.dtype} has no nan for the result"
        cure = "give initial=, or replace elements: gc.where(mask, x, number)"
        raise type_refusal(reason, data.x, cure=cure)
    return identity_of_extreme(data.x.dtype, sign)


def position_of(data: Masked, op: Op, extreme: Op, sign: int) -> Tensor:
    """The position of the first extreme among the elements counted, nan first; -1 if none is."""
    if data.mask is None:
        return data.reduce(op, 0)
    best = data.reduce(extreme, identity_of_extreme(data.x.dtype, sign))
    chosen = data.mask & (equal(data.x, best) | isnull(data.x))
    return data.where_some(over(named.argmax, chosen, data.dims), -1)


def squared_modulus(x: Tensor) -> Tensor:
    """`|x|^2`, smooth at 0."""
    return square(x.real) + square(x.imag) if x.dtype.kind == "c" else square(x)


def root(x: Tensor) -> Tensor:
    """The square root of `x`, with derivative 0 at 0."""
    zero = equal(x, 0)
    return choose(zero, 0, sqrt(choose(zero, 1, x)))
