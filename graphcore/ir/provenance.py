"""Where a node comes from: the user's file and line, or the node whose place it takes."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from .name_text import escape

PACKAGE = __file__.removesuffix("ir/provenance.py").removesuffix("ir\\provenance.py")
OURS = "<graphcore ", PACKAGE
"""Generated code, and the files of this package."""
USERS = PACKAGE + "demo"
"""The files of this package whose lines are shown as a user's."""
CALLERS = ("jax", "matplotlib", "numpy", "pandas", "pymc", "pytensor", "scipy", "xarray")
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
        return self.shown()

    @property
    def code(self) -> str:
        """The text of the line, or "" where it is not known."""
        return "".join(source_lines(self.file)[self.line - 1 : self.line]).strip()

    def shown(
        self, called: bool = True, most: int | None = None, name: Callable[[str], str] = str
    ) -> str:
        """The lines, those that asked for derivatives up to `most`, files by a form of their name.

        The line that called the function is left out unless `called`.
        """

        def place(file: str, line: int, near: str) -> str:
            return str(line) if file == near else f"{name(basename(file))}:{line}"

        text, near, asked = place(self.file, self.line, ""), self.file, self.via
        if called and self.caller is not None:
            text += f" (from {place(*self.caller, near)})"
        while asked is not None:
            if most is not None and (most := most - 1) < 0:
                return f"{text} ← …"
            text += f" ← {place(asked.file, asked.line, near)}"
            near, asked = asked.file, asked.via
        return text


def called_often(origins: Iterable[Origin]) -> set[tuple[str, int]]:
    """The lines of functions that were called from several lines, as (file, line)."""
    callers: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for origin in origins:
        if origin.caller is not None:
            callers.setdefault((origin.file, origin.line), set()).add(origin.caller)
    return {line for line, some in callers.items() if len(some) > 1}


def source_lines(file: str) -> list[str]:
    """The lines of a file; none of one known by a part of its path, as in a program of `load`.

    Python would look everywhere for a file of such a name, and find another.
    """
    known = Path(file).is_absolute() or file in linecache.cache
    return linecache.getlines(file) if known else []


def basename(file: str) -> str:
    """The last part of a path, on one line; `In [3]` for a cell of a notebook."""
    return cell(file) or escape(last_part(file))


@lru_cache(maxsize=1024)
def last_part(file: str) -> str:
    """The last part of a path."""
    return file.replace("\\", "/").rpartition("/")[2]


def cell(file: str) -> str:
    """The cell that IPython compiled under the name of this file, as it ran last, or ""."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    label, name = (named and named(file)) or ("", "")
    return name.replace("In[", "In [") if label == "Cell" else ""


NOWHERE = Origin("unknown", 0)
"""The line of a node that a compilation built, where no compilation describes it."""


class State(threading.local):
    """The sources of the nodes that this thread builds.

    `trace` knows the lines and labels of one compilation; nodes are described by it while it is
    set. `sources` is written by a compilation: the source of each node that it builds. `source` is
    the source of the nodes built now.
    """

    trace: Any = None
    sources: dict[Any, Any] | None = None
    source: Any = None


thread_state = State()


class Asked(NamedTuple):
    """The source of a part of a derivative: the node differentiated, and the source that asked."""

    node: Any
    by: Any


def line_of(source: Any) -> Origin:
    """The user's line that a source stands for: a line, a node, or a derivative of one."""
    if isinstance(source, Asked):
        return line_of(source.node)._replace(via=None if source.by is None else line_of(source.by))
    found: Origin = source if isinstance(source, Origin) else source.origin
    return found


def current_line() -> Origin:
    """The line of a node built now: that of the node being rewritten, else the user's."""
    return user_line() if thread_state.source is None else line_of(thread_state.source)


class Build(NamedTuple):
    """Builds of one node from one line, in a row: the numbers of the first and last of them."""

    first: int
    last: int
    origin: Origin


_build_numbers = count(1)
CHANGES_KEPT = 16
"""The number of changes of the line that builds a node which are remembered, the last ones."""


def built_again(builds: tuple[Build, ...]) -> tuple[Build, ...]:
    """The builds of a node, and the one that is happening now."""
    number, origin = next(_build_numbers), current_line()
    if builds and builds[-1].origin == origin:
        return *builds[:-1], Build(builds[-1].first, number, origin)
    return *builds[1 - CHANGES_KEPT :], Build(number, number, origin)


def built_before(builds: Sequence[Build], bound: float) -> Build:
    """The last of these builds that came before the build numbered `bound`, or the first."""
    return next((build for build in reversed(builds) if build.first <= bound), builds[0])


def user_line() -> Origin:
    """The innermost line that is neither ours nor of a library that calls us, and its caller."""
    frame, entered = sys._getframe(1), ""
    while library(frame.f_code.co_filename) and frame.f_back is not None:
        if frame.f_code.co_qualname != WORDED:
            entered = frame.f_code.co_qualname
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    return Origin(file, line, None, caller(frame, (file, line)), public_name(entered))


WORDED = "reword_errors.<locals>.call"
"""The wrapper around each public function, which words the errors of wrong arguments."""


@lru_cache(maxsize=4096)
def public_name(function: str) -> str:
    """The users' name of a function or method of ours; "" for operators and inner functions.

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


def public_call(otherwise: str = "graphcore") -> str:
    """The function or method of ours that the user's innermost line calls, or `otherwise`.

    In a body that `scan` calls it is what the body calls. What rewrites build, no line calls.
    """
    found, frame = otherwise, sys._getframe().f_back
    while frame and library(file := frame.f_code.co_filename) and not file.startswith(REWRITES):
        if is_ours(file):
            found = called_by(frame) or found
        frame = frame.f_back
    return found


def called_by(frame: FrameType) -> str:
    """What a frame runs, as errors name it: a public function, or one that it made, or an operator.

    "" for inner functions.
    """
    whole, known = frame.f_code.co_qualname, frame.f_locals
    if whole == WORDED:
        function = known["function"]
        space = "tree." if ".frontend.tree." in function.__module__ else ""
        return space + public_name(function.__qualname__)
    if whole == "apply" and "op" in known:
        return str(known["op"].name)
    name = whole.partition(".<locals>")[0]
    return name if name in frame.f_globals.get("__all__", ()) else SPECIAL.get(whole, "")


SPECIAL = {
    "Tensor.__getitem__": "isel",
    "At.__getitem__": "at",
    "Unravel.__call__": "unravel",
    "Sizes.__missing__": "sizes",
    "Stages.__missing__": "stages",
    "Function.__init__": "function",
    "optimizer.<locals>.init": "init",
    "optimizer.<locals>.update": "update",
}
"""How errors name what special methods do, and the functions of optimizers."""
REWRITES = PACKAGE + "rewrites"


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
    if file.startswith(OURS) and not file.startswith(USERS):
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


def inherit(source: Any) -> Any:
    """From now on nodes of this thread come from `source` (None: from the user's own line).

    Returns the source that held before, to be put back. A plain function, as it runs once a node
    and rule.
    """
    before, thread_state.source = thread_state.source, source
    return before


@contextmanager
def inheriting(source: Any) -> Iterator[None]:
    """Nodes built in this block come from `source`: a line, or a node."""
    before = inherit(source)
    try:
        yield
    finally:
        inherit(before)


@contextmanager
def setting(owner: Any, **values: Any) -> Iterator[None]:
    """In this block an object has these attributes, and after it those from before."""
    before = {name: getattr(owner, name) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


def described_by(trace: Any) -> AbstractContextManager[None]:
    """Nodes have in this block the lines and labels that they have in a compilation.

    Nodes built in it are no part of that compilation.
    """
    return setting(thread_state, trace=trace, sources=None)
