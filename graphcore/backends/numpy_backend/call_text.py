"""Expressions of the generated code as text: calls of functions, elements and tuples."""

from __future__ import annotations


def call(function: str, *arguments: str) -> str:
    """A call; empty arguments are left out."""
    return f"{function}({', '.join(filter(None, arguments))})"


def item(x: str, *index: str) -> str:
    """`x[index]`."""
    return f"{x}[{', '.join(index)}]"


def sequence(*items: str) -> str:
    """A tuple."""
    return f"({', '.join(items)},)"
