"""Docstrings of functions that take the same arguments: one description of these for all."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import cleandoc
from textwrap import wrap
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

INDENT = "    "
EXAMPLE = "\n>>> "
RAISES = "\nRaises\n------"


@cache
def fill_lines(text: str) -> list[str]:
    """The lines of a description; cached, as families share them and imports should be fast."""
    return wrap(text, 100, initial_indent=INDENT, subsequent_indent=INDENT)


def parameters(**texts: str) -> Callable[[F], F]:
    """Adds a Parameters section to the docstring of a function, before Raises and examples.

    >>> from graphcore.frontend.core.documents import parameters
    >>> @parameters(x="A number.")
    ... def twice(x):
    ...     '''Two times `x`.
    ...
    ...     >>> twice(2)
    ...     4
    ...     '''
    ...     return 2 * x
    >>> twice.__doc__.splitlines()[2:6]
    ['Parameters', '----------', 'x', '    A number.']
    """
    section = ["Parameters", "----------"]
    for name, text in texts.items():
        section += [name, *fill_lines(text)]

    def describe(function: F) -> F:
        if function.__doc__ is not None:  # python -OO drops it
            text, example, examples = cleandoc(function.__doc__).partition(EXAMPLE)
            head = ["", "Examples", "--------"] if examples else []
            text, raises, errors = text.partition(RAISES)
            tail = [(raises + errors).rstrip()] if raises else []
            lines = [text.rstrip(), "", *section, *tail, *head]
            function.__doc__ = "\n".join(lines) + example + examples
        return function

    return describe
