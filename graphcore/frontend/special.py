"""`gc.special`: special functions under SciPy's names, and the softmax family over dims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphcore.ops import named

from .arguments import Dim, dims_of
from .base import wrap
from .elementwise import (
    digamma,
    erf,
    erfc,
    expit,
    gammaln,
    psi,
    sigmoid,
    softplus,
    xlog1py,
    xlogy,
)
from .lift import Operand, single

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "expit",
    "gammaln",
    "log_softmax",
    "logsumexp",
    "psi",
    "sigmoid",
    "softmax",
    "softplus",
    "xlog1py",
    "xlogy",
]


def softmax(x: Operand, dim: Dim = None) -> Tensor:
    """exp(x) / sum(exp(x)) over dims, without overflow; 0 where all of `x` is -inf.

    `dim` is the name of one dim, several, or None for all; none vanishes. Floats keep their dtype.

    >>> import graphcore as gc
    >>> gc.special.softmax(gc.tensor("x", {"batch": None, "class": 3}), dim="class")
    <Tensor: f64[batch, class=3]>
    """
    node = single("softmax", x)
    return wrap(named.softmax(node, dims=dims_of("softmax", node, dim)))


def log_softmax(x: Operand, dim: Dim = None) -> Tensor:
    """x - logsumexp(x) over dims, without overflow.

    `dim` is the name of one dim, several, or None for all; none vanishes. Floats keep their dtype.

    >>> import graphcore as gc
    >>> gc.special.log_softmax(gc.tensor("x", {"batch": None, "class": 3}), dim="class")
    <Tensor: f64[batch, class=3]>
    """
    node = single("log_softmax", x)
    return wrap(named.log_softmax(node, dims=dims_of("log_softmax", node, dim)))


def logsumexp(x: Operand, dim: Dim = None) -> Tensor:
    """log(sum(exp(x))) over dims, without overflow; -inf where all of `x` is.

    `dim` is the name of one dim, several, or None for all; they vanish. Floats keep their dtype.

    >>> import graphcore as gc
    >>> gc.special.logsumexp(gc.tensor("x", {"batch": None, "class": 3}), dim="class")
    <Tensor: f64[batch]>
    """
    node = single("logsumexp", x)
    return wrap(named.logsumexp(node, dims=dims_of("logsumexp", node, dim)))
