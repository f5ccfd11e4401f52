"""A graph that runs: generated code, its buffers, and its errors in the user's words."""

from __future__ import annotations

import contextvars
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphcore.backends import result_memory
from graphcore.backends.errors import DEFECTS, defect, in_step, outside, reword
from graphcore.ir import Array, Graph, Node
from graphcore.ir.errors import GraphError
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.provenance import described_by
from graphcore.ir.sizes import evaluate
from graphcore.schedule.regions import stands_for

from .callbacks import CallbackError
from .codegen import generate
from .kernels import KernelError
from .memory import on_line
from .running_code import Running
from .source import Code
from .writer import Kernels

SIZES_KEPT = 4
"""The number of different sizes for which buffers are kept between calls."""


class Workspace(NamedTuple):
    """Memory for one call at a time, a context in which NumPy raises no flags, and what runs."""

    buffers: list[Array]
    run: Callable[..., Any]
    code: Running


class Function:
    """A compiled graph: arrays and unknown sizes in, arrays of the caller's own out.

    Reentrant and safe under threads: each call takes a workspace of its own.
    """

    def __init__(
        self, graph: Graph, unknowns: tuple[str, ...], compiled: Kernels | None = None
    ) -> None:
        self.unknowns, self.code = unknowns, generate(graph, unknowns, compiled)
        self._trace = graph.trace
        self._results = [y.type for y in graph.outputs if y.type.unknowns <= {*unknowns}]
        self._start(Running(self.code))

    def _start(self, running: Running) -> None:
        self.running = running
        self._idle: OrderedDict[tuple[int, ...], list[Workspace]] = OrderedDict()

    def run_as(self, way: Callable[[Code], Running]) -> Function:
        """The same function, whose code runs in a way of its own."""
        other = copy(self)
        with described_by(self._trace):
            other._start(way(self.code))
            other._reusing = other.running
        return other

    @property
    def source(self) -> str:
        """The code as one Python function."""
        with described_by(self._trace):
            return self.code.source().text

    def source_lines(self) -> list[tuple[str, Sequence[Node]]]:
        """The lines of the source, each with the node that it computes."""
        with described_by(self._trace):
            text, lines = self.code.source()
        numbered = enumerate(text.splitlines(), 1)
        return [(line, (lines[i].node,) if i in lines else ()) for i, line in numbered]

    @property
    def kernels(self) -> Mapping[str, Graph]:
        """The bodies of the kernels that the source calls, by name."""
        return {name: body for body, name in self.code.kernels.items()}

    @property
    def places(self) -> Mapping[Node, str]:
        """The buffer of each node that has one, by its name in the source."""
        return self.code.places

    def __call__(self, arrays: Sequence[Array], sizes: tuple[int, ...]) -> list[Array]:
        """The results for checked arrays and the unknown sizes in order."""
        idle = self._idle.get(sizes)
        if idle is None:
            idle = self._new_idle(sizes)
        try:
            workspace = idle.pop()
        except IndexError:
            workspace = self.workspace(sizes)
        try:
            results: list[Array] = workspace[1](workspace[2].run, arrays, sizes, workspace[0])
        except Exception as error:
            if is_interrupt(error):
                raise
            cause = error.__cause__ if isinstance(error, CallbackError) else None
            with described_by(self._trace):
                raise self._explain(error, workspace.code) from (cause or error)
        finally:
            idle.append(workspace)
        return results

    def _new_idle(self, sizes: tuple[int, ...]) -> list[Workspace]:
        """An empty list of workspaces for new sizes; those of the oldest sizes are given up."""
        while len(self._idle) >= SIZES_KEPT:
            self._idle.popitem(last=False)
        return self._idle.setdefault(sizes, [])

    def workspace(self, sizes: tuple[int, ...]) -> Workspace:
        """A new workspace: buffers of these sizes, a context for them alone, and the code."""
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        known = dict(zip(self.unknowns, sizes, strict=True))
        large = [
            y
            for y in self._results
            if result_memory.is_large(evaluate(y.count, known) * y.dtype.itemsize)
        ]
        running = self._reusing if large else self.running
        return Workspace(self.buffers(sizes), context.run, running)

    @cached_property
    def _reusing(self) -> Running:
        """The code, whose new arrays lie in memory that is used again."""
        return Running(self.code, empty=result_memory.empty)

    def buffers(self, sizes: tuple[int, ...]) -> list[Array]:
        """New buffers for a call of these sizes."""
        known = dict(zip(self.unknowns, sizes, strict=True))
        memory: dict[Any, Array] = {}
        buffers = []
        for buffer, name in self.code.buffers.items():
            shape = [evaluate(size, known) for size in buffer.type.shape]
            if buffer.slot not in memory:
                try:
                    new = partial(on_line, prod(shape), buffer.type.dtype)
                    memory[buffer.slot] = result_memory.with_all_memory(new)
                except (MemoryError, ValueError) as error:
                    if is_interrupt(error):
                        raise
                    written = [node for node, place in self.places.items() if place == name]
                    with described_by(self._trace):
                        node = stands_for(written[0]) if written else None
                        raise reword(error, node) from error
            buffers.append(memory[buffer.slot].reshape(shape))
        return buffers

    def _explain(self, error: Exception, running: Running) -> GraphError:
        """The error with the op, its dims and the user's line."""
        line, values, text = running.failure(error)
        if isinstance(error, DEFECTS):
            return defect(error, None if line is None else line.node, text)
        if line is None:
            return reword(error, None)
        within = [in_step(values[step], loop) for step, loop in line.steps.items()]
        if isinstance(error, KernelError):
            return error.worded(line.node, *within)
        if isinstance(error, CallbackError):
            return reword(error, line.node, str(error), error.cure, *within)
        node, found = line.computes, None
        if isinstance(error, IndexError) and "axes" in node.attrs:
            known = {size: values[name] for size, name in self.code.sizes.items() if name in values}
            found = outside(node, [values.get(name) for name in line.operands], known)
        return reword(error, node, *(found or ("", "")), *within)
