"""The linker that runs PyTensor's functions as programs, and the mode "GRAPHCORE"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pytensor.compile.mode import Mode, predefined_modes, register_mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.basic import JITLinker

import graphcore as gc

from .programs import LEFT_OUT, REWRITES, inputs_like, parts, results
from .random import Run, is_random, mixed
from .rules import names_of

MODE = "GRAPHCORE"
"""The name of the mode."""

QUERY = RewriteDatabaseQuery(
    include=["minimum_compile", "lower_xtensor", *REWRITES], exclude=LEFT_OUT
)
"""What PyTensor rewrites: no fusion, nothing in place, nothing for BLAS."""


class GraphcoreLinker(JITLinker):  # type: ignore[misc]  # PyTensor is typed where it is installed
    """Runs a function of PyTensor as one program; its random variables are drawn by PyTensor."""

    required_rewrites = ("minimum_compile",)
    incompatible_rewrites = (
        "cxx_only",
        "BlasOpt",
        "fusion",
        "inplace",
        "local_careduce_fusion",
        "scan_reduce_trace_prealloc",
    )
    target: ClassVar[str | None] = None
    """The target of the programs; by default the rule chooses."""

    def fgraph_convert(self, fgraph: Any, *args: Any, **options: Any) -> Run:
        """A function of arrays in place of a graph."""
        if any(map(is_random, fgraph.apply_nodes)):
            return mixed(fgraph, self.compiled)
        return self.compiled(fgraph)

    def compiled(self, fgraph: Any) -> Run:
        """A graph without random nodes as a program."""
        if not fgraph.outputs:
            return nothing
        inputs = inputs_like(fgraph.inputs)
        outputs = results(fgraph, parts(inputs, fgraph.inputs))
        program: Run = gc.compile(inputs, outputs, target=self.target)
        if any("ScalarType" in names_of(v.type) for v in fgraph.outputs):
            program = as_typed(program, fgraph.outputs)
        checks = [
            node.op.exc_type for node in fgraph.apply_nodes if "CheckAndRaise" in names_of(node.op)
        ]
        return as_raised(program, tuple(checks)) if checks else program

    def jit_compile(self, fn: Run) -> Run:
        """The function itself: it is compiled at its first call."""
        return fn

    def create_thunk_inputs(self, storage_map: dict[Any, Any]) -> list[Any]:
        """The cells of the inputs."""
        return [storage_map[v] for v in self.fgraph.inputs]


def nothing(*values: Any) -> Any:
    """What a function without results returns to PyTensor."""
    return None


def as_typed(program: Run, outputs: Sequence[Any]) -> Run:
    """A program whose results are numbers of NumPy where PyTensor's type is a scalar's."""
    scalars = ["ScalarType" in names_of(v.type) for v in outputs]

    def call(*values: Any) -> Any:
        results = program(*values)
        return [y[()] if alone else y for y, alone in zip(results, scalars)]

    return call


def as_raised(program: Run, kinds: tuple[type[Exception], ...]) -> Run:
    """A program whose checks raise the errors that PyTensor's user chose."""

    def call(*values: Any) -> Any:
        try:
            return program(*values)
        except gc.GraphError as error:
            if isinstance(error.__cause__, kinds):
                raise error.__cause__ from None
            raise

    return call


def register() -> None:
    """Makes the mode known to PyTensor."""
    if MODE not in predefined_modes:
        register_mode(MODE, Mode(GraphcoreLinker(), QUERY))
