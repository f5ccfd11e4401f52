"""What became of a call with a wrong argument."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import graphcore as gc

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
    """Whether the call is "refused", has "no cure", is a "bare" error, a "hang", or "accepted".

    An error that a function of the "user" raises passes through the library unchanged.
    """
    args, options = place.replaced(wrong())
    try:
        with limited():
            return "accepted", place.call.function(*args, **options)
    except gc.GraphError as error:
        return ("refused" if "\n  cure: " in str(error) else "no cure"), error
    except Hang as error:
        return "hang", error
    except Exception as error:
        return ("user" if in_tests(error) else "bare"), error


def in_tests(error: Exception) -> bool:
    """Whether an error comes from a function that a test gave, and not from the library."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(TESTS)
