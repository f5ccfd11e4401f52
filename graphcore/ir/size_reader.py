"""Sizes that users write as text, in the notation in which sizes are shown."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce

from .size_text import reads_as_expression
from .sizes import Size, maximum, minimum, unknown

OPERATORS: dict[type[ast.operator], Callable[[Size, Size], Size]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
FUNCTIONS = {"min": minimum, "max": maximum}


def read_size(text: str) -> Size:
    """The size that `text` says: the unknown of that name, a number, or an expression in these.

    Text with one of the characters `+-*/%()`, or of digits alone, is no name: it is read as it
    would be shown, or refused with a ValueError.

    >>> n = unknown("n")
    >>> read_size("n") is n, read_size("n + 4") is n + 4, read_size("min(n//2, 8)"), read_size("3")
    (True, True, min(n//2, 8), 3)
    """
    if not reads_as_expression(text):
        return unknown(text)
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, ZeroDivisionError) as error:
        raise ValueError(
            f"{text!r:.60} is not an expression of sizes: {getattr(error, 'msg', error)}"
        ) from None


def _value(tree: ast.expr) -> Size:
    match tree:
        case ast.Name(name):
            return unknown(name)
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(ast.USub(), inner):
            return -_value(inner)
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left), _value(right))
        case ast.Call(ast.Name(name), [first, *rest], []) if name in FUNCTIONS:
            return reduce(FUNCTIONS[name], map(_value, rest), _value(first))
    raise SyntaxError("it takes names, integers, + - * // % min max and parentheses")
