"""Ops that one function of arrays computes: those on matrices, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from graphcore.ir import Expression, Node

from .call_text import call
from .routines import as_array
from .writer import Writer


def computed_by(function: Callable[..., Any]) -> Callable[[Node, Writer, str], str]:
    """The entry in EMIT of an op that a package of its own declares.

    `function` takes the operands as arrays and the attrs as keywords, sizes as integers. It returns
    a new array, which is no view, of the shape and dtype that the type rule says.
    """

    def emit(node: Node, w: Writer, out: str) -> str:
        compute = partial(as_array, function)
        return with_attrs(w.bind(f"own_{node.op.dialect}_{node.op.name}", compute), node, w)

    return emit


def with_attrs(function: str, node: Node, w: Writer) -> str:
    """A function of the operands, its keywords the attrs."""
    how = [f"{name}={attr_expression(value, w)}" for name, value in node.attrs.items()]
    return call(function, *map(w.full, node.inputs), *how)


def attr_expression(value: object, w: Writer) -> str:
    """An attr as an expression; sizes become those of the call."""
    several = value if isinstance(value, tuple) else (value,)
    sizes = [size for size in several if isinstance(size, Expression)]
    if not sizes:
        return repr(value)
    parts = [w.size(size) if size in sizes else repr(size) for size in several]
    return w.from_sizes(f"({', '.join(parts)},)" if isinstance(value, tuple) else parts[0], *sizes)
