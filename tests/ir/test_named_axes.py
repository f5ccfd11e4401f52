"""The dims that named ops declare as batch, against what they compute: `per=` stands on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphcore.ir.axes import How, Source
from graphcore.ir.graph import Graph
from graphcore.ir.node import OPS, Node
from graphcore.ir.types import TensorType
from tests import reference
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


@pytest.mark.parametrize("label", NODES)
def test_elements_along_batch_dims_are_computed_alone(label: str) -> None:
    name, node = NODES[label]
    case = CASES[name]
    random = np.random.default_rng(2)
    given = {f"x{i}": x.values for i, x in enumerate(draw(case, DEFAULT))}
    xs = reference_run(node, given)
    base = results(node, xs)
    declared = node.op.axes.sources(node)
    for number, x in enumerate(xs):
        for at in np.ndindex(x.shape):
            moved = x.copy()
            several = (random.choice(x.values.ravel()), x.values[at] * 1.01 + 0.01)
            moved.values[at] = several[x.dtype.kind in "fc" and sum(at) % 2]
            found = results(node, [*xs[:number], moved, *xs[number + 1 :]])
            for y, z, sources in zip(base, found, declared, strict=True):
                changed = np.argwhere(~((y == z) | ((y != y) & (z != z))))
                for axis, source in enumerate(sources[number]):
                    match source:
                        case Source((own,), How.EACH):
                            assert (changed[:, axis] == at[own]).all(), (axis, number)


def reference_run(node: Node, given: dict[str, np.ndarray]) -> list[Any]:
    """The operands of a node, as DataArrays."""
    done: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for x in Graph((), node.inputs).nodes():
            done[x] = reference.compute(x, [done[y] for y in x.inputs], given, {})
    assert all(isinstance(x.type, TensorType) for x in node.inputs)
    return [done[x] for x in node.inputs]


def results(node: Node, xs: list[Any]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        found = reference.compute(node, xs, {}, {})
    several = found if isinstance(found, (tuple, list)) else [found]
    return [y.values for y in several]
