"""`Compiled.trace`: the values of every tensor of a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, overload

import numpy as np

from graphcore.ir import Array, Graph, Node
from graphcore.ir.axes import values as types_of
from graphcore.ir.errors import GraphIndexError, GraphKeyError
from graphcore.ir.help_text import attributes
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import Origin, described_by
from graphcore.ir.types import show_dtype
from graphcore.ops import autodiff, leaf
from graphcore.ops.control import LOOPS

from .check import Step, show_value
from .interpreter import Frame, Interpreter, Lower, Run
from .text import align, few, fold, one_line, show_name
from .variables import variables


@attributes(
    name='The variable or input that holds it, "" if it has no name.',
    op="The op that computes it.",
    line="The user's line.",
    sizes="Its size for each dim.",
    dtype="Its dtype.",
    least="The least element that is not nan; None if there is none, and of complex numbers.",
    most="The largest of these elements, or None.",
    mean="The mean of these elements, or None.",
    nan="The number of elements that are nan.",
    infinite="The number of elements that are infinite.",
    nbytes="Its size in memory if every element is there.",
    steps="The step of each loop around it, the outermost first.",
    array="The values themselves.",
)
@dataclass(frozen=True)
class Value:
    """A tensor of the program in one call."""

    name: str
    op: str
    line: Origin
    sizes: Mapping[str, int]
    dtype: str
    least: float | None
    most: float | None
    mean: complex | None
    nan: int
    infinite: int
    nbytes: int
    steps: tuple[Step, ...]
    array: Array = field(repr=False, compare=False)


class Tensors(tuple[Value, ...]):
    """The tensors of a program in the order in which they are computed; printed as a table.

    Look up a tensor by its name: `values["loss"]`, which is the last one of several.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> Value: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, key: Any) -> Any:
        """The tensor of that name, or at that place."""
        if not isinstance(key, str):
            return super().__getitem__(key)
        named = {value.name: value for value in self if value.name}
        if key not in named:
            known = few([show_name(name) for name in named], 30)
            raise GraphKeyError(f"trace: no tensor is named '{show_dim(key)}'\n  names: {known}")
        return named[key]

    def __repr__(self) -> str:
        return self.text()

    def text(self, limit: int | None = 200) -> str:
        """The table; of more rows than `limit` only the first and last are shown."""
        head, *lines = align([HEAD, *map(row, self)], range(2, 8))
        return "\n".join([head, *fold(lines, limit, what="tensors")])


HEAD = ("tensor", "type", "min", "max", "mean", "nan", "inf", "bytes", "line")


def row(value: Value) -> tuple[str, ...]:
    """The columns of one tensor."""
    sizes = [f"{show_dim(dim)}={size}" for dim, size in value.sizes.items()]
    numbers = ["" if x is None else show_value(x) for x in (value.least, value.most, value.mean)]
    counts = [f"{n:,}" if n else "" for n in (value.nan, value.infinite)]
    line = value.line.shown(True, 2, lambda name: one_line(name, 24))
    steps = [f"step {step.step}" for step in value.steps]
    return (
        "  " * len(steps) + (show_name(value.name) if value.name else f"{value.op}(...)"),
        f"{value.dtype}[{few(sizes)}]",
        *numbers,
        *counts,
        f"{value.nbytes:,}",
        ", ".join([line, *steps]),
    )


def trace(
    graph: Graph,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    lower: Lower,
    step: Mapping[str, int],
) -> Tensors:
    """The values of every tensor of a call, those of the bodies of loops at a given step.

    `graph` is the user's; `arrays` and `sizes` are the checked arguments of the call and the
    unknown sizes. `lower` lowers a graph of named ops and lazy derivatives to plain ops. `step` is
    the position for each dim that loops walk along, or the number of the step of loops without a
    dim, by their function.
    """
    with described_by(graph.trace), np.errstate(all="ignore"):
        interpreter = Interpreter(lower)
        frame = interpreter.frame(graph, arrays, sizes)
        collected = Collected(interpreter, step)
        found = Tensors(collected.tensors(frame, ()))
        if missing := [name for name in step if name not in collected.loops]:
            known = few([show_name(name) for name in collected.loops]) or "none"
            raise GraphKeyError(
                f"trace: no loop is along '{show_dim(missing[0])}'\n"
                f"  loops: {known}\n  cure: give the dim of a scan, or the name of another loop"
            )
        return found


class Collected:
    """The tensors of a frame and, at the steps asked for, of the bodies of its loops."""

    def __init__(self, interpreter: Interpreter, step: Mapping[str, int]) -> None:
        self.interpreter, self.step = interpreter, step
        self.loops: dict[str, None] = {}

    def tensors(self, frame: Frame, steps: tuple[Step, ...]) -> Iterator[Value]:
        """The tensors of a graph, in order; numbers written in the program are left out."""
        order = self.interpreter.order(frame.graph)
        names = variables(order)
        for node in order:
            found = frame.results[node]
            if isinstance(found, Run):
                yield from self.inside(node, found, steps)
            if node.op in LEFT_OUT or len(types_of(node.type)) != 1 or node.type.dims is None:
                continue
            yield value(node, names.get(node, ""), frame.of(node)[0], steps)

    def inside(self, node: Node, run: Run, steps: tuple[Step, ...]) -> Iterator[Value]:
        """The tensors of the body of a loop at its step, or of the branch that was taken."""
        if node.op not in LOOPS:
            yield from self.tensors(self.interpreter.step(run, 0), steps)
            return
        name = node.attrs.get("dim") or node.said
        self.loops[name] = None
        if name in self.step:
            at = self.step[name]
            if at not in run.positions:
                count = len(run.positions)
                raise GraphIndexError(
                    f"trace: {node.said} at {node.origin} has no step {at}\n"
                    f"  cure: give one of its {count:,} steps, which are counted from 0"
                )
            inner = self.interpreter.step(run, run.positions.index(at))
            yield from self.tensors(inner, (*steps, Step(node.said, node.origin, at)))


LEFT_OUT = frozenset({leaf.full, autodiff.barrier, autodiff.stop_gradient})
"""Ops that are not tensors of the user's."""


def value(node: Node, name: str, array: Array, steps: tuple[Step, ...]) -> Value:
    """What is to be known of a tensor."""
    kind = array.dtype.kind
    nan = np.isnan(array) if kind in "fc" else np.zeros(array.shape, bool)
    there = array[~nan] if nan.any() else array
    ordered = there.size and kind != "c"
    mean = complex(there.mean()) if there.size else None
    return Value(
        name,
        node.said,
        node.origin,
        dict(zip(node.type.dims, array.shape, strict=True)),
        show_dtype(array.dtype),
        there.min().item() if ordered else None,
        there.max().item() if ordered else None,
        mean if mean is None or kind == "c" else mean.real,
        int(nan.sum()),
        int(np.isinf(array).sum()) if kind in "fc" else 0,
        array.nbytes,
        steps,
        array,
    )
