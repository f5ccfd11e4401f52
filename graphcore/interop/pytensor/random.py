"""Random variables: PyTensor draws them by its own functions, between programs of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pytensor.graph.fg import FunctionGraph
from pytensor.link.basic import PerformLinker

from .rules import names_of

Run = Callable[..., Sequence[Any]]
"""A function of the values of inputs that gives those of outputs."""


def is_random(node: Any) -> bool:
    """Whether a node draws random numbers, or holds a graph that does."""
    if any("RandomType" in names_of(v.type) for v in (*node.inputs, *node.outputs)):
        return True
    inner = getattr(node.op, "fgraph", None)
    return inner is not None and any(map(is_random, inner.apply_nodes))


class Part(NamedTuple):
    """Nodes that run together: what they read, and what others read of them."""

    inputs: list[Any]
    outputs: list[Any]
    run: Run


def mixed(fgraph: Any, compiled: Callable[[Any], Run]) -> Run:
    """A function whose random nodes PyTensor runs, and whose other nodes are programs."""
    parts = [*parts_of(fgraph, compiled)]
    wanted, given = list(fgraph.outputs), list(fgraph.inputs)
    constants = {v: v.data for v in wanted if hasattr(v, "data")}

    def run(*values: Any) -> list[Any]:
        known = constants | dict(zip(given, values, strict=True))
        for part in parts:
            results = part.run(*[known[v] for v in part.inputs])
            known.update(zip(part.outputs, results, strict=True))
        return [known[v] for v in wanted]

    return run


def parts_of(fgraph: Any, compiled: Callable[[Any], Run]) -> Iterator[Part]:
    """Nodes by stages: those of an even number are ours, those of an odd one PyTensor's."""
    stage: dict[Any, int] = {}
    for node in fgraph.toposort():
        before = max([stage[v.owner] for v in node.inputs if v.owner in stage], default=0)
        stage[node] = before + (before % 2 != is_random(node))
    for number in range(max(stage.values(), default=-1) + 1):
        nodes = [node for node in stage if stage[node] == number]
        if not nodes:
            continue
        own = {v for node in nodes for v in node.outputs}
        read = [v for node in nodes for v in node.inputs if v not in own]
        inputs = [v for v in dict.fromkeys(read) if v.owner is not None or not hasattr(v, "data")]
        later = {v for node in stage if stage[node] > number for v in node.inputs}
        outputs = [v for node in nodes for v in node.outputs if v in later or v in fgraph.outputs]
        part = FunctionGraph(inputs, outputs, clone=True)
        run = performed(part) if number % 2 else compiled(part)
        yield Part(inputs, outputs, run)


def performed(fgraph: Any) -> Run:
    """A graph as a function that PyTensor's Python linker runs."""
    run, inputs, outputs = PerformLinker().accept(fgraph).make_thunk()[:3]

    def call(*values: Any) -> list[Any]:
        for cell, value in zip(inputs, values, strict=True):
            cell.storage[0] = value
        run()
        return [cell.storage[0] for cell in outputs]

    return call
