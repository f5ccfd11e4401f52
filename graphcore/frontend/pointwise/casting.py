"""Values in other dtypes: casts, and fill values in the dtype of the tensor that they fill."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from graphcore.frontend.core.base import Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, dtype_of, out_of_bounds, single, weak
from graphcore.frontend.core.weak import kind_of
from graphcore.ir import DType, Node
from graphcore.ir.dtypes import float_for, promote
from graphcore.ir.help_text import parameters
from graphcore.ops import elementwise as ops

__all__ = ["astype"]


@parameters(
    x="A tensor or number.",
    dtype="The dtype, as NumPy takes it.",
)
def astype(x: Operand, dtype: npt.DTypeLike) -> Tensor:
    """`x` in another dtype, as by NumPy's `astype`.

    Complex values are not cast to real dtypes, which would drop the imaginary part: use `x.real` or
    `abs(x)`.

    >>> gc.compile([], gc.astype(gc.constant([1.9, -1.9], "row"), "int32"))()
    array([ 1, -1], dtype=int32)
    """
    node = single(x)
    wanted = dtype_of(dtype, node)
    if node.type.dtype.kind == "c" and wanted.kind in "iuf":
        cure = "use x.real, x.imag, or abs(x) for the modulus"
        reason = f"{node.type.dtype} as {wanted} would lose the imaginary part"
        raise type_refusal(reason, node, cure=cure)
    there = node.type.dtype == wanted and kind_of(node) is None  # a weak tensor may change dtype
    return wrap(node if there else ops.cast(node, dtype=wanted))


def as_float(x: Tensor) -> Tensor:
    """`x` in the dtype that its mean has."""
    return astype(x, float_for(x.dtype))


def with_fill(x: Node, value: Operand | None) -> tuple[Node, Node]:
    """`x` and its fill value in one dtype; by default nan, in a dtype that has it."""
    if value is None and x.type.dtype.kind == "b":
        cure = "give a fill value, such as False, or cast with astype"
        raise refusal("bool has no nan to fill with", x, cure=cure)
    if value is None:
        x, value = with_nan(x)
    x = to_hold(x, value)
    return x, fill_in_dtype(value, x)


def to_hold(x: Node, value: Any) -> Node:
    """`x`; as floats if it has integers and the fill value is nan, or a float of NumPy."""
    if x.type.dtype.kind not in "biu":
        return x
    if isinstance(value, float) and math.isnan(value) and not isinstance(value, np.generic):
        return with_nan(x)[0]
    strong = isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind == "f"
    return astype(wrap(x), promote(x.type.dtype, value.dtype)).node if strong else x


def with_nan(x: Node) -> tuple[Node, complex]:
    """`x` in a dtype that has nan, and that nan, as in xarray."""
    dtype: DType = x.type.dtype
    if dtype.kind in "biu":
        small = dtype.kind in "iu" and dtype.itemsize <= 2
        dtype = np.dtype(np.float32 if small else np.float64)
    nan = complex(math.nan, math.nan) if dtype.kind == "c" else math.nan
    return astype(wrap(x), dtype).node, nan


def fill_in_dtype(value: Operand, x: Node) -> Node:
    """A fill value in the dtype of `x`; a number that the dtype cannot represent is refused."""
    dtype: DType = x.type.dtype
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float, complex)):
        if dtype.kind in "biu" and not exact(value, dtype):
            raise out_of_bounds(value, dtype, [x])
        return weak(value, dtype, [x])
    node = single(value)
    if not np.can_cast(node.type.dtype, dtype, "same_kind"):
        cure = "cast one of them with astype"
        raise refusal(f"{node.type.dtype} cannot be cast to {dtype}", x, node, cure=cure)
    return astype(wrap(node), dtype).node


def exact(value: complex, dtype: DType) -> bool:
    """Whether an integer dtype, or bool, represents this number exactly."""
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return value.imag == 0 and low <= value.real <= high and value.real == int(value.real)
