"""The dims that named ops declare as batch, against what they compute: `per=` stands on them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphcore.compile.questions import lowered
from graphcore.inspection.interpreter import alone
from graphcore.ir.axes import How, Source
from graphcore.ir.graph import Graph
from graphcore.ir.node import OPS, Node
from graphcore.ops import leaf
from tests import interpreter
from tests.operations import CASES
from tests.operations.case import DEFAULT
from tests.ops.test_ops import declare, draw

FEW = 2
"""Nodes of each op that are tried."""


def nodes() -> Iterator[tuple[str, str, Node]]:
    """Nodes of named ops in the table of tests, with the cases that they are in."""
    tried: dict[str, int] = {}
    for name, case in CASES.items():
        inputs = [x.node for x in declare(case, known=True)]
        for node in Graph((), (case.ours(*declare(case, known=True)).node,)).nodes():
            op = node.op.name
            if node.op.dialect == "named" and inputs and tried.get(op, 0) < FEW:
                tried[op] = tried.get(op, 0) + 1
                yield f"{op} in {name}", name, node


NODES = {label: (case, node) for label, case, node in nodes()}


def test_every_named_op_is_tried() -> None:
    named = {op for op in OPS.values() if op.dialect == "named"}
    assert named - {node.op for _, node in NODES.values()} == set()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("label", NODES)
def test_elements_along_batch_dims_are_computed_alone(label: str) -> None:
    name, node = NODES[label]
    case = CASES[name]
    random = np.random.default_rng(2)
    given = {f"x{i}": x.values for i, x in enumerate(draw(case, DEFAULT))}
    inputs = leaf.inputs_among(Graph((), node.inputs).nodes())
    xs = interpreter.run(lowered(Graph(tuple(inputs), node.inputs)), given, {})
    graph = lowered(alone(node))
    base = interpreter.Checked().frame(graph, xs, {}).outputs()
    declared = node.op.axes.sources(node)
    for number, x in enumerate(xs):
        for at in np.ndindex(x.shape):
            moved = x.copy()
            several = (random.choice(x.ravel()), x[at] * 1.01 + 0.01)
            moved[at] = several[x.dtype.kind in "fc" and sum(at) % 2]
            given = [*xs[:number], moved, *xs[number + 1 :]]
            found = interpreter.Checked().frame(graph, given, {}).outputs()
            for y, z, sources in zip(base, found, declared, strict=True):
                changed = np.argwhere(~((y == z) | ((y != y) & (z != z))))
                for axis, source in enumerate(sources[number]):
                    match source:
                        case Source((own,), How.EACH):
                            assert (changed[:, axis] == at[own]).all(), (axis, number)
