"""Calls: the value of a line, which can be rendered as text or called as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import getitem
from typing import Any, NamedTuple, TypeAlias

Argument: TypeAlias = "str | Call"
"""The name of a value, an expression in sizes, or a call whose result has no name."""


class Call(NamedTuple):
    """A function's name, or a form of Python's such as `{0}[{1}]`, and its arguments."""

    function: str
    arguments: tuple[Argument, ...]

    def __str__(self) -> str:
        arguments = [str(x) for x in self.arguments]
        if is_form(self.function):
            return self.function.format(*arguments)
        return f"{self.function}({', '.join(arguments)})"


def call(function: str, *arguments: Argument) -> Call:
    """A call; empty arguments are left out."""
    return Call(function, tuple([x for x in arguments if x != ""]))


def method(name: str, x: Argument, *arguments: Argument) -> Call:
    """A call of a method of `x`."""
    marks = ", ".join(f"{{{i}}}" for i in range(1, len(arguments) + 1))
    return Call(f"{{0}}.{name}({marks})", (x, *arguments))


def item(x: Argument, *index: Argument) -> Call:
    """`x[index]`."""
    marks = ", ".join(f"{{{i}}}" for i in range(1, len(index) + 1))
    return Call(f"{{0}}[{marks}]", (x, *index))


def sequence(*items: Argument) -> Call:
    """A tuple."""
    marks = ", ".join(f"{{{i}}}" for i in range(len(items)))
    return Call(f"({marks},)", items)


def is_form(function: str) -> bool:
    """Whether `function` is a form, not a name."""
    return "{" in function


@lru_cache(maxsize=4096)
def function_of(form: str) -> Callable[..., Any]:
    """The function of a form's arguments."""
    if form == "{0}[{1}]":
        return getitem
    names = [f"x{i}" for i in range(form.count("{")) if f"{{{i}}}" in form]
    made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {form.format(*names)}")
    return made
