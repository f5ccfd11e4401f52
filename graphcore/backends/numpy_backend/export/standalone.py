"""What only exported programs have: the user's line, and errors in words that the file has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from graphcore.backends.failing import Failing, describe_op_error, in_step_of, outside_of


def user_line() -> str:
    """The line that called the program."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


class Step(NamedTuple):
    """A line of the program that may fail: its op, the loops around it, and the axes it indexes.

    `loops` are the names of counters of steps, each with its loop in words; `sizes` are those of
    `axes` from the values of all names, and `positions` are names.
    """

    op: Failing
    loops: tuple[tuple[str, str], ...] = ()
    axes: tuple[str, ...] = ()
    sizes: Callable[[Mapping[str, Any]], tuple[int, ...]] | None = None
    positions: tuple[str, ...] = ()


def explain(error: Exception, first: Callable[..., Any], steps: Mapping[int, Step]) -> Exception:
    """The error of a call that fails for its values, with the op, its dims and the user's line.

    `steps` are numbered by their lines, counted from that of the function `first`.
    """
    start, trace = first.__code__, error.__traceback__
    step, values = None, dict[str, Any]()
    while trace is not None:
        frame, line = trace.tb_frame, trace.tb_lineno - start.co_firstlineno
        if frame.f_code.co_filename == start.co_filename and line >= 0:
            values |= frame.f_locals
            step = steps.get(line, step)
        trace = trace.tb_next
    if step is None:
        return describe_op_error(error, None)
    within = [in_step_of(values[name], loop) for name, loop in step.loops]
    found = None
    if isinstance(error, IndexError) and step.sizes is not None:
        places = [values[name] for name in step.positions]
        found = outside_of(step.axes, step.sizes(values), places)
    return describe_op_error(error, step.op, *(found or ("", "")), *within)
