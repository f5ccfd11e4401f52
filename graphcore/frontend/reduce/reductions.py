"""Sums, extremes and other reductions over dims, under xarray's names.

`where` is a bool tensor: elements where it is false are left out. `skipna` leaves out nan as well.
"""

from __future__ import annotations

import math
from typing import Any

from graphcore.frontend.core.arguments import Dim, whole
from graphcore.frontend.core.base import Tensor, refusal
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.pointwise.casting import as_float
from graphcore.frontend.pointwise.elementwise import subtract
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.pointwise.missing import notnull
from graphcore.ir import Op
from graphcore.ir.help_text import parameters
from graphcore.ops import named

from .masking import (
    REDUCED,
    Mask,
    Masked,
    by_single,
    extreme_of,
    mask_operand,
    mean_of,
    position_of,
    root,
    var_of,
)

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]

COUNTED = {
    **REDUCED,
    "min_count": "The least number of elements; where there are fewer the result is nan, a float.",
}
CENTRED = {**REDUCED, "ddof": "The number subtracted from the count of elements."}
FROM_INITIAL = {**REDUCED, "initial": "A number that counts as one more element."}
SEARCHED = {**REDUCED, "dim": "The dim to search, or None for all."}
"""Descriptions of parameters that several reductions have."""


@parameters(**COUNTED)
def sum(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    min_count: int | None = None,
) -> Tensor:
    """Sum over dims.

    Small integers and bool are widened, as in NumPy. The sum of no elements is 0.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], [gc.sum(x), gc.sum(x, dim="row"), gc.sum(x, dim="col", where=x > 1)])()
    [array(21), array([5, 7, 9]), array([ 5, 15])]
    """
    data = mask_operand(x, dim, where, skipna)
    return total(data, named.sum_, 0, min_count, leaves_out=where is not None or skipna)


@parameters(**COUNTED)
def prod(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    min_count: int | None = None,
) -> Tensor:
    """Product over dims.

    Small integers and bool are widened, as in NumPy. The product of no elements is 1.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], gc.prod(x, dim="row"))()
    array([ 4, 10, 18])
    """
    data = mask_operand(x, dim, where, skipna)
    return total(data, named.prod, 1, min_count, leaves_out=where is not None or skipna)


def total(data: Masked, op: Op, neutral: int, min_count: int | None, *, leaves_out: bool) -> Tensor:
    """`op` over the elements counted; nan where `min_count` is given and they are fewer."""
    if min_count is None:
        return data.reduce(op, neutral)
    if not leaves_out:
        cure = "leave out nan with skipna=True, or elements with where="
        raise refusal("min_count has no meaning where no elements are left out", data.x, cure=cure)
    least = whole(min_count, "min_count", data.x)
    found = data._replace(x=as_float(data.x)).reduce(op, neutral)
    return choose(data.size() >= least, found, math.nan)


@parameters(**REDUCED)
def mean(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Mean over dims.

    Floats keep their dtype, all others become float64. The mean of no elements is nan.

    >>> x = gc.constant([[1.0, 2.0], [float("nan"), 6.0]], ("row", "col"))
    >>> gc.compile([], [gc.mean(x, dim="row"), gc.mean(x, skipna=True)])()
    [array([nan,  4.]), array(3.)]
    """
    return mean_of(mask_operand(x, dim, where, skipna))


@parameters(**CENTRED)
def var(
    x: Operand,
    dim: Dim = None,
    ddof: int = 0,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Variance over dims: `sum(abs(x - mean) ** 2) / (count - ddof)`.

    The dtype is that of the mean, and real where `x` is complex. The count is that of the elements
    not left out; the variance is nan where the count is not larger than `ddof`.

    >>> x = gc.constant([1.0, 2.0, 6.0], "row")
    >>> gc.compile([], [gc.var(x), gc.var(x, ddof=1)])()
    [array(4.66666667), array(7.)]
    """
    return var_of(mask_operand(x, dim, where, skipna), ddof)


@parameters(**CENTRED)
def std(
    x: Operand,
    dim: Dim = None,
    ddof: int = 0,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Standard deviation over dims: the square root of `var`.

    Where all elements are equal the derivative is 0.

    >>> gc.compile([], gc.std(gc.constant([2.0, 4.0, 4.0, 6.0], "row")))().round(6)
    np.float64(1.414214)
    """
    data = mask_operand(x, dim, where, skipna)
    if data.mask is None:
        return data.reduce(named.std, 0, ddof=whole(ddof, "ddof", data.x, least=None))
    return by_single(lambda x: root(var_of(data._replace(x=x), ddof)), data.x)


@parameters(**FROM_INITIAL)
def max(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    initial: complex | None = None,
) -> Tensor:
    """Largest element over dims; nan if any element is nan.

    Tied elements share the derivative evenly. Without `initial` an empty dim is refused. Where
    `where` or `skipna` leave no element the result is nan, so `where` without `initial` is refused
    for integers, which have no nan.

    >>> x = gc.constant([[3.0, 1.0], [2.0, 4.0]], ("row", "col"))
    >>> gc.compile([], [gc.max(x), gc.max(x, dim="row"), gc.max(x, dim="row", initial=3.5)])()
    [array(4.), array([3., 4.]), array([3.5, 4. ])]
    """
    data = mask_operand(x, dim, where, skipna)
    return extreme_of(data, named.max_, 1, initial)


@parameters(**FROM_INITIAL)
def min(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    initial: complex | None = None,
) -> Tensor:
    """Smallest element over dims; nan if any element is nan.

    Tied elements share the derivative evenly. Without `initial` an empty dim is refused. Where
    `where` or `skipna` leave no element the result is nan, so `where` without `initial` is refused
    for integers, which have no nan.

    >>> x = gc.constant([[3.0, 1.0], [2.0, 4.0]], ("row", "col"))
    >>> gc.compile([], [gc.min(x), gc.min(x, dim="row"), gc.min(x, dim="row", where=x > 1)])()
    [array(1.), array([2., 1.]), array([2., 4.])]
    """
    data = mask_operand(x, dim, where, skipna)
    return extreme_of(data, named.min_, -1, initial)


@parameters(**REDUCED)
def ptp(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Peak to peak over dims: the largest element minus the smallest.

    >>> gc.compile([], gc.ptp(gc.constant([[3, 1], [2, 6]], ("row", "col")), dim="row"))()
    array([1, 5])
    """
    data = mask_operand(x, dim, where, skipna)
    return subtract(extreme_of(data, named.max_, 1), extreme_of(data, named.min_, -1))


@parameters(**REDUCED)
def any(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """Whether any element over dims is true, that is, not 0.

    >>> x = gc.constant([[0, 1], [0, 2]], ("row", "col"))
    >>> gc.compile([], [gc.any(x), gc.any(x > 1, dim="row")])()
    [array(True), array([False,  True])]
    """
    return mask_operand(x, dim, where).reduce(named.any_, False)


@parameters(**REDUCED)
def all(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """Whether all elements over dims are true, that is, not 0.

    >>> x = gc.constant([[0, 1], [0, 2]], ("row", "col"))
    >>> gc.compile([], [gc.all(x), gc.all(x > 0, dim="row")])()
    [array(False), array([False,  True])]
    """
    return mask_operand(x, dim, where).reduce(named.all_, True)


@parameters(**REDUCED)
def count(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """Number of elements over dims that are not nan, in int64.

    >>> x = gc.constant([[1.0, float("nan")], [2.0, 3.0]], ("row", "col"))
    >>> gc.compile([], gc.count(x, dim="row"))()
    array([2, 1])
    """
    return mask_operand(notnull(x), dim, where).reduce(named.sum_, False)


@parameters(**SEARCHED)
def argmax(
    x: Operand,
    dim: str | None = None,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Position of the first largest element along one dim, or row-major among all (None).

    A nan counts as the largest unless it is left out. The result is int64, and -1 where no element
    is left (as `jax.numpy.nanargmax`); it has no derivative. An empty dim is refused.

    >>> x = gc.constant([[3, 1, 9], [2, 7, 5]], ("row", "col"))
    >>> gc.compile([], [gc.argmax(x, dim="row"), gc.argmax(x)])()
    [array([0, 1, 0]), array(2)]
    """
    data = mask_operand(x, one_dim(x, dim), where, skipna)
    return position_of(data, named.argmax, named.max_, 1)


@parameters(**SEARCHED)
def argmin(
    x: Operand,
    dim: str | None = None,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Position of the first smallest element along one dim, or row-major among all (None).

    A nan counts as the smallest unless it is left out. The result is int64, and -1 where no element
    is left (as `jax.numpy.nanargmin`); it has no derivative. An empty dim is refused.

    >>> x = gc.constant([[3, 1, 9], [2, 7, 5]], ("row", "col"))
    >>> gc.compile([], [gc.argmin(x, dim="col"), gc.argmin(x)])()
    [array([1, 0]), array(1)]
    """
    data = mask_operand(x, one_dim(x, dim), where, skipna)
    return position_of(data, named.argmin, named.min_, -1)


def one_dim(x: Operand, dim: Any) -> Any:
    """`dim`, refused if it names several dims."""
    if isinstance(dim, (tuple, list, set)) and len(dim) != 1:
        reason = f"takes one dim, or all, not {dim}"
        raise refusal(reason, single(x), cure="stack the dims into one first")
    return dim
