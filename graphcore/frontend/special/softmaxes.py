"""The softmax family over dims."""

from __future__ import annotations

import math

from graphcore.frontend.core.arguments import Dim
from graphcore.frontend.core.base import Tensor
from graphcore.frontend.core.lift import Operand
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.reduce.masking import REDUCED, Mask, mask_operand
from graphcore.frontend.reduce.running import logcumsumexp
from graphcore.ir.help_text import parameters
from graphcore.ops import named

__all__ = [
    "log_softmax",
    "logcumsumexp",
    "logsumexp",
    "softmax",
]


@parameters(**REDUCED)
def softmax(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """`exp(x) / sum(exp(x))` over dims, without overflow; 0 where all of `x` is -inf.

    The dims stay. Floats keep their dtype. Elements left out get 0. Without `dim` all elements
    together sum to 1, as in SciPy; PyTorch and JAX mean one dim.

    >>> x = gc.constant([[0.0, 0.0], [0.0, 1000.0]], ("batch", "class"))
    >>> gc.compile([], gc.special.softmax(x, dim="class"))()
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    return mask_operand(x, dim, where).reduce(named.softmax, -math.inf)


@parameters(**REDUCED)
def log_softmax(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """`x - logsumexp(x)` over dims, without overflow.

    The dims stay. Floats keep their dtype. Elements left out get -inf. Without `dim` it is over all
    elements together, as in SciPy; PyTorch and JAX mean one dim.

    >>> x = gc.constant([[0.0, 0.0], [0.0, 1000.0]], ("batch", "class"))
    >>> gc.compile([], gc.special.log_softmax(x, dim="class"))()
    array([[-6.93147181e-01, -6.93147181e-01],
           [-1.00000000e+03,  0.00000000e+00]])
    """
    data = mask_operand(x, dim, where)
    found = data.reduce(named.log_softmax, -math.inf)
    return found if data.mask is None else choose(data.mask, found, -math.inf)


@parameters(**REDUCED)
def logsumexp(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """`log(sum(exp(x)))` over dims, without overflow; -inf where all of `x` is.

    The dims are removed. Floats keep their dtype.

    >>> x = gc.constant([[0.0, 0.0], [0.0, 1000.0]], ("batch", "class"))
    >>> gc.compile([], gc.special.logsumexp(x, dim="class"))()
    array([6.93147181e-01, 1.00000000e+03])
    """
    return mask_operand(x, dim, where).reduce(named.logsumexp, -math.inf)
