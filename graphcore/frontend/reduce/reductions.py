"""Sums, extremes and their like over dims, under xarray's names.

`where` is a bool tensor: values where it is false take no data. `skipna` leaves out nan as well.
"""

from __future__ import annotations

import math
from typing import Any

from graphcore.frontend.core.arguments import Dim, whole
from graphcore.frontend.core.base import Tensor, refusal
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.pointwise.elementwise import subtract
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.pointwise.missing import notnull
from graphcore.ops import named

from .masking import Mask, Masked, extreme_of, masked, mean_of, position_of, root, var_of

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


def sum(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    min_count: int | None = None,
) -> Tensor:
    """Sum over one dim, several, or all (None).

    Small integers and bool are widened, as in NumPy. The sum of nothing is 0; it is nan, as a
    float, where fewer than `min_count` values take data.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 2, "col": 3})
    >>> gc.sum(x, dim="row"), gc.sum(x, where=x > 0)
    (<Tensor: f64[col=3]>, <Tensor: f64[]>)
    """
    data = masked("sum", x, dim, where, skipna)
    return with_min_count(data, data.reduce(named.sum_, 0), where, skipna, min_count)


def prod(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    min_count: int | None = None,
) -> Tensor:
    """Product over one dim, several, or all (None).

    Small integers and bool are widened, as in NumPy. The product of nothing is 1; it is nan, as a
    float, where fewer than `min_count` values take data.

    >>> import graphcore as gc
    >>> gc.prod(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    data = masked("prod", x, dim, where, skipna)
    return with_min_count(data, data.reduce(named.prod, 1), where, skipna, min_count)


def with_min_count(
    data: Masked, found: Tensor, where: Mask, skipna: bool, min_count: int | None
) -> Tensor:
    """`found` where `min_count` values take data, else nan."""
    if min_count is None:
        return found
    if where is None and not skipna:
        cure = "skip nan with skipna=True, or say with where= what takes part"
        raise refusal(data.function, "min_count where all values take part", data.x, cure=cure)
    return choose(
        data.size() >= whole(data.function, min_count, "min_count", data.x), found, math.nan
    )


def mean(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Mean over one dim, several, or all (None).

    Floats keep their dtype, the rest become float64. The mean of nothing is nan.

    >>> import graphcore as gc
    >>> gc.mean(gc.tensor("x", {"row": 2, "col": 3}), dim="row", skipna=True)
    <Tensor: f64[col=3]>
    """
    return mean_of(masked("mean", x, dim, where, skipna))


def var(
    x: Operand,
    dim: Dim = None,
    ddof: int = 0,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Variance over one dim, several, or all (None): the sum of |x - mean|^2 over (count - ddof).

    The dtype is that of a mean, or real where `x` is complex. With `where` or `skipna`, the count
    is that of the values that take data, and the variance is nan where `ddof` leaves none.

    >>> import graphcore as gc
    >>> gc.var(gc.tensor("x", {"row": 2, "col": 3}), dim="row", ddof=1)
    <Tensor: f64[col=3]>
    """
    return var_of(masked("var", x, dim, where, skipna), ddof)


def std(
    x: Operand,
    dim: Dim = None,
    ddof: int = 0,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Standard deviation over one dim, several, or all (None): the square root of `var`.

    Where all values are equal its derivative is 0.

    >>> import graphcore as gc
    >>> gc.std(gc.tensor("x", {"row": 2, "col": 3}))
    <Tensor: f64[]>
    """
    data = masked("std", x, dim, where, skipna)
    if data.mask is None:
        return data.reduce(named.std, 0, ddof=whole("std", ddof, "ddof", data.x, least=None))
    return root(var_of(data, ddof))


def max(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    initial: complex | None = None,
) -> Tensor:
    """Largest value over one dim, several, or all (None); nan if any that takes part is.

    Tied values share the derivative evenly. The number `initial` takes part as well. Without it an
    empty dim is refused, and where no value takes part the result is nan (so `where` is refused for
    integers, which have none).

    >>> import graphcore as gc
    >>> gc.max(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    data = masked("max", x, dim, where, skipna)
    return extreme_of(data, named.max_, 1, initial)


def min(
    x: Operand,
    dim: Dim = None,
    *,
    where: Mask = None,
    skipna: bool = False,
    initial: complex | None = None,
) -> Tensor:
    """Smallest value over one dim, several, or all (None); nan if any that takes part is.

    Tied values share the derivative evenly. The number `initial` takes part as well. Without it an
    empty dim is refused, and where no value takes part the result is nan (so `where` is refused for
    integers, which have none).

    >>> import graphcore as gc
    >>> gc.min(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    data = masked("min", x, dim, where, skipna)
    return extreme_of(data, named.min_, -1, initial)


def ptp(x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False) -> Tensor:
    """Peak to peak over one dim, several, or all (None): the largest value less the smallest.

    >>> import graphcore as gc
    >>> gc.ptp(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    data = masked("ptp", x, dim, where, skipna)
    return subtract(extreme_of(data, named.max_, 1), extreme_of(data, named.min_, -1))


def any(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """Whether any value is true, that is, not 0, over one dim, several, or all (None).

    >>> import graphcore as gc
    >>> gc.any(gc.tensor("x", {"row": 2, "col": 3}) > 0, dim="row")
    <Tensor: bool[col=3]>
    """
    return masked("any", x, dim, where).reduce(named.any_, False)


def all(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """Whether all values are true, that is, not 0, over one dim, several, or all (None).

    >>> import graphcore as gc
    >>> gc.all(gc.tensor("x", {"row": 2, "col": 3}) > 0, dim="row")
    <Tensor: bool[col=3]>
    """
    return masked("all", x, dim, where).reduce(named.all_, True)


def count(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """How many values are not nan, over one dim, several, or all (None), in int64.

    >>> import graphcore as gc
    >>> gc.count(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: i64[col=3]>
    """
    return masked("count", notnull(x), dim, where).reduce(named.sum_, False)


def argmax(
    x: Operand,
    dim: str | None = None,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Position of the first largest value along one dim, or row-major in all values (None).

    A nan that takes part comes before all. The result is int64, -1 where no value takes part (as
    `jax.numpy.nanargmax`), and carries no derivative. An empty dim is refused.

    >>> import graphcore as gc
    >>> gc.argmax(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: i64[col=3]>
    """
    data = masked("argmax", x, one_dim("argmax", x, dim), where, skipna)
    return position_of(data, named.argmax, named.max_, 1)


def argmin(
    x: Operand,
    dim: str | None = None,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Position of the first smallest value along one dim, or row-major in all values (None).

    A nan that takes part comes before all. The result is int64, -1 where no value takes part (as
    `jax.numpy.nanargmin`), and carries no derivative. An empty dim is refused.

    >>> import graphcore as gc
    >>> gc.argmin(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: i64[col=3]>
    """
    data = masked("argmin", x, one_dim("argmin", x, dim), where, skipna)
    return position_of(data, named.argmin, named.min_, -1)


def one_dim(function: str, x: Operand, dim: Any) -> Any:
    """`dim`, unless it is several."""
    if isinstance(dim, (tuple, list, set)) and len(dim) != 1:
        reason = f"searches one dim, or all, not {dim}"
        cure = "stack the dims into one first"
        raise refusal(function, reason, single(function, x), cure=cure)
    return dim
