"""Sums, extremes and their like over dims, under xarray's names."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Never

from graphcore.ir.errors import GraphTypeError
from graphcore.ir.op import Op
from graphcore.ops import named

from .arguments import Dim, dims_of
from .base import refusal, wrap
from .lift import Operand, single

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def reduce(op: Op, x: Operand, dim: Dim, unknown: dict[str, Never], **attrs: Any) -> Tensor:
    """What `op` computes over dims; keywords such as NumPy's `axis` are refused."""
    name = op.name
    node = single(name, x)
    if unknown:
        reason = f"takes no {', '.join(unknown)}"
        cure = "axes have names here: dim='row'"
        raise refusal(name, reason, node, cure=cure, kind=GraphTypeError)
    return wrap(op(node, dims=dims_of(name, node, dim), **attrs))


def sum(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Sum over one dim, several, or all (None).

    Small integers and bool are widened, as in NumPy. The sum over an empty dim is 0.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 2, "col": 3})
    >>> gc.sum(x, dim="row"), gc.sum(x)
    (<Tensor: f64[col=3]>, <Tensor: f64[]>)
    """
    return reduce(named.sum_, x, dim, unknown)


def prod(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Product over one dim, several, or all (None).

    Small integers and bool are widened, as in NumPy. The product over an empty dim is 1.

    >>> import graphcore as gc
    >>> gc.prod(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    return reduce(named.prod, x, dim, unknown)


def mean(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Mean over one dim, several, or all (None).

    Floats keep their dtype, the rest become float64. The mean over an empty dim is nan.

    >>> import graphcore as gc
    >>> gc.mean(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    return reduce(named.mean, x, dim, unknown)


def var(x: Operand, dim: Dim = None, ddof: int = 0, **unknown: Never) -> Tensor:
    """Variance over one dim, several, or all (None): the sum of |x - mean|^2 over (count - ddof).

    The dtype is that of a mean, or real where `x` is complex.

    >>> import graphcore as gc
    >>> gc.var(gc.tensor("x", {"row": 2, "col": 3}), dim="row", ddof=1)
    <Tensor: f64[col=3]>
    """
    return reduce(named.var, x, dim, unknown, ddof=operator.index(ddof))


def std(x: Operand, dim: Dim = None, ddof: int = 0, **unknown: Never) -> Tensor:
    """Standard deviation over one dim, several, or all (None): the square root of `var`.

    Where all values are equal its derivative is 0.

    >>> import graphcore as gc
    >>> gc.std(gc.tensor("x", {"row": 2, "col": 3}))
    <Tensor: f64[]>
    """
    return reduce(named.std, x, dim, unknown, ddof=operator.index(ddof))


def max(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Largest value over one dim, several, or all (None); nan if any is.

    Tied values share the derivative evenly. An empty dim is refused.

    >>> import graphcore as gc
    >>> gc.max(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    return reduce(named.max_, x, dim, unknown)


def min(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Smallest value over one dim, several, or all (None); nan if any is.

    Tied values share the derivative evenly. An empty dim is refused.

    >>> import graphcore as gc
    >>> gc.min(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[col=3]>
    """
    return reduce(named.min_, x, dim, unknown)


def any(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Whether any value is true, that is, not 0, over one dim, several, or all (None).

    >>> import graphcore as gc
    >>> gc.any(gc.tensor("x", {"row": 2, "col": 3}) > 0, dim="row")
    <Tensor: bool[col=3]>
    """
    return reduce(named.any_, x, dim, unknown)


def all(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Whether all values are true, that is, not 0, over one dim, several, or all (None).

    >>> import graphcore as gc
    >>> gc.all(gc.tensor("x", {"row": 2, "col": 3}) > 0, dim="row")
    <Tensor: bool[col=3]>
    """
    return reduce(named.all_, x, dim, unknown)


def argmax(x: Operand, dim: str | None = None, **unknown: Never) -> Tensor:
    """Position of the first largest value along one dim, or row-major in all values (None).

    The result is int64 and carries no derivative. An empty dim is refused.

    >>> import graphcore as gc
    >>> gc.argmax(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: i64[col=3]>
    """
    return reduce(named.argmax, x, one_dim("argmax", x, dim), unknown)


def argmin(x: Operand, dim: str | None = None, **unknown: Never) -> Tensor:
    """Position of the first smallest value along one dim, or row-major in all values (None).

    The result is int64 and carries no derivative. An empty dim is refused.

    >>> import graphcore as gc
    >>> gc.argmin(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: i64[col=3]>
    """
    return reduce(named.argmin, x, one_dim("argmin", x, dim), unknown)


def one_dim(function: str, x: Operand, dim: Any) -> Any:
    """`dim`, unless it is several."""
    if isinstance(dim, (tuple, list, set)) and len(dim) != 1:
        reason = f"searches one dim, or all, not {dim}"
        cure = "stack the dims into one first"
        raise refusal(function, reason, single(function, x), cure=cure)
    return dim


def cumsum(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Running sum along one dim, or along several or all (None) one after the other.

    Small integers and bool are widened, as in NumPy.

    >>> import graphcore as gc
    >>> gc.cumsum(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[row=2, col=3]>
    """
    return reduce(named.cumsum, x, dim, unknown)


def cumprod(x: Operand, dim: Dim = None, **unknown: Never) -> Tensor:
    """Running product along one dim, or along several or all (None) one after the other.

    Small integers and bool are widened, as in NumPy.

    >>> import graphcore as gc
    >>> gc.cumprod(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[row=2, col=3]>
    """
    return reduce(named.cumprod, x, dim, unknown)
