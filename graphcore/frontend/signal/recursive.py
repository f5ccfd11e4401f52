"""Recursive filters, and series without their trend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.frontend.arrange.copies import unbind
from graphcore.frontend.control.loops import scan
from graphcore.frontend.core.arguments import as_list, check_word, dim_of
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, common, single
from graphcore.frontend.create.inputs import zeros
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.reduce.contraction import dot
from graphcore.frontend.reduce.masking import ratio
from graphcore.frontend.reduce.reductions import mean, sum
from graphcore.frontend.shape.dims import transpose
from graphcore.ir.dtypes import float_for, promote
from graphcore.ir.help_text import parameters

__all__ = ["detrend", "lfilter"]


@parameters(
    dim="The dim of the series.",
    type='What is subtracted: "linear", the line of least squares, or "constant", the mean.',
)
def detrend(x: Operand, dim: str | None = None, type: str = "linear") -> Tensor:
    """`x` without its linear trend along a dim, or without its mean, as `scipy.signal.detrend`.

    >>> gc.compile([], gc.signal.detrend(gc.constant([1.0, 4.0, 5.0, 8.0], "t")))().round(6)
    array([-0.2,  0.6, -0.6,  0.2])
    """
    value = as_float(wrap(single(x)))
    name = dim_of(value.node, dim)
    check_word("type", type, ("linear", "constant"), value)
    away = value - mean(value, name)
    if type == "constant":
        return away
    size = value.sizes[name]
    place = astype(arange(size, dim=name), value.real.dtype) - (size - 1) / 2
    slope = ratio(dot(place, away, dim=name), sum(place * place, name), 0)
    return transpose(away - slope * place, *value.dims)


@parameters(
    b="The coefficients of the input, the newest first: a list of numbers or tensors, or a tensor "
    "with one dim of known size.",
    a="The coefficients of the output; the first one divides all.",
    dim="The dim of the series.",
)
def lfilter(
    b: Operand | Sequence[Operand],
    a: Operand | Sequence[Operand],
    x: Operand,
    dim: str | None = None,
) -> Tensor:
    """`x` filtered by a rational transfer function along a dim, as `scipy.signal.lfilter`.

    `a[0] y[n] = b[0] x[n] + b[1] x[n-1] + ... - a[1] y[n-1] - ...`, with zeros before the first
    element; differentiable in all operands. Computed in the transposed direct form II.

    >>> x = gc.constant([1.0, 0.0, 0.0, 0.0], "t")
    >>> gc.compile([], gc.signal.lfilter([1.0], [1.0, -0.5], x))()
    array([1.   , 0.5  , 0.25 , 0.125])
    """
    forward, backward = listed("b", b), listed("a", a)
    nodes = common(x, *forward, *backward)
    dtype = promote(*[float_for(node.type.dtype) for node in nodes])
    value, *scaled = (astype(wrap(node), dtype) for node in nodes)
    name = dim_of(value.node, dim)
    count, zero = max(len(forward), len(backward)), zeros({}, dtype)
    ahead, back = (
        [v / scaled[len(forward)] for v in some] + [zero] * (count - len(some))
        for some in (scaled[: len(forward)], scaled[len(forward) :])
    )
    if count == 1:
        return transpose(ahead[0] * value, *value.dims, ...)

    def step(state: list[Tensor], now: Tensor) -> tuple[list[Tensor], Tensor]:
        found = ahead[0] * now + state[0]
        terms = zip(ahead[1:], [*state[1:], zero], back[1:], strict=True)
        return [p * now + kept - q * found for p, kept, q in terms], found

    _, series = scan(step, [zero] * (count - 1), value, dim=name)
    return transpose(series, *value.dims, ...)


def listed(what: str, given: Operand | Sequence[Operand]) -> list[Any]:
    """Coefficients as a list."""
    found = as_list(what, unbind(given) if isinstance(given, Base) else given)
    if not found:
        raise refusal(f"{what} has no coefficients", cure="give at least one number")
    return found
