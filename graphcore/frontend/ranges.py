"""Tensors filled by position: ranges and grids."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphcore.ir.dtypes import INT
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.sizes import Expression, Size, maximum
from graphcore.ops import leaf

from .arguments import dtype_of, names, size_of
from .base import refusal, wrap
from .elementwise import astype, floor
from .formulas import where
from .lift import Operand, array, common, promoted
from .shape import transpose

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "arange",
    "linspace",
]


def arange(
    start: complex | Expression,
    stop: complex | Expression | None = None,
    step: complex = 1,
    *,
    dim: str,
    dtype: npt.DTypeLike | None = None,
) -> Tensor:
    """start, start + step, ... up to and without `stop`, along one dim; `arange(stop)` starts at 0.

    Integers and sizes give int64 by default, floats float64.

    >>> import graphcore as gc
    >>> gc.arange(5, dim="t"), gc.arange(0, 1, 0.25, dim="t")
    (<Tensor: i64[t=5]>, <Tensor: f64[t=4]>)
    >>> x = gc.tensor("x", {"batch": None})
    >>> gc.arange(x.sizes["batch"], dim="batch")
    <Tensor: i64[batch]>
    """
    if stop is None:
        start, stop = 0, start
    (name,) = names("arange", (dim,))
    if any(isinstance(end, Expression) for end in (start, stop)):
        made = count_up(name, start, stop, step)
    else:
        values = np.arange(start, stop, step)  # type: ignore[call-overload]
        made = wrap(array("arange", values, (name,)))
        if values.dtype == INT and (start, step) == (0, 1):
            made = iota(name, len(values))
    return made if dtype is None else astype(made, dtype)


def iota(dim: str, size: Size) -> Tensor:
    """0, 1, 2, ... along one dim."""
    return wrap(leaf.iota(size=size, dtype=INT, dims=(dim,)))


def count_up(dim: str, start: Any, stop: Any, step: Any) -> Tensor:
    """A range of integers of which the ends may be sizes."""
    try:
        start, stop = (s if isinstance(s, Expression) else operator.index(s) for s in (start, stop))
        step = operator.index(step)
    except TypeError:
        cure = "with a symbolic size, use integers, or scale the result"
        reason = f"{start!r}, {stop!r}, {step!r} are not all integers or sizes"
        raise refusal("arange", reason, cure=cure, kind=GraphTypeError) from None
    if step == 0:
        raise refusal("arange", "the step is 0")
    gap = stop - start if step > 0 else start - stop
    made = iota(dim, maximum((gap + abs(step) - 1) // abs(step), 0))
    scaled = made if step == 1 else made * step
    return scaled if isinstance(start, int) and start == 0 else scaled + start


def linspace(
    start: Operand,
    stop: Operand,
    num: int | Expression = 50,
    *,
    dim: str,
    endpoint: bool = True,
    dtype: npt.DTypeLike | None = None,
) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, along one dim.

    The ends may be tensors, whose dims come after `dim`; without `endpoint`, `stop` is left out.
    For an integer `dtype` values are rounded down.

    >>> import graphcore as gc
    >>> gc.linspace(0, 1, 5, dim="t")
    <Tensor: f64[t=5]>
    """
    (name,) = names("linspace", (dim,))
    size = size_of("linspace", name, num)
    ends = [wrap(node) for node in common("linspace", start, stop)]
    inside = promoted(*[end.dtype for end in ends], float)
    wanted = inside if dtype is None else dtype_of("linspace", dtype)
    if isinstance(size, int) and all(end.node.op is leaf.full and not end.dims for end in ends):
        first, last = (end.node.attrs["value"].array for end in ends)
        values = np.linspace(first, last, size, endpoint=endpoint, dtype=wanted)
        return wrap(array("linspace", values, (name,)))
    place, intervals = iota(name, size), maximum(size - 1 if endpoint else size, 1)
    first, last = (astype(end, inside) for end in ends)
    made = first + place * ((last - first) / intervals)
    if endpoint:  # the last is exact
        made = where(place < intervals, made, last)
    if wanted.kind in "iu":
        made = floor(made)
    order = tuple(dict.fromkeys((name, *made.dims)))
    return astype(transpose(made, *order), wanted)
