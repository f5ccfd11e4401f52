"""What became of a wrong call: the laws of refusals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any

import graphcore as gc
from graphcore.ir.provenance import public_name
from tests.refusals.cures import faults, pieces

from .calls import Place

SECONDS = 2.0
TESTS = Path(__file__).resolve().parents[1]


class Hang(BaseException):
    """A call that did not end in time; no `except Exception` of the library catches it."""


@contextmanager
def limited() -> Iterator[None]:
    """At most SECONDS of time, where signals reach Python."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(place: Place, wrong: Callable[[], Any]) -> tuple[str, Any]:
    """What becomes of the call with a wrong value in that place."""
    args, options = place.replaced(wrong())
    return judged(place.call.function, args, options)


def judged(function: Callable[..., Any], args: Any, options: Any) -> tuple[str, Any]:
    """Whether a call is "refused" by law, breaks a law, is a "bare" error, a "hang", or "accepted".

    An error that a function of the "user" raises passes through the library unchanged.
    """
    try:
        with limited():
            return "accepted", function(*args, **options)
    except gc.GraphError as error:
        return broken_law(function, error) or "refused", error
    except Hang as error:
        return "hang", error
    except Exception as error:
        return ("user" if in_tests(error) else "bare"), error


def broken_law(function: Callable[..., Any], error: Exception) -> str:
    """What a refusal lacks, or ""; files and questions leave the line to the traceback."""
    if not is_named(error, function):
        return "no name"
    reason, _, cure = str(error).partition("\n  cure: ")
    if "frontend" in function.__module__ and f"{Path(__file__).name}:" not in reason:
        return "no line"
    return no_code(cure) if cure else "no cure"


@cache
def no_code(cure: str) -> str:
    """The code in a cure whose names do not exist. Methods without an object pass."""
    found = [fault for piece in pieces(cure) if piece[0] != "." for fault in faults(piece)]
    return f"no code: {found[0]}" if found else ""


def is_named(error: Exception, function: Callable[..., Any]) -> bool:
    """Whether an error begins with the name of the function called; a program is a "call".

    What a function calls that a test gave is named in its place. Operators have their own names.
    """
    name = public_name(function.__qualname__)
    if not name or str(error).startswith((f"{name}: ", f"tree.{name}: ", "call: ")):
        return True
    assert error.__traceback__ is not None
    inner = [f.f_code.co_filename for f, _ in walk_tb(error.__traceback__.tb_next)]
    return any(Path(file).is_relative_to(TESTS) for file in inner[1:])


def in_tests(error: Exception) -> bool:
    """Whether an error comes from a function that a test gave, and not from the library."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(TESTS)
