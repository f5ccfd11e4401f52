"""Docstrings of functions: the section of their parameters, and descriptions that many share."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from inspect import CO_VARARGS, CO_VARKEYWORDS, cleandoc
from textwrap import wrap
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

INDENT = "    "
EXAMPLE = "\n>>> "
HEADING = re.compile(r"\n(?=[A-Z]\w+\n---)")

COMMON = {
    "x": "A tensor.",
    "like": "A tensor whose dtype the result has, in place of `dtype`.",
    "where": "A bool tensor: elements where it is false are left out.",
    "skipna": "Whether to leave out nan too.",
}
"""Descriptions of parameters that mean the same wherever they stand."""


@cache
def fill_lines(text: str) -> list[str]:
    """The lines of a description; cached, as families share them and imports should be fast."""
    return wrap(text, 100, initial_indent=INDENT, subsequent_indent=INDENT)


def parameters(**texts: str) -> Callable[[F], F]:
    """Adds a Parameters section to the docstring of a function, before all others.

    It describes the parameters by `texts`, else as `COMMON` does, in the order of the signature.

    >>> from graphcore.frontend.core.documents import parameters
    >>> @parameters(y="A number.")
    ... def add(x, y):
    ...     '''`x` and `y` together.
    ...
    ...     >>> add(2, 3)
    ...     5
    ...     '''
    ...     return x + y
    >>> add.__doc__.splitlines()[2:8]
    ['Parameters', '----------', 'x', '    A tensor.', 'y', '    A number.']
    """
    described = COMMON | texts

    def describe(function: F) -> F:
        if function.__doc__ is not None:  # python -OO drops it
            section = ["Parameters", "----------"]
            for written in names_written(function.__code__):
                if (name := written.lstrip("*")) in described:
                    section += [written, *fill_lines(described[name])]
            text, example, examples = cleandoc(function.__doc__).partition(EXAMPLE)
            head = [] if "\nExamples\n" in text else ["Examples", "--------"]
            text, *tail = HEADING.split(text, maxsplit=1)
            lines = [text.rstrip(), "", *section, *[f"\n{part.rstrip()}" for part in tail]]
            lines += ["", *head] if examples else []
            function.__doc__ = "\n".join(lines) + example + examples
        return function

    return describe


def names_written(code: CodeType) -> list[str]:
    """The parameters of a function as its signature has them, `*` and `**` before their names."""
    positional, named = code.co_argcount, code.co_kwonlyargcount
    starred = iter(code.co_varnames[positional + named :])
    args = [f"*{next(starred)}"] if code.co_flags & CO_VARARGS else []
    options = [f"**{next(starred)}"] if code.co_flags & CO_VARKEYWORDS else []
    names = code.co_varnames
    return [*names[:positional], *args, *names[positional : positional + named], *options]
