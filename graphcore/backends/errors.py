"""Errors of a call in the user's words: the op that failed, its dims and its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.ir import Node, TupleType
from graphcore.ir.errors import DefectError, GraphError
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import user_line
from graphcore.ir.sizes import evaluate
from graphcore.ir.types import show_tensor
from graphcore.ops import tensor

from .failing import Failing, describe_op_error, in_step_of, outside_of

DEFECTS = (TypeError, NameError, AttributeError, KeyError, AssertionError)
"""Errors that no arguments can cause, as types and names were settled at compilation."""


def defect(error: Exception, node: Node | None, text: str) -> DefectError:
    """The error for a defect of graphcore, with the line of generated code that it comes from."""
    where = "" if node is None else f" in {node.said} at {node.origin}"
    return DefectError(
        f"call: a defect of graphcore, not of the program,{where}: {type(error).__name__}: "
        f"{error}\n  in the generated line `{text}`\n  called at {user_line()}\n"
        f"  cure: please report it, with the program"
    )


def failing_op(node: Node) -> Failing:
    """An op of a program as errors speak of it."""
    dims = node.labels or node.attrs.get("batch") or ()
    several = isinstance(node.type, TupleType)
    shown = str(node.type) if several else show_tensor(node.type, node.labels)
    names = tuple(show_dim(dim or "batch") for dim in dims)
    return Failing(node.said, str(node.origin), shown, names)


def reword(
    error: Exception, node: Node | None, reason: str = "", cure: str = "", *within: str
) -> GraphError:
    """The error of a call that fails for its values or sizes, in the user's words.

    `within` are lines that say in which steps of loops.
    """
    return describe_op_error(
        error, None if node is None else failing_op(node), reason, cure, *within
    )


def in_step(step: int, loop: Node) -> str:
    """The line that says in which step of a loop a call failed."""
    return in_step_of(step, f"{loop.said} at {loop.origin}")


def outside(node: Node, operands: Sequence[Any], known: dict[str, int]) -> tuple[str, str] | None:
    """In words, the position of an indexing op that is outside its dim, and the valid positions."""
    axes = node.attrs["axes"]
    sizes = [evaluate(indexed_tensor(node).type.shape[axis], known) for axis in axes]
    return outside_of([axis_of(node, axis) for axis in axes], sizes, operands[-len(axes) :])


def indexed_tensor(node: Node) -> Node:
    """The tensor whose elements an indexing op reads or writes."""
    return node.inputs[0] if node.op is tensor.gather else node


def axis_of(node: Node, axis: int) -> str:
    """In words, an axis of the array that `node` indexes."""
    labels = indexed_tensor(node).labels
    label = labels[axis] if labels else None
    return f"axis {axis}" if label is None else f"dim '{show_dim(label)}'"
