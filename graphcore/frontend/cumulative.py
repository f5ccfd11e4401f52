"""Running sums and their like along dims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from graphcore.ops import named

from .arguments import Dim
from .lift import Operand
from .masking import Mask, part_of

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "cumprod",
    "cumsum",
]


def cumsum(
    x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False, **unknown: Never
) -> Tensor:
    """Running sum along one dim, or along several or all (None) one after the other.

    Small integers and bool are widened, as in NumPy. What takes no part adds nothing.

    >>> import graphcore as gc
    >>> gc.cumsum(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[row=2, col=3]>
    """
    return part_of("cumsum", x, dim, where, skipna, unknown).reduce(named.cumsum, 0)


def cumprod(
    x: Operand, dim: Dim = None, *, where: Mask = None, skipna: bool = False, **unknown: Never
) -> Tensor:
    """Running product along one dim, or along several or all (None) one after the other.

    Small integers and bool are widened, as in NumPy. What takes no part changes nothing.

    >>> import graphcore as gc
    >>> gc.cumprod(gc.tensor("x", {"row": 2, "col": 3}), dim="row")
    <Tensor: f64[row=2, col=3]>
    """
    return part_of("cumprod", x, dim, where, skipna, unknown).reduce(named.cumprod, 1)
