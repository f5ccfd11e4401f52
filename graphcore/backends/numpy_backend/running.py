"""How code runs: as one function that Python compiles, or step by step."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt

from graphcore.backends.python_code import python_code
from graphcore.schedule.program import Bound, Program

from .source import Code, Line, Source
from .stepwise import Assembly

Array = npt.NDArray[Any]
Run: TypeAlias = "Callable[[Sequence[Array], Sequence[int], Any], list[Array]]"

LONG = 250
"""The number of lines from which on code runs step by step.

Python takes 20 microseconds to compile a line. A step takes up to 0.1 more a call than its line,
which short programs of small arrays would notice.
"""


class Failure(NamedTuple):
    """The line that failed, the values of all names there, and its text."""

    line: Line | None
    values: Mapping[str, Any]
    text: str


class Running:
    """Code that runs, and the text of it that Python has compiled, whose lines tracebacks show."""

    steps: Mapping[int, Line] = {}
    """The line of each step of a program, by the register of its result."""
    names: Mapping[str, int] = {}
    """The registers of a program by name."""

    def __init__(self, code: Code, source: Source) -> None:
        self.code, self.source, self.python = code, source, python_code(source.text)
        exec(self.python.code, code.scope)

    def bind(self, sizes: Sequence[int], buffers: list[Array]) -> Any:
        """The memory that calls of these sizes need in addition to their arguments."""
        return buffers

    def runs(self, frame: FrameType) -> bool:
        """Whether a frame runs this code, and not equal code of another program."""
        return frame.f_globals is self.code.scope and frame.f_code.co_filename == self.python.file

    def failure(self, error: Exception) -> Failure:
        """Where an error comes from: a step, or the line of a block that it runs."""
        trace, values = error.__traceback__, dict(self.code.scope)
        line, text = None, ""
        while trace is not None:  # deep blocks are functions, called by each other
            frame = trace.tb_frame
            if frame.f_code is Program.run.__code__:
                line = self.steps.get(frame.f_locals["result"])
                text = "" if line is None else str(line)
                registers = frame.f_locals["registers"]
                values |= {name: registers[at] for name, at in self.names.items()}
            elif self.runs(frame):
                line = self.source.lines.get(trace.tb_lineno)
                text = linecache.getline(self.python.file, trace.tb_lineno)
                values |= frame.f_locals
            trace = trace.tb_next
        return Failure(line, values, text.strip())


class Generated(Running):
    """Code as one function that Python compiles."""

    def __init__(self, code: Code, source: Source | None = None) -> None:
        super().__init__(code, source or code.render())
        self.run: Run = code.scope["run"]


class Stepwise(Running):
    """Code as a program of steps; Python compiles its blocks alone."""

    def __init__(self, code: Code) -> None:
        assembly = Assembly(code)
        super().__init__(code, assembly.source())
        self.program = assembly.program()
        self.steps, self.names = assembly.lines, assembly.names
        self.given = [assembly.names[x] for x in (*code.known_sizes(), *code.buffers.values())]

    def bind(self, sizes: Sequence[int], buffers: list[Array]) -> Bound:
        """The registers of the program, filled for calls of these sizes."""
        return self.program.bind(dict(zip(self.given, (*sizes, *buffers), strict=True)))

    def run(self, arrays: Sequence[Array], sizes: Sequence[int], bound: Bound) -> list[Array]:
        """The results of a call."""
        return self.program.run(arrays, bound)


def make_runner(code: Code) -> Generated | Stepwise:
    """The quicker way: short code is compiled, as its lines run a little faster than steps."""
    return Stepwise(code) if len(code.lines) >= LONG else Generated(code)
