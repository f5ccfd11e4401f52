"""Interrupts: errors that come from outside of what runs, and so are not reworded."""

from __future__ import annotations

import inspect
from itertools import pairwise
from types import FrameType


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is no `Exception`, as Ctrl-C's, or one that a signal handler has raised.

    Handlers written in C leave no trace, and those that forget their arguments are not known.
    """
    if not isinstance(error, Exception):
        return True
    frames: list[FrameType] = []
    at = error.__traceback__
    while at is not None:
        frames.append(at.tb_frame)
        at = at.tb_next
    return any(handles(frame, interrupted) for interrupted, frame in pairwise(frames))


def handles(frame: FrameType, interrupted: FrameType) -> bool:
    """Whether a frame is that of a signal handler.

    Python calls these with the number of the signal and the frame that it interrupts, from there.
    """
    args, varargs, _, known = inspect.getargvalues(frame)
    given = [known.get(name) for name in args]
    if varargs is not None:
        given.extend(known.get(varargs, ()))
    return any(isinstance(n, int) and x is interrupted for n, x in pairwise(given))
