"""The labels of axes that lowering has left none on, in bodies as well; and their places."""

from __future__ import annotations

import numpy as np

import graphcore as gc
from graphcore.inspection.axis_labels import infer_inside, places_of
from graphcore.inspection.printer import format_graph
from graphcore.ir import INT, Graph, Node
from graphcore.ir.provenance import described_by
from graphcore.ir.trace import Trace
from graphcore.ops import control, elementwise, leaf, tensor

FLOAT = np.dtype("float64")


def plain_input(name: str, *shape: int) -> Node:
    return leaf.input_(name=name, dtype=FLOAT, shape=shape, dims=None)


def test_bodies_know_the_labels_of_what_their_params_stand_for() -> None:
    x, a, b = (plain_input(name, 2, 3) for name in "xab")
    number = leaf.input_(name="number", dtype=INT, shape=(), dims=None)
    total = tensor.sum_(elementwise.exp(a), axes=(0, 1))
    loop = control.while_loop(
        x,
        predicate=Graph((a,), (elementwise.less(total, total),)),
        body=Graph((a,), (elementwise.sin(a), elementwise.exp(a))),
        carries=1,
        trips=gc.tensor("t", {"trips": None}).shape[0],
    )
    branches = tuple(Graph((b,), (f(b),)) for f in (elementwise.cos, elementwise.tan))
    chosen = control.switch(number, leaf.project(loop, index=0), branches=branches)
    with described_by(Trace()):
        x.label(("batch", "row"))
        found = [
            {node.op.name: labels for node, labels in known.items()}
            for _, known in infer_inside(Graph((x, number), (chosen,)))
        ]
    whole, condition, body, first, second = found
    own = ("batch", "row")
    assert whole["while_loop"] == [own, (None, *own)]
    assert whole["switch"] == [own]
    assert condition["exp"] == body["exp"] == body["sin"] == first["cos"] == second["tan"] == [own]


def test_a_carry_has_the_labels_that_steps_give_it() -> None:
    start, xs, s, x = (plain_input(name, *shape) for name, shape in SHAPES.items())
    body = Graph((s, x), (elementwise.add(s, x), elementwise.exp(x)))
    settings = {"length": 4, "reverse": False, "dim": None, "checkpoint": ()}
    loop = control.scan(start, xs, body=body, carries=1, sequences=1, **settings)
    with described_by(Trace()):
        xs.label(("time", "row"))
        (_, known), _ = infer_inside(Graph((start, xs), (loop,)))
    assert known[loop] == [("row",), ("time", "row")]


SHAPES = {"start": (3,), "xs": (4, 3), "s": (3,), "x": (3,)}


def test_axes_are_printed_with_their_places_on_a_mesh() -> None:
    x = gc.tensor("x", {"batch": None, "hidden": 8, "class": 3})
    graph = Graph((x.node,), (gc.exp(x).sum("hidden").node,))
    text = format_graph(graph, places={"batch": "data", "hidden": "model"})
    first, _, last, _ = text.splitlines()
    assert first.startswith("x : f64[batch@data, hidden@model=8, class=3]")
    assert last.startswith("%1: f64[batch@data, class=3]")


def test_an_axis_of_a_mesh_serves_one_axis_of_a_value() -> None:
    places = {"row": "data", "col": "data"}
    assert places_of(("row", None, "col", "other"), places) == ("data", None, None, None)
