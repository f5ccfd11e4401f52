"""Activations and losses."""

from __future__ import annotations

import math

from graphcore.frontend.core.arguments import dim_of
from graphcore.frontend.core.base import Tensor, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.index.indexing import take_along
from graphcore.frontend.pointwise.casting import as_float
from graphcore.frontend.pointwise.elementwise import equal, less_equal
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.reduce.reductions import sum
from graphcore.frontend.reduce.segments import checked_numbers
from graphcore.frontend.special.elementwise import expit, ndtr
from graphcore.frontend.special.softmaxes import log_softmax
from graphcore.ir.help_text import parameters

__all__ = ["cross_entropy", "gelu", "relu", "silu"]


def relu(x: Operand) -> Tensor:
    """`x` where it is positive, else 0, elementwise.

    The derivative at 0 is 0, as in JAX and PyTorch.

    >>> gc.compile([], gc.nn.relu(gc.constant([-1.0, 0.0, 2.0], "row")))()
    array([0., 0., 2.])
    """
    value = wrap(single(x))
    return where(less_equal(value, 0), 0, value)


@parameters(
    x="A tensor or number.",
    approximate="Whether to use the form with tanh, as JAX does by default.",
)
def gelu(x: Operand, approximate: bool = False) -> Tensor:
    """`x` times the probability that a standard normal number is below `x`, elementwise.

    The approximate form is `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`. Source:
    Hendrycks and Gimpel 2016, "Gaussian error linear units".

    >>> gc.compile([], gc.nn.gelu(gc.constant([-1.0, 0.0, 2.0], "row")))().round(4)
    array([-0.1587,  0.    ,  1.9545])
    """
    value = as_float(wrap(single(x)))
    if approximate:  # (1 + tanh(u)) / 2 = expit(2 u), which does not cancel
        return gated(value, expit(math.sqrt(8 / math.pi) * (value + 0.044715 * value**3)))
    return gated(value, ndtr(value))


def silu(x: Operand) -> Tensor:
    """`x / (1 + exp(-x))`, elementwise, also called swish.

    >>> gc.compile([], gc.nn.silu(gc.constant([-1.0, 0.0, 2.0], "row")))().round(4)
    array([-0.2689,  0.    ,  1.7616])
    """
    value = as_float(wrap(single(x)))
    return gated(value, expit(value))


def gated(x: Tensor, gate: Tensor) -> Tensor:
    """x gate, and its limit 0 where x is -inf."""
    return where(equal(x, -math.inf), 0, x * gate)


@parameters(
    logits="The logarithms of the chances of classes, up to a constant.",
    labels="The class of each, an integer tensor, from 0 on; or the chances of classes, which have "
    "`dim`. Classes that are negative or too large are refused, now or at the call.",
    dim="The dim of the classes.",
)
def cross_entropy(logits: Operand, labels: Operand, dim: str | None = None) -> Tensor:
    """Minus the logarithm of the chance of each label: `-log_softmax(logits, dim)` at the labels.

    There is one loss for each label; `.mean()` is PyTorch's default. Of chances it is
    `-sum(labels * log_softmax(logits, dim), dim)`. To ignore labels that are negative, as PyTorch
    does -100, write `gc.where(labels < 0, 0, gc.nn.cross_entropy(logits, labels.clip(0), dim))`.

    >>> logits = gc.constant([[0.0, 0.0], [0.0, 1000.0]], ("batch", "class"))
    >>> labels = gc.constant([1, 0], "batch")
    >>> gc.compile([], gc.nn.cross_entropy(logits, labels, dim="class"))()
    array([6.93147181e-01, 1.00000000e+03])
    """
    chances = log_softmax(as_float(wrap(single(logits))), dim)
    name = dim_of(chances.node, dim)
    target = wrap(single(labels))
    if target.dtype.kind in "iu" and name not in target.dims:
        classes = checked_numbers("classes", target.node, chances.sizes[name])
        return -take_along(chances, wrap(classes), name)
    if target.dtype.kind != "f" or name not in target.dims:
        cure = f"give integers without dim {name!r}, or chances with it"
        raise type_refusal(f"the labels are {target.node.type}", chances, target, cure=cure)
    return -sum(where(equal(target, 0), 0, target * chances), name)
