"""Norms of vectors over dims."""

from __future__ import annotations

import math

from graphcore.frontend.core.arguments import Dim
from graphcore.frontend.core.base import Tensor, type_refusal, wrap
from graphcore.frontend.core.lift import Operand
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.elementwise import absolute, equal, isfinite, not_equal, power
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.ir import Literal
from graphcore.ir.help_text import parameters
from graphcore.ops import named
from graphcore.ops.autodiff import stop_gradient

from .masking import Mask, mask_operand, over

__all__ = [
    "norm",
]


@parameters(
    dim="The dims to reduce: one name, several, or None for all.",
    ord="The order: any number. inf is the largest `|x|`, -inf the smallest, and 0 the number of "
    "elements that are not 0.",
)
def norm(
    x: Operand,
    dim: Dim = None,
    ord: float = 2,
    *,
    where: Mask = None,
    skipna: bool = False,
) -> Tensor:
    """Norm of vectors along one dim, or of all elements over several dims.

    `sum(abs(x) ** ord) ** (1 / ord)`, without overflow. Over both dims of a matrix, `ord=2` is the
    Frobenius norm. The derivative at a zero vector is 0; for `ord` other than 2 it is also 0 with
    respect to elements that are 0. The norm of no elements is 0, or inf if `ord` is negative.

    GraphError if `ord` is not a number.

    >>> x = gc.constant([3.0, -4.0], "row")
    >>> gc.compile([], [gc.norm(x), gc.norm(x, ord=1), gc.norm(x, ord=float("inf"))])()
    [array(5.), array(7.), array(4.)]
    """
    data = mask_operand(x, dim, where, skipna)
    if isinstance(ord, str) or math.isnan(ord):
        cure = "give a number; for matrices, 2 over both dims is 'fro'"
        raise type_refusal(f"ord={ord!r}", data.x, cure=cure)
    none = 0 if ord >= 0 else math.inf
    value = data.fill(none)
    if ord == 2:
        return over(named.norm, value, data.dims)
    size = absolute(as_float(value))
    if ord == 0:
        return over(named.sum_, astype(not_equal(size, 0), size.dtype), data.dims)
    if ord == 1:
        return over(named.sum_, size, data.dims)
    extreme = named.max_ if ord > 0 else named.min_
    bound = over(extreme, size, data.dims, initial=Literal(none, size.dtype))
    if math.isinf(ord):
        return bound
    # A norm does not depend on its scale, so that the scale needs no derivative.
    scale = wrap(stop_gradient(choose(isfinite(bound) & (bound > 0), bound, 1).node))
    powers = power_or(none, size / scale, ord)
    return scale * power_or(none, over(named.sum_, powers, data.dims), 1 / ord)


def power_or(none: float, x: Tensor, exponent: float) -> Tensor:
    """x ** exponent; where `x` is 0 it is `none`, with derivative 0."""
    zero = equal(x, 0)
    return choose(zero, none, power(choose(zero, 1, x), exponent))
