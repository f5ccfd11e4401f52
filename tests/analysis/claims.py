"""What an analysis claims of every value of a program, bodies included, beside the value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphcore.analysis.dataflow import Forward
from graphcore.inspection.interpreter import Frame, Interpreter, Run
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import leaf
from tests.interpreter import Checked

Claim = tuple[Node, Any, np.ndarray]


def claims(
    analysis: Forward[Any], stage: Graph, given: Mapping[str, np.ndarray], sizes: Mapping[str, int]
) -> Iterator[Claim]:
    """Each node of a stage, at each step of the loops it is in, with a fact and the value."""
    inputs = tuple(leaf.inputs_among(stage.nodes()))
    arrays = [np.asarray(given[x.attrs["name"]], x.type.dtype) for x in inputs]
    by = Checked()
    with np.errstate(all="ignore"):
        frame = by.frame(Graph(inputs, stage.outputs), arrays, sizes)
        yield from inside(analysis, frame, [analysis.unknown] * len(inputs), by)


def inside(
    analysis: Forward[Any], frame: Frame, given: Sequence[Any], by: Interpreter
) -> Iterator[Claim]:
    """The claims about the nodes of one graph, whose params have the facts `given`."""
    known = analysis.inside(frame.graph, given)
    for node in frame.graph.nodes():
        for fact, value in zip(analysis.find(node, known), frame.of(node), strict=True):
            yield node, fact, value
        if isinstance(run := frame.results[node], Run):
            own = [analysis.find(x, known)[0] for x in node.inputs]
            params = analysis.given_to_bodies(node, own)
            for at in range(len(run.given)):
                yield from inside(analysis, by.step(run, at), params, by)


def rises(analysis: Forward[Any], facts: Iterable[Any]) -> int:
    """The most joins in a row that change a fact, of those made from some facts."""
    facts, most = [*facts], 0
    for start in facts:
        fact, count = start, 0
        for _ in range(3):
            for other in facts:
                new = analysis.join(None, (fact, other))
                count, fact = count + (new != fact), new
        most = max(most, count)
    return most
