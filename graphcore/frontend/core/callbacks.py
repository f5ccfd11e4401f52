"""Functions that users give: bodies of loops, branches, rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from graphcore.ir.errors import GraphTypeError

from .base import refusal
from .calls import entered


def callback(function: str, role: str, given: Any, *arguments: str) -> Callable[..., Any]:
    """The function that a user gave `function` as its `role`, to be called with these arguments.

    Refused in words if it is no function, and when called if it takes other arguments.
    """
    told = ", ".join(arguments)
    require_function(function, role, given, told)

    def call(*values: Any, **options: Any) -> Any:
        try:
            return given(*values, **options)
        except TypeError as error:
            if entered(error):
                raise
        cure = f"write {lambda_of(told)}"
        if any(isinstance(value, (tuple, list)) for value in values):
            cure += "; a tuple is one argument: take it apart inside of the function"
        reason = f"{role} is called with ({told}), but takes {parameters(given)}"
        raise refusal(function, reason, cure=cure, kind=GraphTypeError)

    return call


def require_function(function: str, role: str, given: object, told: str) -> None:
    """Refuse what is no function; `told` is how its arguments are written."""
    if not callable(given):
        reason = f"{role} is {type(given).__name__}, not a function"
        raise refusal(function, reason, cure=f"write {lambda_of(told)}", kind=GraphTypeError)


def numbered(operands: Sequence[Any]) -> list[str]:
    """What to call the operands of a function."""
    return [f"x{i}" for i in range(len(operands))]


def lambda_of(told: str) -> str:
    """How a function of some arguments is written."""
    return f"lambda {told}: ..." if told else "lambda: ..."


def parameters(function: Callable[..., Any]) -> str:
    """What a function takes, as it was written."""
    try:
        return str(inspect.signature(function))
    except ValueError:  # one of Python's own may not say it
        return "others"
