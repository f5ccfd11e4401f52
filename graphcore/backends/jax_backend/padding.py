"""Axes that are padded: what stands beyond their last element changes nothing.

Ops that treat the elements of an axis one by one need not know of it. Before an op brings elements
together, the padding is replaced by the neutral element of that op.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.ir import DType, Node, Op, Size, TensorType
from graphcore.ir.axes import How, operands, values
from graphcore.ir.sizes import unknowns
from graphcore.ops import elementwise, tensor

from .entries import Value
from .failures import Tracing

Neutral: TypeAlias = Callable[[DType], Any]
"""The element of a dtype that stands in the padding."""


def lowest(dtype: DType) -> Any:
    """The least number of a dtype."""
    return LEAST[dtype.kind] if dtype.kind in LEAST else np.iinfo(dtype).min


def highest(dtype: DType) -> Any:
    """The greatest number of a dtype."""
    return MOST[dtype.kind] if dtype.kind in MOST else np.iinfo(dtype).max


LEAST = {"f": -np.inf, "c": -np.inf, "b": False}
MOST = {"f": np.inf, "c": np.inf, "b": True}


def last(dtype: DType) -> Any:
    """What is sorted to the end."""
    return np.nan if dtype.kind in "fc" else highest(dtype)


def zero(dtype: DType) -> Any:
    return 0


def one(dtype: DType) -> Any:
    return 1


SUMS = (tensor.sum_, tensor.einsum, tensor.matmul, tensor.matvec, tensor.vecdot, tensor.norm)
NEUTRAL: dict[Op, Neutral] = {
    **dict.fromkeys((*SUMS, tensor.any_, tensor.overlap_add), zero),
    **dict.fromkeys((tensor.prod, tensor.all_, elementwise.power), one),
    **dict.fromkeys((tensor.max_, tensor.argmax), lowest),
    **dict.fromkeys((tensor.min_, tensor.argmin), highest),
    **dict.fromkeys((tensor.sort, tensor.searchsorted), last),
}
"""What stands in the padding of an op's operands, so that it changes nothing of the result."""

FORWARD = frozenset(
    {
        *(tensor.cumsum, tensor.cumprod, tensor.cummax, tensor.cummin),
        *(tensor.recurrence, tensor.logcumsumexp, tensor.windows),
    }
)
"""Ops along an axis whose elements come from those before, or that are as far from the start."""


def mixed(node: Node, names: Container[str]) -> Iterator[tuple[int, int]]:
    """The operands and axes of sizes of these names along which a node brings elements together."""
    by_result: Any = None
    for k, type in enumerate(operands(node)):
        for axis, size in enumerate(type.shape):
            if any(name in names for name in unknowns(size)):
                by_result = by_result or node.op.axes.sources(node)
                if not all(is_each(result[k], axis) for result in by_result):
                    yield k, axis
                elif node.op is elementwise.power and node.type.dtype.kind == "i":
                    yield k, axis  # it may refuse an element


def is_each(sources: Sequence[Any], axis: int) -> bool:
    """Whether an axis of a result has the elements of this one, each computed by itself."""
    return any(s is not None and s.how is How.EACH and s.axes == (axis,) for s in sources)


def touches(node: Node, names: Container[str]) -> bool:
    """Whether an axis of an operand or of a result has a size of these names."""
    every = (*operands(node), *values(node.type))
    return any(name in names for type in every for size in type.shape for name in unknowns(size))


def masked(cx: Tracing, node: Node, xs: list[Value]) -> list[Value]:
    """Operands with neutral elements in the padding of axes that an op brings together."""
    counts = cx.found.counts
    if not counts or node.op not in NEUTRAL:
        return xs
    found = [*xs]
    for k, axis in mixed(node, counts):
        size = node.inputs[k].type.shape[axis]
        found[k] = filled(cx, found[k], axis, size, NEUTRAL[node.op])
    return found


def filled(cx: Tracing, x: Value, axis: int, size: Size, neutral: Neutral) -> Value:
    """An array with a neutral element in the padding of an axis."""
    return jnp.where(
        along(inside(cx, size), axis, x.ndim), x, jnp.asarray(neutral(x.dtype), x.dtype)
    )


def along(flags: Value, axis: int, ndim: int) -> Value:
    """Flags along one of several axes, to be broadcast along the others."""
    return flags.reshape([-1 if i == axis else 1 for i in range(ndim)])


def inside(cx: Tracing, size: Size) -> Value:
    """Which places along an axis in memory hold elements."""
    return lax.iota(jnp.int64, cx.size(size)) < cx.found.count(size)


def valid(cx: Tracing, shape: Sequence[int], type: TensorType) -> Value | None:
    """Which places of an array are no padding, whose axes are the first ones of a type."""
    found = None
    for axis, (_, size) in enumerate(zip(shape, type.shape, strict=False)):
        if cx.found.is_padded(size):
            flags = along(inside(cx, size), axis, len(shape))
            found = flags if found is None else found & flags
    return None if found is None else jnp.broadcast_to(found, shape)
