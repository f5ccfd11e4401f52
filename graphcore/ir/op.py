"""Declaring ops: the decorated function *is* the type rule."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .node import NO_ATTRS, OPS, Attrs, Node
from .types import Type

SAID = {
    **dict.fromkeys(("gather", "index", "slice"), "isel"),
    **dict.fromkeys(("overwrite", "put", "scatter"), "at"),
    **dict.fromkeys(("scatter_max", "scatter_min", "scatter_prod"), "at"),
    "call": "checkpoint",
    "cast": "astype",
    "custom": "custom_pullback",
    "embed": "pad",
    "linear": "custom_pullback",
    "qr_complete": "qr",
    "svd_full": "svd",
}
"""What users call ops that have a name of their own inside."""


class Op:
    """A named operation; calling it builds a node. All else about it is in tables keyed by it."""

    __slots__ = ("dialect", "doc", "name", "rule")

    def __init__(self, name: str, dialect: str, rule: Callable[..., Type], doc: str) -> None:
        self.name, self.dialect, self.rule, self.doc = name, dialect, rule, doc

    def __call__(self, *inputs: Node, **attrs: Any) -> Node:
        """The node of this op on these inputs."""
        return Node(self, inputs, Attrs(attrs) if attrs else NO_ATTRS)

    @property
    def said(self) -> str:
        """Its name in what users read of errors."""
        return SAID.get(self.name, self.name)

    def __repr__(self) -> str:
        return f"{self.dialect}.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _declared, (f"graphcore.ops.{self.dialect}", repr(self))


def _declared(module: str, name: str) -> Op:
    """An op by its full name; its module is imported first, as a new process may not have."""
    import_module(module)
    return OPS[name]


def declare(name: str, dialect: str, rule: Callable[..., Type], doc: str) -> Op:
    """An op whose result types are what `rule(*operand types, **attrs)` returns."""
    new = Op(name, dialect, rule, doc)
    assert repr(new) not in OPS, f"op {new} is declared twice"
    OPS[repr(new)] = new
    return new


def op(rule: Callable[..., Type]) -> Op:
    """The op with this type rule; its name is the function's, its dialect `graphcore.ops.HERE`."""
    dialect = rule.__module__.split(".")[2]
    return declare(rule.__name__.rstrip("_"), dialect, rule, rule.__doc__ or "")
