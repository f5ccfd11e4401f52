"""A target of its own: a program is a list of steps, which run one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.backends.boundary import Boundary
from graphcore.backends.errors import reword
from graphcore.backends.target import Program, Target, Values
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.provenance import described_by
from graphcore.ir.sizes import evaluate
from graphcore.ops import control, leaf
from graphcore.ops.meaning import MEANING, compute

Array = np.ndarray[Any, Any]
Results = dict[Node, list[Array]]
Step = Callable[[Results, Mapping[str, int]], list[Array]]
"""The results of a node, from those before it and the sizes of the call."""


def emit(node: Node) -> Step:
    """The step that computes a node: by a rule of this target, or by what the op means."""
    return EMIT.get(node.op, emit_meaning)(node)


def emit_meaning(node: Node) -> Step:
    """An op that computes values from values."""

    def step(results: Results, sizes: Mapping[str, int]) -> list[Array]:
        return compute(node, [results[x][0] for x in node.inputs], sizes)

    return step


def emit_project(node: Node) -> Step:
    """One of several results."""
    several, index = node.inputs[0], node.attrs["index"]
    return lambda results, sizes: [results[several][index]]


def emit_tuple(node: Node) -> Step:
    """Several values as one."""
    return lambda results, sizes: [results[x][0] for x in node.inputs]


def emit_scan(node: Node) -> Step:
    """A loop along the first axis of its sequences; its body is a list of steps as well."""
    attrs, body = node.attrs, StepList(node.attrs["body"])
    carries, end = attrs["carries"], attrs["carries"] + attrs["sequences"]

    def step(results: Results, sizes: Mapping[str, int]) -> list[Array]:
        given = [results[x][0] for x in node.inputs]
        carried, captured = given[:carries], given[end:]
        length = evaluate(attrs["length"], sizes)
        made = [
            np.empty([evaluate(size, sizes) for size in type.shape], type.dtype)
            for type in node.type.items[carries:]
        ]
        for i in reversed(range(length)) if attrs["reverse"] else range(length):
            elements = [x[i] for x in given[carries:end]]
            found = body.run([*carried, *elements, *captured], sizes)
            carried = found[:carries]
            for array, value in zip(made, found[carries:], strict=True):
                array[i] = value
        return [*carried, *made]

    return step


EMIT = {leaf.project: emit_project, leaf.tuple_: emit_tuple, control.scan: emit_scan}


class StepList:
    """A graph as a list of steps."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps = [(x, emit(x)) for x in graph.nodes() if x not in graph.params]

    def run(self, arrays: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
        """The outputs; an error names the op and the user's line."""
        results = {x: [value] for x, value in zip(self.graph.params, arrays, strict=True)}
        for node, step in self.steps:
            try:
                results[node] = step(results, sizes)
            except (ArithmeticError, IndexError, MemoryError) as error:
                raise reword(error, node) from error
        return [results[y][0] for y in self.graph.outputs]


class StepsProgram(Program):
    """A program whose steps are a list."""

    def make(self) -> Values:
        """The function of a call's arguments; its results share memory with nothing."""
        steps = StepList(self.graph)

        def call(*args: Any) -> list[Array]:
            arrays, sizes = self.boundary.bind_named(args)
            with np.errstate(all="ignore"), described_by(self.graph.trace):
                return [np.array(y) for y in steps.run(arrays, sizes)]

        return call

    def lines(self) -> Sequence[tuple[str, Sequence[Node]]]:
        """A line for each step."""
        inner = [x for x in self.graph.nodes() if x not in self.graph.params]
        return [("steps", ()), *((f"    {x.op.name}", (x,)) for x in inner)]


class Steps(Target):
    """A target that has no code of its own yet, but for loops: all else is what ops mean."""

    name, runs = "steps", "steps"

    def lacks(self, graph: Graph) -> Iterator[tuple[Node, str]]:
        """Loops without a length, branches and callbacks."""
        for node in graph.every_node():
            if node.op not in MEANING and node.op not in (*EMIT, leaf.input_):
                yield node, "it has no rule"

    def build(self, graph: Graph, boundary: Boundary) -> Program:
        """The program of a graph."""
        return StepsProgram(graph, boundary)
