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

from graphcore.ir.errors import (
    DefectError,
    GraphError,
    GraphIndexError,
    GraphMemoryError,
    GraphValueError,
)
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.provenance import user_line
from graphcore.ir.size_text import show_dim
from graphcore.ir.sizes import evaluate
from graphcore.ir.types import TupleType, show_tensor
from graphcore.ops import tensor

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
        self._idle: OrderedDict[tuple[int, ...], list[Workspace]] = OrderedDict()

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
            results: list[Array] = workspace[1](self._main, arrays, sizes, workspace[0])
        except Exception as error:
            raise self._explained(error) from error
        finally:
            idle.append(workspace)
        return results

    def _new_idle(self, sizes: tuple[int, ...]) -> list[Workspace]:
        """Room for the workspaces of these sizes; that of the oldest sizes is given up."""
        while len(self._idle) >= KEPT:
            self._idle.popitem(last=False)
        return self._idle.setdefault(sizes, [])

    def workspace(self, sizes: tuple[int, ...]) -> Workspace:
        """A new workspace: buffers of these sizes, and a context for them alone."""
        known = dict(zip(self.unknowns, sizes, strict=True))
        memory: dict[Any, Array] = {}
        buffers = []
        for number, buffer in enumerate(self._code.buffers):
            shape = [evaluate(size, known) for size in buffer.type.shape]
            if buffer.slot not in memory:
                try:
                    memory[buffer.slot] = np.empty(prod(shape), buffer.type.dtype)
                except (MemoryError, ValueError) as error:
                    told = (node for node, name in self.places.items() if name == f"b{number}")
                    raise worded(error, next(told, None)) from error
            buffers.append(memory[buffer.slot].reshape(shape))
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        return Workspace(buffers, context.run)

    def _explained(self, error: Exception) -> GraphError:
        """The error with the op, its dims and the user's line."""
        trace = error.__traceback__
        line, values, text = None, dict(self._code.scope), ""
        while trace is not None:  # deep blocks are functions, called by each other
            if trace.tb_frame.f_code.co_filename == self._file:
                line = self._code.lines.get(trace.tb_lineno)
                text = linecache.getline(self._file, trace.tb_lineno).partition("  # ")[0].strip()
                values |= trace.tb_frame.f_locals
            trace = trace.tb_next
        if isinstance(error, DEFECTS):
            return defect(error, None if line is None else line.node, text)
        if line is None:
            return worded(error, None)
        node, found = line.node, None
        if isinstance(error, IndexError) and "axes" in node.attrs:
            known = {name: values[n] for name, n in self._code.sizes.items() if n in values}
            found = outside(node, [values.get(name) for name in line.operands], known)
        within = [
            f"  in step {values[step]} (from 0) of {loop.said} at {loop.origin}"
            for step, loop in line.steps.items()
        ]
        return worded(error, node, *(found or ("", "")), *within)


DEFECTS = (TypeError, NameError, AttributeError, KeyError, AssertionError)
"""Errors that no values make: types and names were settled when the program was compiled."""


def defect(error: Exception, node: Node | None, text: str) -> DefectError:
    """An error that is ours, with the line of generated code that it comes from."""
    where = "" if node is None else f" in {node.said} at {node.origin}"
    return DefectError(
        f"call: a defect of graphcore, not of the program,{where}: {type(error).__name__}: "
        f"{error}\n  in the generated line `{text}`\n  called at {user_line()}\n"
        f"  cure: please report it, with the program"
    )


def worded(
    error: Exception, node: Node | None, reason: str = "", cure: str = "", *within: str
) -> GraphError:
    """What values of the call, or its sizes, made fail, in the user's words.

    `within` are lines that say in which steps of loops.
    """
    kind: type[GraphError] = GraphValueError
    reason = reason or str(error).rstrip(".")
    cure = cure or CURES.get(reason, "look at the values that reach it")
    if isinstance(error, MemoryError) or reason.startswith(TOO_LARGE):
        kind, cure = GraphMemoryError, "pass smaller arrays, or walk along a dim with gc.scan"
    elif isinstance(error, IndexError):
        kind = GraphIndexError
    if node is None:
        return kind(f"call: {reason}\n  called at {user_line()}\n  cure: {cure}")
    if element := getattr(error, "element", ()):
        labels = node.labels or (None,) * len(element)
        places = zip(labels, element, strict=False)
        reason += ", for " + ", ".join(f"{show_dim(dim or 'batch')}={at}" for dim, at in places)
    several = isinstance(node.type, TupleType)
    shown = str(node.type) if several else show_tensor(node.type, node.labels)
    lines = [f"call: {node.said} at {node.origin}: {reason}", f"  its result is {shown}", *within]
    return kind("\n".join([*lines, f"  called at {user_line()}", f"  cure: {cure}"]))


TOO_LARGE = ("array is too big", "Maximum allowed dimension", "maximum allowed dimension")
"""What NumPy says of arrays that no memory could hold."""

CURES = {
    "Integers to negative integer powers are not allowed": "use gc.float_power, or cast to floats",
    "the matrix is singular": "pass check=False for nan in its place, or see gc.linalg.pinv",
    "the matrix is not positive definite": "pass check=False for nan, or add to its diagonal",
}


def outside(node: Node, operands: Sequence[Any], known: dict[str, int]) -> tuple[str, str] | None:
    """Which position of an op that indexes axes is outside which dim, and where they run."""
    axes = node.attrs["axes"]
    indexed = node.inputs[0] if node.op is tensor.gather else node
    for axis, positions in zip(axes, map(np.asarray, operands[-len(axes) :]), strict=True):
        size = evaluate(indexed.type.shape[axis], known)
        least = 0 if positions.dtype.kind == "u" else -size
        wrong = positions[(positions < least) | (positions >= size)].astype(np.int64)
        if wrong.size:
            label = indexed.labels[axis] if indexed.labels else None
            dim = f"axis {axis}" if label is None else f"dim '{show_dim(label)}'"
            reason = f"position {wrong[0]} is outside {dim}, which has size {size}"
            run = f"positions run from {least} to {size - 1}" if size else "the dim is empty"
            return reason, run
    return None
