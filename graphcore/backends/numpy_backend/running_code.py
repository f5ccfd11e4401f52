"""Code that runs: one function that Python compiles."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

from graphcore.backends.python_code import python_code
from graphcore.ir import Array

from .source import Code, Line, Source

Run: TypeAlias = "Callable[[Sequence[Array], Sequence[int], Sequence[Array]], list[Array]]"


class Failure(NamedTuple):
    """The line that failed, the values of all names there, and its text."""

    line: Line | None
    values: Mapping[str, Any]
    text: str


class Running:
    """Code as a function of arrays, sizes and buffers; tracebacks show lines of its text.

    `names` mean other objects in it than they do in the code.
    """

    def __init__(self, code: Code, source: Source | None = None, **names: Any) -> None:
        self.code, self.source = code, source or code.render()
        self.python = python_code(self.source.text)
        self.scope = {**code.scope, **names}
        exec(self.python.code, self.scope)
        self.run: Run = self.scope["run"]

    def runs(self, frame: FrameType) -> bool:
        """Whether a frame runs this code, and not equal code of another program."""
        return frame.f_globals is self.scope and frame.f_code.co_filename == self.python.file

    def failure(self, error: Exception) -> Failure:
        """Where an error comes from."""
        trace, values = error.__traceback__, dict(self.scope)
        line, text = None, ""
        while trace is not None:  # deep blocks are functions, called by each other
            if self.runs(trace.tb_frame):
                line = self.source.lines.get(trace.tb_lineno)
                text = linecache.getline(self.python.file, trace.tb_lineno)
                values |= trace.tb_frame.f_locals
            trace = trace.tb_next
        return Failure(line, values, text.strip())
