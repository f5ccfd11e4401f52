"""What help() shows: annotations as they are written, named tuples by their fields, docstrings.

What docstrings have alike is not written in each; parameters and attributes are described by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from inspect import CO_VARARGS, CO_VARKEYWORDS, cleandoc
from textwrap import wrap
from types import CodeType
from typing import Any, ForwardRef, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=type)

INDENT = "    "
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


@cache
def fill_lines(text: str) -> list[str]:
    """The lines of a description; cached, as families share them and imports should be fast."""
    return wrap(text, 100, initial_indent=INDENT, subsequent_indent=INDENT)


def attributes(**texts: str) -> Callable[[K], K]:
    """Adds a section of attributes, each with its description, to the docstring of a class.

    >>> from graphcore.ir.help_text import attributes
    >>> @attributes(x="A number.")
    ... class Point:
    ...     '''A point.'''
    >>> Point.__doc__.splitlines()
    ['A point.', '', 'Attributes', '----------', 'x', '    A number.']
    """

    def describe(kind: K) -> K:
        if kind.__doc__ is not None:  # python -OO drops it
            lines = [cleandoc(kind.__doc__), "", "Attributes", "----------"]
            for name, text in texts.items():
                lines += [name, *fill_lines(text)]
            kind.__doc__ = "\n".join(lines)
        return kind

    return describe


class Written(str):
    """An annotation as it is written: signatures show it without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def as_written(annotations: dict[str, Any]) -> dict[str, Any]:
    """Annotations of which those that are text are shown as they are written."""
    texts = {
        name: said.__forward_arg__ if isinstance(said, ForwardRef) else said
        for name, said in annotations.items()
    }
    return {name: Written(x) if isinstance(x, str) else x for name, x in texts.items()}


class Fields(type):
    """The class of a named tuple: its dir() has what it defines by itself, as that of an Enum."""

    def __dir__(cls) -> list[str]:
        return [name for name in vars(cls) if not name.startswith("_")]


def fields(kind: K) -> K:
    """A named tuple made again with a short help().

    >>> from typing import NamedTuple
    >>> from graphcore.ir.help_text import fields
    >>> @fields
    ... class Pair(NamedTuple):
    ...     first: int
    ...     second: int
    >>> dir(Pair), Pair(1, 2)
    (['first', 'second'], Pair(first=1, second=2))
    """
    maker: Any = kind.__new__
    maker.__annotations__ = as_written(maker.__annotations__)
    return cast(K, Fields(kind.__name__, kind.__bases__, dict(vars(kind))))


def written_out(doc: str) -> str:
    r"""A docstring whose examples import graphcore, and whose errors are a section.

    >>> from graphcore.ir.help_text import written_out
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

    >>> from graphcore.ir.help_text import parameters
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
