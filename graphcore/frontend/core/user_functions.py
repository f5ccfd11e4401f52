"""Functions that users give: bodies of loops, branches, rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .base import brief, type_refusal
from .wrong_calls import was_entered

UNKNOWN = "(...)"
"""The parameters of a function that has no signature."""


def callback(role: str, given: Any, *arguments: str) -> Callable[..., Any]:
    """The function that a user gave `function` as its `role`, to be called with these arguments.

    Refused if it is not a function, and, when called, if it takes other arguments.
    """
    written = ", ".join(arguments)
    require_function(role, given, written)

    def call(*values: Any, **options: Any) -> Any:
        try:
            return given(*values, **options)
        except TypeError as error:
            if was_entered(error):
                raise
        cure = f"write {lambda_of(written)}"
        if any(isinstance(value, (tuple, list)) for value in values):
            cure += "; a tuple is one argument: unpack it inside the function"
        takes = parameters_of(given)
        known = f"but takes {takes}" if takes != UNKNOWN else f"which {brief(given)} does not take"
        raise type_refusal(f"{role} is called with ({written}), {known}", cure=cure)

    return call


def require_function(role: str, given: object, arguments: str) -> None:
    """Refuses objects that are not functions; `arguments` are those it should take, as text."""
    if not callable(given):
        reason = f"{role} is {type(given).__name__}, not a function"
        raise type_refusal(reason, cure=f"write {lambda_of(arguments)}")


def operand_names(operands: Sequence[Any]) -> list[str]:
    """Names for the operands of a function."""
    return [f"x{i}" for i in range(len(operands))]


def lambda_of(arguments: str) -> str:
    """A function of these arguments, as a user would write it."""
    return f"lambda {arguments}: ..." if arguments else "lambda: ..."


def parameters_of(function: Callable[..., Any]) -> str:
    """The parameters of a function, as text."""
    try:
        return str(inspect.signature(function))
    except ValueError:  # some functions of Python itself have no signature
        return UNKNOWN
