"""Missing values, that is, nan: found and replaced."""

from __future__ import annotations

from graphcore.frontend.core.base import Tensor, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.ir.help_text import parameters

from .elementwise import isnan, logical_not
from .formulas import keep_where

__all__ = [
    "fillna",
    "isnull",
    "notnull",
]


@parameters(value="A tensor or number, aligned by name.")
def fillna(x: Operand, value: Operand) -> Tensor:
    """`x` with nan replaced by `value`, which broadcasts by name; the dims of `x` come first.

    >>> x = gc.constant([1.0, float("nan")], "t")
    >>> gc.compile([], gc.fillna(x, 0))()
    array([1., 0.])
    """
    single(value)  # None is no value here, though `where` has a default
    return keep_where(x, notnull(x), value)


def isnull(x: Operand) -> Tensor:
    """Whether an element is missing, that is, nan; never for integers and bool.

    >>> gc.compile([], gc.isnull(gc.constant([1.0, float("nan")], "row")))()
    array([False,  True])
    """
    return isnan(wrap(single(x)))


def notnull(x: Operand) -> Tensor:
    """Whether an element is not missing, that is, not nan; always for integers and bool.

    >>> gc.compile([], gc.notnull(gc.constant([1.0, float("nan")], "row")))()
    array([ True, False])
    """
    return logical_not(isnan(wrap(single(x))))


def may_be_null(x: Tensor) -> bool:
    """Whether the dtype of `x` has a nan."""
    return x.dtype.kind in "fc"
