"""Docstrings of functions: what all have alike, which is not written in each, and parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS, cleandoc
from types import CodeType
from typing import Any, TypeVar

from graphcore.ir.help_text import fill_lines

F = TypeVar("F", bound=Callable[..., Any])

EXAMPLE = "\n>>> "
IMPORT = "import graphcore as gc"
ERRORS = re.compile(r"\n\nGraphError ((?:if|as)\b.*?)(?=\n\n|\Z)", re.DOTALL)
HEADING = re.compile(r"\n(?=[A-Z]\w+\n---)")

COMMON = {
    "x": "A tensor.",
    "like": "A tensor whose dtype the result has, in place of `dtype`.",
    "where": "A bool tensor: elements where it is false are left out.",
    "skipna": "Whether to leave out nan too.",
    "args": "The arguments of a call by position.",
    "kwargs": "The arguments of a call by name.",
}
"""Descriptions of parameters that mean the same wherever they stand."""


def written_out(doc: str) -> str:
    r"""A docstring whose examples import graphcore, and whose errors are a section.

    >>> from graphcore.frontend.core.documents import written_out
    >>> doc = "Half.\n\nGraphError if `x` is odd.\n\n>>> gc.half(4)\n2"
    >>> [line for line in written_out(doc).splitlines() if line][1:6]
    ['Raises', '------', 'GraphError', '    If `x` is odd.', '>>> import graphcore as gc']
    """
    text, example, examples = ERRORS.sub(section_of_errors, cleandoc(doc)).partition(EXAMPLE)
    begin = example + IMPORT if example and not examples.startswith("import graphcore") else ""
    return text + begin + example + examples


def section_of_errors(found: re.Match[str]) -> str:
    """The section for a sentence that says when a GraphError is raised."""
    said = found[1][0].upper() + " ".join(found[1].split())[1:]
    return "\n".join(["\n", "Raises", "------", "GraphError", *fill_lines(said)])


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
            text, example, examples = written_out(function.__doc__).partition(EXAMPLE)
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
