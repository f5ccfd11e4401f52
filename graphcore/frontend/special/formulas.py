"""Special functions that are composed of several ops, under SciPy's names."""

from __future__ import annotations

import math

from graphcore.frontend.core.arguments import index_of, require_order
from graphcore.frontend.core.base import Tensor, brief, refusal, wrap
from graphcore.frontend.core.lift import Operand, apply, single
from graphcore.frontend.pointwise.casting import as_float
from graphcore.frontend.pointwise.elementwise import greater, square
from graphcore.frontend.pointwise.formulas import two_operands, where
from graphcore.ir.help_text import parameters
from graphcore.ops import special as ops

from .elementwise import digamma, gammaln, softplus, zeta

__all__ = [
    "expn",
    "huber",
    "log_expit",
    "multigammaln",
    "polygamma",
    "pseudo_huber",
]


def integer_within(name: str, value: int, least: int, most: int) -> int:
    """A Python integer within bounds."""
    try:
        found = index_of(value)
    except TypeError:
        found = least - 1
    if not least <= found <= most:
        cure = f"{name} is a Python integer from {least} to {most}, known when the graph is built"
        raise refusal(f"{name} is {brief(value)}", cure=cure)
    return found


def log_expit(x: Operand) -> Tensor:
    """`log(1 / (1 + e ** -x))`, the logarithm of the sigmoid, accurate in both tails.

    >>> gc.compile([], gc.special.log_expit(gc.constant([-800.0, 0.0], "row")))()
    array([-8.00000000e+02, -6.93147181e-01])
    """
    return -softplus(-as_float(wrap(single(x))))


@parameters(
    n="The order of the derivative, a known integer.",
    x="A tensor or number.",
)
def polygamma(n: int, x: Operand) -> Tensor:
    """The n-th derivative of `digamma` at `x`, for an integer `n` known when the graph is built.

    >>> gc.compile([], gc.special.polygamma(1, gc.constant([1.0, 2.0], "row")))()
    array([1.64493407, 0.64493407])
    """
    n = integer_within("n", n, 0, 170)
    return (-1) ** (n + 1) * float(math.factorial(n)) * zeta(n + 1, x) if n else digamma(x)


@parameters(
    a="A tensor or number.",
    d="The dimension, a known integer.",
)
def multigammaln(a: Operand, d: int) -> Tensor:
    """Log of the multivariate gamma function of dimension `d` at `a`; nan unless `a > (d - 1) / 2`.

    The sum of `gammaln(a - j / 2)` for j = 0, ..., d - 1, plus `d * (d - 1) / 4 * log(pi)`.

    >>> gc.compile([], gc.special.multigammaln(gc.constant([2.0, 4.0], "row"), 3))()
    array([1.59631259, 5.40297508])
    """
    d = integer_within("d", d, 1, 1000)
    value = wrap(single(a))
    inside = where(greater(value, (d - 1) / 2), value, math.nan)
    total = gammaln(inside)
    for j in range(1, d):
        total = total + gammaln(inside - j / 2)
    return total + d * (d - 1) / 4 * math.log(math.pi)


@parameters(
    n="The exponent, a known integer.",
    x="A tensor or number.",
)
def expn(n: int, x: Operand) -> Tensor:
    """The integral of `e ** (-x * t) / t ** n` over t from 1 to infinity, for an integer `n`.

    >>> gc.compile([], gc.special.expn(2, gc.constant([0.0, 1.0], "row")))()
    array([1.        , 0.14849551])
    """
    return apply(ops.expn, integer_within("n", n, 0, 10**6), x)


@parameters(
    delta="Where the function changes from quadratic to linear; aligned by name.",
    r="A tensor or number.",
)
def huber(delta: Operand, r: Operand) -> Tensor:
    """`r ** 2 / 2` where `|r| <= delta`, continued linearly beyond; inf for negative `delta`.

    >>> gc.compile([], gc.special.huber(1.0, gc.constant([0.5, 3.0], "row")))()
    array([0.125, 2.5  ])
    """
    bound, residual = map(as_float, two_operands(delta, r))
    require_order(bound)
    size = abs(residual)
    value = where(bound >= size, 0.5 * square(residual), bound * (size - 0.5 * bound))
    return where(bound < 0, math.inf, value)


@parameters(
    delta="Where the function changes from quadratic to linear; aligned by name.",
    r="A tensor or number.",
)
def pseudo_huber(delta: Operand, r: Operand) -> Tensor:
    """`delta ** 2 * (sqrt(1 + (r / delta) ** 2) - 1)`, a smooth `huber`; inf for negative `delta`.

    >>> gc.compile([], gc.special.pseudo_huber(1.0, gc.constant([0.5, 3.0], "row")))()
    array([0.11803399, 2.16227766])
    """
    scale, residual = two_operands(delta, r)
    return where(scale < 0, math.inf, apply(ops.pseudo_huber, scale, residual))
