"""What help() shows: annotations as they are written, named tuples by their fields, attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import cleandoc
from textwrap import wrap
from typing import Any, ForwardRef, TypeVar, cast

K = TypeVar("K", bound=type)

INDENT = "    "


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
