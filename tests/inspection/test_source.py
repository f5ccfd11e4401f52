"""Law 4: print, rebuild, and it is the same node."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.inspection.source import as_source, rebuild
from graphcore.ir.graph import Graph

x = gc.tensor("x); import os #\n", {"class": None, "lambda": 3})
w = gc.tensor("w", {"lambda": 3}, dtype="complex64")
nan = gc.constant(np.array([np.nan, -0.0, np.inf]), ("lambda",))

PROGRAMS = {
    "names": x.sum("class"),
    "literals": x * nan + w * (1 - 2j) - np.float32(-0.0),
    "sizes": x[{"class": slice(1, None, 2)}].mean("class"),
    "derivatives": gc.grad((x * x).sum(), x),
    "control": gc.where(x > 0, x, 0).astype("float32").rename({"class": "row"}),
    "contraction": gc.dot(x, x.rename({"class": "other"}), dim="lambda"),
    "bytes": gc.constant(np.array([1, 255], np.uint8), ("k",)),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_rebuilt_nodes_are_the_same(program: gc.Tensor) -> None:
    graph = Graph((), (program.node,))
    assert rebuild(as_source(graph)).outputs[0] is program.node


def test_every_stage_can_be_rebuilt() -> None:
    f = gc.compile([x], [gc.special.softmax(x, "class"), gc.grad(gc.exp(x).sum(), x)])
    for graph in f.stages.values():
        assert rebuild(as_source(graph)) == graph
