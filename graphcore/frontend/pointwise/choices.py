"""Choices among several values, under NumPy's names; `where` chooses between two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.frontend.core.arguments import as_list
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.core.user_functions import callback
from graphcore.ir.help_text import parameters

from .formulas import where

__all__ = [
    "piecewise",
    "select",
]


@parameters(
    conditions="A list of bool tensors.",
    choices="A list of as many tensors or numbers.",
    default="A tensor or number.",
)
def select(
    conditions: Sequence[Operand], choices: Sequence[Operand], default: Operand = 0
) -> Tensor:
    """For each element the choice of the first condition that holds; `default` where none does.

    The dims come in order of first appearance: of the first condition, the first choice, the second
    condition and so on. The dtype is the common one of all choices. Values that are not chosen
    contribute nothing to the derivative.

    GraphError if there is not one choice for each condition.

    >>> x = gc.constant([-2.0, 0.5, 3.0], "row")
    >>> gc.compile([], gc.select([x < 0, x < 1], [-x, x**2], 10.0))()
    array([ 2.  ,  0.25, 10.  ])
    """
    conditions = as_list("conditions", conditions)
    choices = as_list("choices", choices)
    if len(conditions) != len(choices) or not choices:
        reason = f"{len(choices)} choices for {len(conditions)} conditions"
        given = [x for x in (*conditions, *choices) if isinstance(x, Base)]
        raise refusal(reason, *given, cure="give one choice for each condition, at least one")
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return wrap(single(result))


@parameters(
    x="A tensor or number.",
    conditions="A list of bool tensors.",
    functions="For each condition a function of one tensor, or a tensor or number. One more gives "
    "the value where no condition holds; without it the value there is 0.",
)
def piecewise(
    x: Operand,
    conditions: Sequence[Operand],
    functions: Sequence[Callable[[Tensor], Operand] | Operand],
) -> Tensor:
    """The value of `functions[i](x)` where `conditions[i]` holds; later conditions win.

    Every function is computed for all elements, but only chosen values contribute to the
    derivative. The dtype is the common one of all values.

    GraphError if there is not one function for each condition, or one more.

    >>> x = gc.constant([-2.0, 0.5, 3.0], "row")
    >>> gc.compile([], gc.piecewise(x, [x < 0, x > 1], [lambda x: -x, 1.0, lambda x: x**2]))()
    array([2.  , 0.25, 1.  ])
    """
    at = wrap(single(x))
    conditions = as_list("conditions", conditions, at)
    functions = as_list("functions", functions, at)
    values = [callback("a function", f, "x")(at) if callable(f) else f for f in functions]
    if len(values) - len(conditions) not in (0, 1) or not conditions:
        reason = f"{len(values)} functions for {len(conditions)} conditions"
        cure = "give one for each condition, and at most one more for all other elements"
        raise refusal(reason, at, cure=cure)
    result = values[-1] if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values):
        result = where(condition, value, result)
    return wrap(single(result))
