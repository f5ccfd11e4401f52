"""Errors of a call in the user's words: the op that failed, its dims and its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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

from .routines import SizeError

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


class Failing(NamedTuple):
    """An op that may fail at a call, as errors speak of it; the names of dims are for matrices."""

    op: str
    origin: str
    result: str
    dims: tuple[str, ...]


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


def describe_op_error(
    error: Exception, at: Failing | None, reason: str = "", cure: str = "", *within: str
) -> GraphError:
    """The same error, of an op that is known by its words alone."""
    kind: type[GraphError] = GraphValueError
    reason = reason or str(error).rstrip(".")
    cure = cure or CURES.get(reason, "look at the values that reach it")
    if isinstance(error, MemoryError) or reason.startswith(TOO_LARGE):
        kind, cure = GraphMemoryError, "pass smaller arrays, or walk along a dim with gc.scan"
    elif isinstance(error, IndexError):
        kind = GraphIndexError
    if isinstance(error, SizeError):
        at, cure = None, "let the values that sizes are computed from give sizes that fit"
    if at is None:
        return kind(f"call: {reason}\n  called at {user_line()}\n  cure: {cure}")
    if element := getattr(error, "element", ()):
        places = zip(at.dims or ("batch",) * len(element), element, strict=False)
        reason += ", for " + ", ".join(f"{dim}={place}" for dim, place in places)
    lines = [f"call: {at.op} at {at.origin}: {reason}", f"  its result is {at.result}", *within]
    return kind("\n".join([*lines, f"  called at {user_line()}", f"  cure: {cure}"]))


def in_step(step: int, loop: Node) -> str:
    """The line that says in which step of a loop a call failed."""
    return in_step_of(step, f"{loop.said} at {loop.origin}")


def in_step_of(step: int, loop: str) -> str:
    """The same line, of a loop that is known by its words alone."""
    return f"  in step {step} (from 0) of {loop}"


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
    sizes = [evaluate(indexed_tensor(node).type.shape[axis], known) for axis in axes]
    return outside_of([axis_of(node, axis) for axis in axes], sizes, operands[-len(axes) :])


def outside_of(
    axes: Sequence[str], sizes: Sequence[int], positions: Sequence[Any]
) -> tuple[str, str] | None:
    """The same, of axes that are known by their words and sizes."""
    for axis, size, at in zip(axes, sizes, map(np.asarray, positions), strict=True):
        least = 0 if at.dtype.kind == "u" else -size
        wrong = at[(at < least) | (at >= size)].astype(np.int64)
        if wrong.size:
            return position_outside(axis, wrong[0], size, least)
    return None


def outside_axis(node: Node, axis: int, at: int, size: int, least: int) -> tuple[str, str]:
    """That a position is outside of an axis of the array that `node` indexes."""
    return position_outside(axis_of(node, axis), at, size, least)


def position_outside(axis: str, at: int, size: int, least: int) -> tuple[str, str]:
    """That a position is outside of an axis, and where positions run."""
    reason = f"position {at} is outside {axis}, which has size {size}"
    cure = f"positions run from {least} to {size - 1}" if size else "the dim is empty"
    return reason, f"{cure}; subtract 1 from numbers that start at 1" if at == size > 0 else cure


def indexed_tensor(node: Node) -> Node:
    """The tensor whose elements an indexing op reads or writes."""
    return node.inputs[0] if node.op is tensor.gather else node


def axis_of(node: Node, axis: int) -> str:
    """In words, an axis of the array that `node` indexes."""
    labels = indexed_tensor(node).labels
    label = labels[axis] if labels else None
    return f"axis {axis}" if label is None else f"dim '{show_dim(label)}'"
