"""The softmax family over dims."""

from __future__ import annotations

import math

from graphcore.frontend.core.arguments import Dim
from graphcore.frontend.core.base import Tensor
from graphcore.frontend.core.lift import Operand
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.reduce.masking import Mask, masked
from graphcore.frontend.reduce.running import logcumsumexp
from graphcore.ops import named

__all__ = [
    "log_softmax",
    "logcumsumexp",
    "logsumexp",
    "softmax",
]


def softmax(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """exp(x) / sum(exp(x)) over dims, without overflow; 0 where all of `x` is -inf.

    Values where `where` is false take no data, and their result is 0.

    `dim` is the name of one dim, several, or None for all; none vanishes. Floats keep their dtype.

    >>> import graphcore as gc
    >>> gc.special.softmax(gc.tensor("x", {"batch": None, "class": 3}), dim="class")
    <Tensor: f64[batch, class=3]>
    """
    return masked("softmax", x, dim, where).reduce(named.softmax, -math.inf)


def log_softmax(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """x - logsumexp(x) over dims, without overflow.

    Values where `where` is false take no data, and their result is -inf.

    `dim` is the name of one dim, several, or None for all; none vanishes. Floats keep their dtype.

    >>> import graphcore as gc
    >>> gc.special.log_softmax(gc.tensor("x", {"batch": None, "class": 3}), dim="class")
    <Tensor: f64[batch, class=3]>
    """
    data = masked("log_softmax", x, dim, where)
    found = data.reduce(named.log_softmax, -math.inf)
    return found if data.mask is None else choose(data.mask, found, -math.inf)


def logsumexp(x: Operand, dim: Dim = None, *, where: Mask = None) -> Tensor:
    """log(sum(exp(x))) over dims, without overflow; -inf where all of `x` is.

    Values where `where` is false take no data.

    `dim` is the name of one dim, several, or None for all; they vanish. Floats keep their dtype.

    >>> import graphcore as gc
    >>> gc.special.logsumexp(gc.tensor("x", {"batch": None, "class": 3}), dim="class")
    <Tensor: f64[batch]>
    """
    return masked("logsumexp", x, dim, where).reduce(named.logsumexp, -math.inf)
