"""Missing values, that is, nan, filled; values looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphcore.ir.names import Hidden, apart

from .arguments import dim_of, whole
from .base import Base, wrap
from .creation import constant
from .cumulative import cummax
from .elementwise import maximum
from .formulas import keep_where, where
from .indexing import take_along
from .lift import Operand, as_array, single
from .masking import may_be_null, notnull
from .moves import flip
from .ranges import arange
from .searching import searchsorted
from .shape import stack
from .sorting import sort

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "bfill",
    "ffill",
    "fillna",
    "isin",
]


def fillna(x: Operand, value: Operand) -> Tensor:
    """`x` with `value`, which broadcasts by name, in place of nan; the dims of `x` come first.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, float("nan")], "t")
    >>> gc.compile([], gc.fillna(x, 0))()
    array([1., 0.])
    """
    single("fillna", value)  # None is no value here, though `where` has a default
    return keep_where(x, notnull(x), value)


def ffill(x: Operand, dim: str, limit: int | None = None) -> Tensor:
    """`x` with the last value before it along `dim` in place of nan; nan where there is none.

    No more than `limit` nan in a row are filled; None is no limit.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, float("nan"), 3.0, float("nan")], "t")
    >>> gc.compile([], gc.ffill(x, "t"))()
    array([1., 1., 3., 3.])
    """
    value = wrap(single("ffill", x))
    name = dim_of("ffill", value.node, dim)
    if not may_be_null(value):
        return value
    place = arange(value.sizes[name], dim=name)
    last = cummax(where(notnull(value), place, -1), name)
    found = last >= 0
    if limit is not None:
        most = whole("ffill", limit, "limit", value, least=1)
        found = found & (place - last <= most)
    return keep_where(take_along(value, maximum(last, 0), name), found)


def bfill(x: Operand, dim: str, limit: int | None = None) -> Tensor:
    """`x` with the next value after it along `dim` in place of nan; nan where there is none.

    No more than `limit` nan in a row are filled; None is no limit.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, float("nan"), 3.0, float("nan")], "t")
    >>> gc.compile([], gc.bfill(x, "t"))()
    array([ 1.,  3.,  3., nan])
    """
    return flip(ffill(flip(x, dim), dim, limit), dim)


def isin(x: Operand, values: Any) -> Tensor:
    """Whether a value is among `values`: a list, an array, or a tensor of any dims.

    Values are compared with ==, so that nan is never among them.

    >>> import graphcore as gc
    >>> gc.isin(gc.tensor("x", {"row": 2}, dtype="int64"), [1, 2, 5])
    <Tensor: bool[row=2]>
    """
    value = wrap(single("isin", x))
    if isinstance(values, Base) or hasattr(values, "dims"):
        among = wrap(single("isin", values))
    else:
        among = constant(np.ravel(as_array("isin", values, value)), "value")
    dim = apart(Hidden("value"), (*value.dims, *among.dims))
    ordered = sort(stack(among, {dim: among.dims}), dim)
    below, up_to = (searchsorted(ordered, value, dim, side) for side in ("left", "right"))
    return (below < up_to) & notnull(value)
