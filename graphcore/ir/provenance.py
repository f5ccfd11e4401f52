"""Where a node comes from: the user's file and line, inherited by whatever replaces the node."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

PACKAGE = __file__.removesuffix("ir/provenance.py").removesuffix("ir\\provenance.py")
OURS = (
    "<graphcore ",  # generated code
    *(PACKAGE + part for part in ("ir", "ops", "frontend", "inspection", "rewrites", "backends")),
    *(PACKAGE + part for part in ("interop", "compile")),
)


class Origin(NamedTuple):
    """A line of the user's program; `via` is the line that asked for the derivative, if one did.

    Shown as `model.py:7 ← 11`: line 7, for the derivative that line 11 asked for.
    """

    file: str
    line: int
    via: Origin | None = None

    def __str__(self) -> str:
        here = f"{basename(self.file)}:{self.line}"
        if self.via is None:
            return here
        asked = str(self.via)
        return f"{here} ← {asked.removeprefix(f'{basename(self.file)}:')}"


@lru_cache(maxsize=1024)
def basename(file: str) -> str:
    """The last part of a path."""
    return file.replace("\\", "/").rpartition("/")[2]


class _Inherited(threading.local):
    origin: Origin | None = None


_inherited = _Inherited()


def current() -> Origin:
    """The origin of a node built now: the one being rewritten, else the user's line."""
    return _inherited.origin or user_line()


def user_line() -> Origin:
    """The innermost line on the stack that is not the library's own."""
    frame = sys._getframe(1)
    while is_ours(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def called(otherwise: str) -> str:
    """The public function that the user's line calls, by its module's `__all__`, or `otherwise`.

    What is no single word, as `at.set` or a path to a part of an argument, says more and stays.
    """
    found, frame = otherwise, sys._getframe(1)
    while otherwise.isidentifier() and is_ours(frame.f_code.co_filename) and frame.f_back:
        if frame.f_code.co_name in frame.f_globals.get("__all__", ()):
            found = frame.f_code.co_name
        frame = frame.f_back
    return found


@lru_cache(maxsize=4096)
def is_ours(file: str) -> bool:
    """Whether code in `file` is the library's own."""
    return file.startswith(OURS)


def inherit(origin: Origin | None) -> Origin | None:
    """From now on nodes of this thread are born with `origin` (None: the user's line again).

    Returns what held before, to be put back. A plain function, as it runs once a node and rule.
    """
    before, _inherited.origin = _inherited.origin, origin
    return before


@contextmanager
def inheriting(origin: Origin | None) -> Iterator[None]:
    """Nodes built in this block are born with `origin`."""
    before = inherit(origin)
    try:
        yield
    finally:
        inherit(before)
