"""Errors of a call in the user's words: the op that failed, its dims and its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphcore.ir.errors import (
    DefectError,
    GraphError,
    GraphIndexError,
    GraphMemoryError,
    GraphValueError,
)
from graphcore.ir.node import Node
from graphcore.ir.provenance import user_line
from graphcore.ir.size_text import show_dim
from graphcore.ir.sizes import evaluate
from graphcore.ir.types import TupleType, show_tensor
from graphcore.ops import tensor

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


def worded(
    error: Exception, node: Node | None, reason: str = "", cure: str = "", *within: str
) -> GraphError:
    """The error of a call that fails for its values or sizes, in the user's words.

    `within` are lines that say in which steps of loops.
    """
    kind: type[GraphError] = GraphValueError
    reason = reason or str(error).rstrip(".")
    cure = cure or CURES.get(reason, "look at the values that reach it")
    if isinstance(error, MemoryError) or reason.startswith(TOO_LARGE):
        kind, cure = GraphMemoryError, "pass smaller arrays, or walk along a dim with gc.scan"
    elif isinstance(error, IndexError):
        kind = GraphIndexError
    if node is None:
        return kind(f"call: {reason}\n  called at {user_line()}\n  cure: {cure}")
    if element := getattr(error, "element", ()):
        labels = node.labels or node.attrs.get("batch") or (None,) * len(element)
        places = zip(labels, element, strict=False)
        reason += ", for " + ", ".join(f"{show_dim(dim or 'batch')}={at}" for dim, at in places)
    several = isinstance(node.type, TupleType)
    shown = str(node.type) if several else show_tensor(node.type, node.labels)
    lines = [f"call: {node.said} at {node.origin}: {reason}", f"  its result is {shown}", *within]
    return kind("\n".join([*lines, f"  called at {user_line()}", f"  cure: {cure}"]))


def in_step(step: int, loop: Node) -> str:
    """The line that says in which step of a loop a call failed."""
    return f"  in step {step} (from 0) of {loop.said} at {loop.origin}"


TOO_LARGE = ("array is too big", "Maximum allowed dimension", "maximum allowed dimension")
"""How NumPy's errors begin for arrays that no memory could hold."""

CURES = {
    "Integers to negative integer powers are not allowed": "use gc.float_power, or cast to floats",
    "the matrix is singular": "pass check=False for nan in its place, or see gc.linalg.pinv",
    "the matrix is not positive definite": "pass check=False for nan, or add to its diagonal",
}


def outside(node: Node, operands: Sequence[Any], known: dict[str, int]) -> tuple[str, str] | None:
    """In words, the position of an indexing op that is outside its dim, and the valid positions."""
    axes = node.attrs["axes"]
    indexed = node.inputs[0] if node.op is tensor.gather else node
    for axis, positions in zip(axes, map(np.asarray, operands[-len(axes) :]), strict=True):
        size = evaluate(indexed.type.shape[axis], known)
        least = 0 if positions.dtype.kind == "u" else -size
        wrong = positions[(positions < least) | (positions >= size)].astype(np.int64)
        if wrong.size:
            return outside_axis(node, axis, wrong[0], size, least)
    return None


def outside_axis(node: Node, axis: int, at: int, size: int, least: int) -> tuple[str, str]:
    """That a position is outside of an axis of what `node` indexes, and where positions run."""
    indexed = node.inputs[0] if node.op is tensor.gather else node
    label = indexed.labels[axis] if indexed.labels else None
    dim = f"axis {axis}" if label is None else f"dim '{show_dim(label)}'"
    reason = f"position {at} is outside {dim}, which has size {size}"
    return reason, f"positions run from {least} to {size - 1}" if size else "the dim is empty"
