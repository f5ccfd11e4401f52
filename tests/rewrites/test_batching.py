"""Every plain op on all steps of a loop at once makes what it makes of each step."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, unknown
from graphcore.ir.types import TensorType
from graphcore.ops import elementwise, leaf
from graphcore.rewrites.loops.batching import on_all_steps, works_on_all_steps
from tests import interpreter
from tests.ir.test_axes import NODES, N, computed, operands_of

STEPS: Size = unknown("steps")


def param(name: str, type: TensorType, *more: Size) -> Node:
    return leaf.input_(name=name, dtype=type.dtype, shape=(*more, *type.shape), dims=None)


def test_all_ops_of_one_value_work_on_all_steps() -> None:
    """Those on matrices that have several results stay in their loop."""
    left = {node.op for node in NODES.values() if not works_on_all_steps(node)}
    assert all(not isinstance(node.type, TensorType) for node in NODES.values() if node.op in left)


@pytest.mark.parametrize("name", [name for name, node in NODES.items() if works_on_all_steps(node)])
def test_all_steps_at_once(name: str) -> None:
    node = NODES[name]
    random = np.random.default_rng(5)
    steps = [operands_of(node, random) for _ in range(2)]
    several = range(len(node.inputs))
    orders = elementwise.UNKNOWN.get(node.op, ())
    for own in itertools.product((True, False), repeat=min(len(several), 3)):
        flags = [*own, *[own[-1]] * (len(several) - len(own))]
        if not any(flags) or any(flags[i] for i in orders):
            continue
        each = [[xs[i] if flags[i] else steps[0][i] for i in several] for xs in steps]
        params = [
            param(f"operand {i}", x.type, *([STEPS] if flag else []))
            for i, (x, flag) in enumerate(zip(node.inputs, flags, strict=True))
        ]
        made = on_all_steps(node, params, flags, STEPS)
        given = {
            f"operand {i}": np.stack([xs[i] for xs in each]) if flags[i] else each[0][i]
            for i in several
        }
        graph = Graph(tuple(params), (made,))
        (found,) = interpreter.run(graph, given, {"n": N, "steps": len(steps)})
        wanted = np.stack([computed(node, xs)[0] for xs in each])
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12, err_msg=str(flags))
