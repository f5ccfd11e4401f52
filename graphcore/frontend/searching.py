"""Where values stand among sorted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from graphcore.ops import named

from .arguments import dim_of
from .base import refusal, wrap
from .lift import Operand, common

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "searchsorted",
]

Side = Literal["left", "right"]


def searchsorted(x: Operand, values: Operand, dim: str, side: Side = "left") -> Tensor:
    """Where `values` would be put into `x`, sorted along `dim`, to keep it in order.

    That is how many values of `x` are below, or with `side` "right" not above; nan counts as the
    largest. Other dims align by name, so each row of `x` is searched for its own values. The dims
    are those of `x` without `dim`, then the new ones of `values`.

    >>> import graphcore as gc
    >>> x, values = gc.constant([1.0, 2.0, 2.0, 3.0], "t"), gc.constant([2.0, 9.0], "row")
    >>> gc.compile([], gc.searchsorted(x, values, dim="t"))()
    array([1, 4])
    """
    rows, wanted = common("searchsorted", x, values)
    name = dim_of("searchsorted", rows, dim)
    if side not in ("left", "right"):
        raise refusal("searchsorted", f"side={side!r}", rows, cure="use 'left' or 'right'")
    return wrap(named.searchsorted(rows, wanted, dim=name, side=side))
