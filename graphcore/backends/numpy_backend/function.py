"""A graph that runs: generated code, its buffers, and its errors in the user's words."""

from __future__ import annotations

import contextvars
import linecache
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import count
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphcore.ir.errors import GraphError, GraphIndexError, GraphValueError
from graphcore.ir.graph import Graph
from graphcore.ir.sizes import evaluate
from graphcore.ir.types import show_tensor

from .codegen import generate

Array = npt.NDArray[Any]
serial = count(1)
KEPT = 4
"""For how many different sizes buffers are kept between calls."""


class Workspace(NamedTuple):
    """Buffers for one call at a time, and a context in which NumPy raises no flags."""

    buffers: list[Array]
    run: Callable[..., Any]


class Function:
    """A compiled graph: arrays and unknown sizes in, arrays of the caller's own out.

    Reentrant and safe under threads: each call takes a workspace of its own.
    """

    def __init__(self, graph: Graph, unknowns: tuple[str, ...]) -> None:
        self._code = generate(graph, unknowns)
        self.source, self.unknowns = self._code.source, unknowns
        self.places = self._code.places
        self._file = f"<graphcore {next(serial)}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self._file] = (len(self.source), None, lines, self._file)
        weakref.finalize(self, linecache.cache.pop, self._file, None)
        scope = self._code.scope
        exec(compile(self.source, self._file, "exec"), scope)
        self._main = scope["run"]
        self._free: OrderedDict[tuple[int, ...], list[Workspace]] = OrderedDict()

    def __call__(self, arrays: Sequence[Array], sizes: tuple[int, ...]) -> list[Array]:
        """The results for checked arrays and the unknown sizes in order."""
        try:
            workspace = self._free[sizes].pop()
        except (KeyError, IndexError):
            workspace = self.workspace(sizes)
        buffers, run = workspace
        try:
            results: list[Array] = run(self._main, arrays, sizes, buffers)
        except Exception as error:
            raise self._explained(error) from error
        finally:
            self.give_back(sizes, workspace)
        return results

    def give_back(self, sizes: tuple[int, ...], workspace: Workspace) -> None:
        """Keep a workspace for the next call of these sizes."""
        kept = self._free.get(sizes)
        if kept is None:
            kept = self._free.setdefault(sizes, [])
        kept.append(workspace)

    def workspace(self, sizes: tuple[int, ...]) -> Workspace:
        """A new workspace; those of the sizes seen longest ago are dropped."""
        while len(self._free) >= KEPT:
            self._free.popitem(last=False)
        known = dict(zip(self.unknowns, sizes, strict=True))
        memory: dict[int, Array] = {}
        buffers = []
        for buffer in self._code.buffers:
            shape = [evaluate(size, known) for size in buffer.type.shape]
            if buffer.slot not in memory:
                memory[buffer.slot] = np.empty(prod(shape), buffer.type.dtype)
            buffers.append(memory[buffer.slot].reshape(shape))
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        return Workspace(buffers, context.run)

    def _explained(self, error: Exception) -> GraphError:
        """The error with the op, its dims and the user's line."""
        trace = error.__traceback__
        node = None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._file:
                node = self._code.lines.get(trace.tb_lineno)
            trace = trace.tb_next
        kind = GraphIndexError if isinstance(error, IndexError) else GraphValueError
        if node is None:
            return kind(f"call: {error}")
        shown = show_tensor(node.type, node.labels)
        return kind(f"call: {node.op.name}, {shown}, at {node.origin}: {error}")
