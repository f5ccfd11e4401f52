"""Programs of machine code, with NumPy calls between its kernels where an op has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from graphcore.backends.c_interface import Entry, Interface
from graphcore.backends.numpy_backend import Kernels
from graphcore.backends.numpy_backend.program import PythonProgram
from graphcore.backends.target import Measurement, Values
from graphcore.ir import Node
from graphcore.ir.provenance import described_by
from graphcore.schedule.regions import sizes_needed

from . import build, hosted, single_kernel, text, writer
from .machine import making
from .nests import Shares
from .sharing import LEAST


class NativeProgram(PythonProgram):
    """A graph as machine code: as one kernel, or as a function of NumPy calls and kernels."""

    def kernels(self) -> Kernels:
        """The function that makes machine code of kernels."""
        return hosted

    def make(self) -> Values:
        """The function of a call's arguments."""
        with making():
            return build(self.graph, self.boundary.unknowns, self.boundary.bind)

    def writer(self) -> Callable[..., None] | None:
        """What computes results in arrays that it is given, where the program is one kernel."""
        with making(), described_by(self.graph.trace):
            return writer(self.graph, self.boundary.unknowns)

    def lines(self) -> Sequence[tuple[str, Sequence[Node]]]:
        """Lines of pseudo-code, below the NumPy calls if there are some."""
        from .pseudocode import pseudo_lines  # loaded at its first use

        if single_kernel(self.graph) is not None:
            return pseudo_lines(self.graph, shares=self.shares[""])
        with described_by(self.graph.trace):
            kernels = [
                line
                for name, body in self.function.kernels.items()
                for line in [("", ()), *pseudo_lines(body, name, self.shares[name])]
            ]
        return [*self.function.source_lines(), *kernels]

    def said_of_threads(self, node: Node) -> str:
        """Whether threads share the loops of a step of machine code."""
        always = [shares[node] for shares in self.shares.values() if node in shares]
        if not always:
            return ""
        return "share its loops" + ("" if all(always) else f", from about {LEAST:,} values on")

    @cached_property
    def shares(self) -> Mapping[str, Shares]:
        """The steps of each kernel, by its name in the source, that threads share."""
        from .shared_steps import shares  # loaded at its first use

        with making(), described_by(self.graph.trace):
            if (called := single_kernel(self.graph)) is not None:
                return {"": shares(called.attrs["body"], self.boundary.unknowns)}
            kernels = self.function.kernels.items()
            return {name: shares(body, sizes_needed(body)) for name, body in kernels}

    def measure(self, given: Sequence[Any]) -> Measurement:
        """The program with meters in its kernels, and with a clock at its NumPy calls."""
        from .measuring import measured  # loaded at its first use

        return measured(self.graph, self.boundary, given)

    @property
    def llvm(self) -> str:
        """The LLVM IR of all kernels, with the user's lines as comments."""
        return text(self.graph, self.boundary.unknowns)

    def c_function(self) -> Callable[[Interface], Entry]:
        """Makes a C function of the kernel that the program is."""
        from .c_entry import entry_maker  # loaded at its first use

        return entry_maker(self.graph, self.boundary)
