"""Choices among several values, under NumPy's names; `where` chooses between two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.frontend.core.arguments import listed
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.callbacks import callback
from graphcore.frontend.core.lift import Operand, single

from .formulas import where

__all__ = [
    "piecewise",
    "select",
]


def select(
    conditions: Sequence[Operand], choices: Sequence[Operand], default: Operand = 0
) -> Tensor:
    """The choice of the first condition that holds, `default` where none does.

    The dims come in order of first appearance: of the first condition, the first choice, the second
    condition and so on. The dtype is the common one of all choices. What is not chosen has no share
    in the derivative.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 2})
    >>> gc.select([x < 0, x < 1], [-x, x**2], 1.0)
    <Tensor: f64[row=2]>
    """
    conditions = listed("select", "conditions", conditions)
    choices = listed("select", "choices", choices)
    if len(conditions) != len(choices) or not choices:
        reason = f"{len(choices)} choices for {len(conditions)} conditions"
        given = [x for x in (*conditions, *choices) if isinstance(x, Base)]
        cure = "give one choice for each condition, at least one"
        raise refusal("select", reason, *given, cure=cure)
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return wrap(single("select", result))


def piecewise(
    x: Operand,
    conditions: Sequence[Operand],
    functions: Sequence[Callable[[Tensor], Operand] | Operand],
) -> Tensor:
    """Function by function the value at `x` where its condition holds; the last that holds wins.

    A function may also be a number or a tensor. One function more than conditions is the value
    where none holds, which is 0 otherwise. Every function is computed everywhere, but has a share
    in the derivative only where it is chosen. The dtype is the common one of all values.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 2})
    >>> gc.piecewise(x, [x < 0, x > 1], [lambda x: -x, 1.0, lambda x: x**2])
    <Tensor: f64[row=2]>
    """
    at = wrap(single("piecewise", x))
    conditions = listed("piecewise", "conditions", conditions, at)
    functions = listed("piecewise", "functions", functions, at)
    values = [
        callback("piecewise", "a function", f, "x")(at) if callable(f) else f for f in functions
    ]
    if len(values) - len(conditions) not in (0, 1) or not conditions:
        reason = f"{len(values)} functions for {len(conditions)} conditions"
        cure = "give one for each condition, and perhaps one more for the rest"
        raise refusal("piecewise", reason, at, cure=cure)
    result = values[-1] if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values):
        result = where(condition, value, result)
    return wrap(single("piecewise", result))
