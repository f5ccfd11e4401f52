"""Programs of NumPy calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from graphcore.backends.target import Program, Values
from graphcore.ir import Node

from . import Kernels, build
from .function import Function
from .measuring import Lines


class PythonProgram(Program):
    """A graph as one Python function, which calls machine code for kernels if there are some."""

    @cached_property
    def function(self) -> Function:
        """The function of arrays and sizes, written when it is first needed."""
        return build(self.graph, self.boundary.unknowns, self.kernels())

    def kernels(self) -> Kernels | None:
        """The function that makes machine code of kernels, if there are some."""
        return None

    def note(self, node: Node) -> str:
        """The buffer that a result is written into."""
        return self.function.places.get(node, "")


class NumPyProgram(PythonProgram):
    """A graph as one Python function of NumPy calls."""

    def make(self) -> Values:
        """The function of a call's arguments."""
        bind, run = self.boundary.bind, self.function.__call__
        return lambda *args: run(*bind(args))

    def lines(self) -> Sequence[tuple[str, Sequence[Node]]]:
        """The lines of the Python function."""
        return self.function.source_lines()

    def measure(self, given: Sequence[Any]) -> Lines:
        """The program, each call of which is measured."""
        return Lines(self.function, self.boundary.convert(given))

    def file_text(self, arguments: Sequence[Any], results: Any) -> str:
        """The program as one Python file."""
        from .export.python_file import file_text  # loaded at its first use

        return file_text(self.function, self.boundary, arguments, results)
