"""Meshes by name: what is refused, what needs other devices, and messages read from text."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import graphcore as gc
from graphcore.backends.messages import Message, messages
from graphcore.inspection.exchanges import exchanges
from graphcore.ir.provenance import described_by

MESH = gc.Mesh({"data": 4, "model": 2})
X = gc.tensor("x", {"batch": None, "in": 4})
W = gc.tensor("w", {"in": 4, "hidden": 16})
Y = gc.tanh(gc.dot(X, W, dim="in"))
Z = gc.tensor("z", {"row": None}, dtype="int64")


def refusal(**options: Any) -> str:
    with pytest.raises(gc.GraphError) as refused:
        gc.compile([X, W], Y, **options)
    return str(refused.value)


@pytest.mark.parametrize("axes", [[8], {}, {1: 2}, {"data": 0}, {"data": True}, {"data": 2.0}])
def test_a_mesh_is_names_with_numbers(axes: Any) -> None:
    with pytest.raises(gc.GraphError, match=r"Mesh: .*\n.*test_mesh.py(.|\n)*cure: "):
        gc.Mesh(axes)


def test_meshes_are_values() -> None:
    assert pickle.loads(pickle.dumps(MESH)) == MESH == gc.Mesh({"data": 4, "model": 2})
    assert {MESH, gc.Mesh({"model": 2, "data": 4})} != {MESH}
    with pytest.raises(gc.GraphTypeError, match="leave devices out"):
        pickle.dumps(gc.Mesh({"data": 1}, devices=["a"]))


THREE = gc.Mesh({"data": 3})
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no target": ({"target": None}, "option of target='jax'"),
    "another target": ({"target": "numpy"}, "option of target='jax'"),
    "no mesh": ({"mesh": None}, "says nothing without a mesh"),
    "gather without a mesh": ({"mesh": None, "shard": None, "gather": "refuse"}, "without a mesh"),
    "no shard": ({"shard": None}, "{} for none"),
    "no dict": ({"shard": ["batch"]}, "does not say which dims"),
    "a dict as mesh": ({"mesh": {"data": 8}}, "is no mesh"),
    "unknown dim": ({"shard": {"bach": "data"}}, "did you mean 'batch'?"),
    "unknown axis": ({"shard": {"batch": "dat"}}, "did you mean 'data'?"),
    "two dims on one axis": ({"shard": {"in": "data", "hidden": "data"}}, "of one value"),
    "a fixed size": ({"mesh": THREE, "shard": {"hidden": "data"}}, "size 16, on 3 devices"),
    "gather": ({"gather": "no"}, "gather is 'say' or 'refuse'"),
    "too few devices": ({"mesh": gc.Mesh({"data": 16})}, "JAX_NUM_CPU_DEVICES=16"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_the_cure(name: str) -> None:
    options, words = REFUSED[name]
    given = {"target": "jax", "mesh": MESH, "shard": {"batch": "data"}}
    said = refusal(**given | options)
    assert said.startswith("compile: ")
    assert words in said
    assert "test_mesh.py" in said
    assert "\n  cure: " in said


def test_what_runs_on_the_host_is_refused_on_a_mesh() -> None:
    y = gc.callback(abs, X, dims=("batch", "in"))(X)
    mesh = gc.Mesh({"data": 1})
    with pytest.raises(gc.GraphError, match=r"callback at .* runs on the host"):
        gc.compile([X], y, target="jax", mesh=mesh, shard={"batch": "data"})


def test_programs_on_one_device_send_nothing() -> None:
    with pytest.raises(gc.GraphError, match="sends no messages"):
        gc.compile([X], X.sum()).messages(1)
    with pytest.raises(gc.GraphError, match="arguments are whole"):
        gc.compile([X], X.sum()).place(1)


# ---- what needs other devices


def needs(*outputs: gc.Tensor, **places: str) -> list[tuple[str, str]]:
    """What the last stage needs of other devices."""
    inputs = [gc.Tensor(node) for node in gc.compile([X, W, Z], outputs).stages["named"].params]
    graph = gc.compile(inputs, outputs, target="jax").passes[-1].graph
    with described_by(graph.trace):
        found = exchanges(graph, places)
    return [(node.op.name, str(need)) for node, several in found.items() for need in several]


@pytest.mark.parametrize(
    ("y", "need"),
    [
        (X.sum("batch"), "joins batch@data"),
        (gc.dot(X, X, dim="batch"), "joins batch@data"),
        (X.max(), "joins batch@data"),
        (X.isel(batch=slice(1, None)), "moves along batch@data"),
        (gc.concat([X, X], "batch"), "moves along batch@data"),
        (X.sort("batch"), "needs all batch@data"),
        (X.cumsum("batch"), "needs all batch@data"),
        (X.isel(batch=Z), "needs all batch@data"),
        (gc.scan(lambda s, x: (gc.sin(s + x), s), X.sum("batch"), X, dim="batch")[0], "needs all"),
    ],
)
def test_kinds_of_axes_say_what_steps_need_of_other_devices(y: gc.Tensor, need: str) -> None:
    found = needs(y, batch="data")
    assert any(said.startswith(need) for _, said in found), found


@pytest.mark.parametrize(
    "y",
    [
        gc.exp(X).sum("in"),
        X.sort("in"),
        X.cumsum("in"),
        X.isel({"in": Z}),
        gc.concat([X, X], "in"),
        gc.scan(lambda s, x: (s + x, s), 0 * X.sum("in"), X, dim="in"),
        gc.take_along(X, X.argmax("in"), "in"),
        X.stack(flat=("batch", "in")),
    ],
    ids=range(8),
)
def test_batch_axes_need_nothing_of_other_devices(y: Any) -> None:
    several = gc.tree.leaves(y)
    assert needs(*several, batch="data") == []


# ---- messages in the text of a program

TEXT = """HloModule jit_trace, entry_computation_layout={()->f64[]}

%region_0 (a: f64[], b: f64[]) -> f64[] {
  ROOT %add = f64[] add(%a, %b)
}

%body.1 (state: (s64[], f64[8])) -> (s64[], f64[8]) {
  %all-reduce.2 = f64[8]{0} all-reduce(%x), replica_groups={{0,2,4,6},{1,3,5,7}}, \
to_apply=%region_0, metadata={op_name="jit(trace)/while/sum at a.py:3 \\342\\206\\220 9/reduce"}
  ROOT %tuple = (s64[], f64[8]) tuple(%n, %all-reduce.2)
}

ENTRY %main (x: f64[32,16]) -> f64[] {
  %while.5 = (s64[], f64[8]) while(%t), condition=%cond.1, body=%body.1
  %all-gather.1 = f64[32,8]{1,0} all-gather(%y), replica_groups=mesh['axis_0'=4,'axis_1'=2] \
{'axis_0'}, dimensions={0}, metadata={op_name="jit(trace)/sort at b|c.py:7 (from 8)/jit(sort)/sort"}
  %all-reduce.4 = (f64[2,3]{1,0}, f32[]) all-reduce(%u, %v), replica_groups=[4,2]<=[8], \
to_apply=%region_0, metadata={op_name="jit(trace)/(dot at a.py:1/dot_general:sum at a.py:2/reduce)"}
  %s = ((f64[4]), (f64[8])) all-gather-start(%u), replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}
  ROOT %p = pred[8]{0} collective-permute(%q), source_target_pairs={{0,1},{2,3}}
}
"""


def test_messages_are_read_with_bytes_lines_axes_and_loops() -> None:
    data, model = ("data",), ("model",)
    found = messages(TEXT, MESH.axes)
    assert sorted(found) == [
        Message("all-gather", 64, (), data, False),
        Message("all-gather", 2048, ("sort at b/c.py:7 (from 8)",), data, False),
        Message("all-reduce", 52, ("dot at a.py:1", "sum at a.py:2"), model, False),
        Message("all-reduce", 64, ("sum at a.py:3 ← 9",), data, True),
        Message("collective-permute", 8, (), model, False),
    ]
    assert found.bytes == 64 + 2048 + 52 + 64 + 8
    assert "all-reduce          64 each step  data   sum at a.py:3 ← 9" in repr(found)
    assert "dot at a.py:1, and 1 more" in repr(found)
    assert repr(messages("", MESH.axes)) == "no messages"
