"""The words for an op that fails at a call, where it is known by words alone: without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from graphcore.ir.errors import GraphError, GraphIndexError, GraphMemoryError, GraphValueError
from graphcore.ir.provenance import user_line


class SizeError(ValueError):
    """Sizes that a program has computed do not fit."""


class Failing(NamedTuple):
    """An op that may fail at a call, as errors speak of it; the names of dims are for matrices."""

    op: str
    origin: str
    result: str
    dims: tuple[str, ...]


TOO_LARGE = ("array is too big", "Maximum allowed dimension", "maximum allowed dimension")
"""How NumPy's errors begin for arrays that no memory could hold."""

CURES = {
    "Integers to negative integer powers are not allowed": "use gc.float_power, or cast to floats",
    "the matrix is singular": "pass check=False for nan in its place, or see gc.linalg.pinv",
    "the matrix is not positive definite": "pass check=False for nan, or add to its diagonal",
}


def describe_op_error(
    error: Exception, at: Failing | None, reason: str = "", cure: str = "", *within: str
) -> GraphError:
    """The error of a call that fails for its values or sizes, `within` some steps of loops."""
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


def in_step_of(step: int, loop: str) -> str:
    """The line that says in which step of a loop a call failed."""
    return f"  in step {step} (from 0) of {loop}"


def outside_of(
    axes: Sequence[str], sizes: Sequence[int], positions: Sequence[Any]
) -> tuple[str, str] | None:
    """In words, a position that is outside of one of some axes, and the valid positions."""
    for axis, size, at in zip(axes, sizes, map(np.asarray, positions), strict=True):
        least = 0 if at.dtype.kind == "u" else -size
        wrong = at[(at < least) | (at >= size)].astype(np.int64)
        if wrong.size:
            return position_outside(axis, wrong[0], size, least)
    return None


def position_outside(axis: str, at: int, size: int, least: int) -> tuple[str, str]:
    """That a position is outside of an axis, and where positions run."""
    reason = f"position {at} is outside {axis}, which has size {size}"
    cure = f"positions run from {least} to {size - 1}" if size else "the dim is empty"
    return reason, f"{cure}; subtract 1 from numbers that start at 1" if at == size > 0 else cure
