"""Law 4: print, rebuild, and it is the same node."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.node import OPS
from graphcore.ir.sizes import Size, maximum, minimum, unknown
from tests.random_programs.deriving import derived
from tests.random_programs.running import results, tensors
from tests.source import as_source, rebuild

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


VALUES = [
    np.array(np.nan),
    np.array([0x7FF8000000000001, 0xFFF0000000000001], np.uint64).view(np.float64),  # nan payloads
    np.array([0.0, -0.0, np.inf, -np.inf, 5e-324]),
    np.array(complex(-0.0, np.nan)),
    np.array(1 - 2j, np.complex64),
    np.array(True),
    np.array([[1, 2], [3, 4]], np.int8),
    np.array(2**64 - 1, np.uint64),
    np.zeros((0, 3), np.float32),
    np.array([1.5], np.float16),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("op", ["constant", "full"])
def test_values_are_kept_to_the_bit(value: np.ndarray, op: str) -> None:
    shape = {"shape": (unknown("n"), 2)} if op == "full" else {}
    if op == "full":
        value = value.reshape(-1)[0] if value.size else np.float32(0)
    node = OPS[f"leaf.{op}"](value=Literal(value), dims=None, **shape)
    (found,) = rebuild(as_source(Graph((), (node,)))).outputs
    assert found is node
    assert found.attrs["value"].array.dtype == value.dtype
    assert found.attrs["value"].array.tobytes() == value.tobytes()


NAMES = st.sampled_from(["n", "m", "a b", "class", "')", "{x}", "\n\u2028", "\ud800", "😀"])
SIZES: st.SearchStrategy[Size] = st.recursive(
    st.one_of(st.integers(0, 9), NAMES.map(unknown)),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, k: a - k, inner, st.integers(0, 9)),
        st.builds(lambda a, k: a // k, inner, st.integers(1, 5)),
        st.builds(lambda a, k: a % k, inner, st.integers(1, 5)),
        st.builds(minimum, inner, inner),
        st.builds(maximum, inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(size=SIZES)
def test_sizes_are_rebuilt(size: Size) -> None:
    node = OPS["leaf.extent"](size=size, dtype=np.dtype("int64"), dims=())
    assert rebuild(as_source(Graph((), (node,)))).outputs == (node,)


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_and_their_derivatives_are_rebuilt(seed: int) -> None:
    program = derived(seed, "plain")
    given = tensors(program)
    outputs = tuple(y.node for y in results(program, given))
    graph = Graph(tuple(x.node for x in given.values()), outputs)
    assert rebuild(as_source(graph)) == graph


def test_source_alone_is_enough() -> None:
    """A process that never saw the nodes rebuilds them and writes the same source."""
    graph = gc.compile([x], gc.special.softmax(x, "class")).stages["optimized"]
    source = as_source(graph)
    again = "from tests.source import *; import sys; s = sys.stdin.read()"
    done = subprocess.run(
        [sys.executable, "-c", f"import graphcore; {again}; assert as_source(rebuild(s)) == s"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_deep_graphs_are_rebuilt_line_by_line() -> None:
    y = x
    for _ in range(50_000):
        y = gc.sin(y)
    graph = Graph((x.node,), (y.node,))
    source = as_source(graph)
    assert len(source.splitlines()) < 50_020
    assert rebuild(source) == graph


def test_each_line_uses_only_lines_above_it() -> None:
    lines = as_source(Graph((), (gc.grad((x * x).sum(), x).node,))).splitlines()
    numbers = [int(line.split(" ")[0][1:]) for line in lines if line.startswith("n")]
    assert all(b == a + 1 for a, b in pairwise(numbers))
    assert not any("import os" in line and "OPS['leaf.input']" not in line for line in lines)
