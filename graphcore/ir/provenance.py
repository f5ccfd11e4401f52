"""Where a node comes from: the user's file and line, inherited by whatever replaces the node."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType
from typing import NamedTuple

PACKAGE = __file__.removesuffix("ir/provenance.py").removesuffix("ir\\provenance.py")
OURS = (
    "<graphcore ",  # generated code
    *(PACKAGE + part for part in ("ir", "ops", "frontend", "inspection", "rewrites", "backends")),
    *(PACKAGE + part for part in ("schedule", "interop", "compile")),
)
CALLERS = ("numpy", "pandas", "scipy", "xarray")
"""Libraries that call ours for the user, as xarray does for `array * x`."""


class Origin(NamedTuple):
    """A line of the user's program.

    `via` is the line that asked for the derivative, if one did; `caller` is the line that called
    the function in which the line stands, as a function called often makes many nodes of one line.
    Shown as `model.py:7 (from 31) ← 11`: line 7 of a function that line 31 called, for the
    derivative that line 11 asked for. `function` is the one of ours that the line calls, or "".
    """

    file: str
    line: int
    via: Origin | None = None
    caller: tuple[str, int] | None = None
    function: str = ""

    def __str__(self) -> str:
        text, near, asked = place(self.file, self.line), self.file, self.via
        if self.caller is not None:
            text += f" (from {place(*self.caller, near)})"
        while asked is not None:
            text += f" ← {place(asked.file, asked.line, near)}"
            near, asked = asked.file, asked.via
        return text


def place(file: str, line: int, near: str = "") -> str:
    """`model.py:7`, or the line alone where the file was named before."""
    return str(line) if file == near else f"{basename(file)}:{line}"


def called_often(origins: Iterable[Origin]) -> set[tuple[str, int]]:
    """The lines of functions that were called from several lines, as (file, line)."""
    callers: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for origin in origins:
        if origin.caller is not None:
            callers.setdefault((origin.file, origin.line), set()).add(origin.caller)
    return {line for line, some in callers.items() if len(some) > 1}


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
    """The innermost line that is neither ours nor of a library that calls us, and its caller."""
    frame, entered = sys._getframe(1), ""
    while library(frame.f_code.co_filename) and frame.f_back is not None:
        if frame.f_code.co_qualname != WORDED:
            entered = frame.f_code.co_qualname
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    return Origin(file, line, None, caller(frame, (file, line)), spoken(entered))


WORDED = "worded.<locals>.call"
"""What stands in for our functions, to word wrong arguments."""


@lru_cache(maxsize=4096)
def spoken(function: str) -> str:
    """What users call a function or a method of ours; "" for operators and what is made of parts.

    `segment_sum`; `isel` for `Tensor.isel`; `at.add` for `Region.add`.
    """
    kind, _, name = function.rpartition(".")
    if not name.isidentifier() or name.startswith("_") or "<" in kind:
        return ""
    return f"at.{name}" if kind == "Region" else name


def caller(frame: FrameType | None, here: tuple[str, int]) -> tuple[str, int] | None:
    """The user's line that called the function of `frame`; None where none did, or `here` did."""
    while frame is not None and (name := frame.f_code.co_name) != "<module>":
        frame = frame.f_back
        if name in COMPREHENSIONS:  # which have a frame of their own before Python 3.12
            continue
        while frame is not None and is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None or is_installed(file := frame.f_code.co_filename):
            return None
        found = file, frame.f_lineno
        return None if found == here else found
    return None


COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


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


def calling_library() -> str:
    """The library of `CALLERS` that calls ours, or "" if the user's own code does."""
    frame = sys._getframe(1)
    while is_ours(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return library(frame.f_code.co_filename)


def is_ours(file: str) -> bool:
    """Whether code in `file` is this library's own."""
    return library(file) == "graphcore"


@lru_cache(maxsize=4096)
def library(file: str) -> str:
    """The library that `file` belongs to, ours or one of `CALLERS`; "" if it is the user's."""
    if file.startswith(OURS):
        return "graphcore"
    for name in CALLERS:
        folders = getattr(sys.modules.get(name), "__path__", ())
        if any(file.startswith(f"{folder}{os.sep}") for folder in folders):
            return name
    return ""


@lru_cache(maxsize=4096)
def is_installed(file: str) -> bool:
    """Whether code in `file` belongs to Python or to an installed package, not to a program."""
    paths = sysconfig.get_paths()
    installed = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return file.startswith(("<frozen ", *(path + os.sep for path in installed)))


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
