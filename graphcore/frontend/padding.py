"""Dims whose places go on beyond their ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, maximum, minimum
from graphcore.ir.types import DType

from .base import refusal, wrap
from .creation import filled
from .elementwise import astype
from .lift import Operand, out_of_bounds, single, weak
from .moves import amounts, cut, join

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "shift",
]


def shift(
    x: Operand,
    shifts: Mapping[str, Size] | None = None,
    /,
    fill_value: Operand | None = None,
    **more: Size,
) -> Tensor:
    """`x` with values moved along dims; what leaves at one end is lost, and the other is filled.

    Parameters
    ----------
    x
        A tensor.
    shifts
        By how many places each dim moves, forwards if positive: integers or sizes, as a dict or as
        keywords.
    fill_value
        A number or tensor, taken in the dtype of `x`. By default nan, for which integers become
        floats: float32 those of up to 16 bits, float64 the rest.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], [gc.shift(x, t=1), gc.shift(x, t=-1, fill_value=0)])()
    [array([nan,  1.,  2.]), array([2, 3, 0])]
    """
    node = single("shift", x)
    wanted = amounts("shift", node, shifts, more)
    if not wanted:
        return wrap(node)
    node, fill = with_fill("shift", node, fill_value)
    for dim, places in wanted.items():
        size = node.type.size(dim)
        before, after = (minimum(maximum(p, 0), size) for p in (places, -places))
        kept = cut(node, dim, after, size - before - after)
        ends = [constant_end(node, dim, end, fill) for end in (before, after)]
        node = join([ends[0], kept, ends[1]], dim)
    return wrap(node)


def with_fill(function: str, x: Node, value: Operand | None) -> tuple[Node, Node]:
    """`x`, and what fills its new places, in one dtype: by default nan, in one that has it."""
    if value is not None:
        return x, in_dtype(function, value, x)
    dtype: DType = x.type.dtype
    if dtype.kind == "b":
        cure = "say what fills it, such as False, or cast it with astype"
        raise refusal(function, "there is no nan among bool", x, cure=cure)
    if dtype.kind in "iu":  # as xarray has it
        dtype = np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
    nan = complex(math.nan, math.nan) if dtype.kind == "c" else math.nan
    x = astype(wrap(x), dtype).node
    return x, in_dtype(function, nan, x)


def in_dtype(function: str, value: Operand, x: Node) -> Node:
    """A value in the dtype of `x`; a number that would become another is refused."""
    dtype: DType = x.type.dtype
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float, complex)):
        if dtype.kind in "biu" and not exact(value, dtype):
            raise out_of_bounds(function, value, dtype, [x])
        return weak(function, value, dtype, [x])
    node = single(function, value)
    if not np.can_cast(node.type.dtype, dtype, "same_kind"):
        cure = "cast one of them with astype"
        raise refusal(function, f"{node.type.dtype} does not fit {dtype}", x, node, cure=cure)
    return astype(wrap(node), dtype).node


def exact(value: complex, dtype: DType) -> bool:
    """Whether an integer dtype, or bool, has this value."""
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return value.imag == 0 and low <= value.real <= high and value.real == int(value.real)


def constant_end(x: Node, dim: str, size: Size, fill: Node) -> Node:
    """So many places of `dim`, all filled, to go before or after `x`."""
    sizes = x.type.sizes | {dim: size}
    return filled(fill, tuple(sizes), tuple(sizes.values())).node
