"""JSON gives the same nodes back, agrees with pickle, and refuses damaged and hostile text."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from benchmarks.programs import NAMES, Program
from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.names import Hidden
from graphcore.ir.node import OPS
from graphcore.ir.op import RENAMED
from graphcore.ir.provenance import Origin, basename, described_by
from graphcore.ir.sizes import Size, maximum, minimum, unknown
from graphcore.ops import tensor
from tests.inspection.test_golden import logistic_regression
from tests.random_programs.deriving import derived
from tests.random_programs.running import built, results, tensors
from tests.random_programs.statements import drawn
from tests.shares import shared

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
UNKNOWNS = st.sampled_from(["n", "m", "a b", "class", "')", "{x}", "\n\u2028", "\ud800", "😀"])
SIZES: st.SearchStrategy[Size] = st.recursive(
    st.one_of(st.integers(0, 9), UNKNOWNS.map(unknown)),
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

DEFAULT, SLOW, EACH = 25, 1125, 25  # some are refused; 1,000 are read back


def short(line: Origin) -> Origin:
    """A line without the folders of its files, which JSON leaves out."""
    via, called = line.via and short(line.via), line.caller
    called = called and (basename(called[0]), called[1])
    return line._replace(file=basename(line.file), via=via, caller=called)


def check(graph: Graph) -> None:
    """The same nodes, which a reader of the pickled graph describes as one of the JSON does."""
    text = graph.to_json()
    found = Graph.from_json(text)
    pairs = zip((*found.params, *found.outputs), (*graph.params, *graph.outputs), strict=True)
    assert all(a is b for a, b in pairs)
    assert found == graph
    pickled = pickle.loads(pickle.dumps(graph))
    assert pickled == found
    if graph.trace is not None:
        for other in (found, pickled):
            assert other.trace is not None
            for node in graph.every_node():
                with described_by(graph.trace):
                    origin, labels = short(node.origin), node.labels
                with described_by(other.trace):
                    assert (short(node.origin), node.labels) == (origin, labels)
        assert str(found) == str(pickled) == str(graph)
        assert found.to_json() == text


def check_programs(first: int) -> None:
    for seed in range(first, first + EACH):
        try:
            (compiled,), _ = built(drawn(seed), [None])
        except gc.GraphError:
            continue  # a program that is refused has no graph
        check(compiled.stages["named"])
        check(compiled.stages["scheduled"])


@pytest.mark.parametrize("first", range(0, DEFAULT, EACH))
def test_random_programs(first: int) -> None:
    check_programs(first)


@pytest.mark.parametrize("first", shared(range(DEFAULT, DEFAULT + SLOW, EACH), 3))
def test_more_random_programs(first: int) -> None:
    check_programs(first)


def test_random_programs_with_their_derivatives() -> None:
    for seed in range(30):
        program = derived(seed, "plain")
        given = tensors(program)
        outputs = tuple(y.node for y in results(program, given))
        check(Graph(tuple(x.node for x in given.values()), outputs))


@pytest.mark.parametrize("name", NAMES[::6])
def test_every_stage_of_a_program(name: str) -> None:
    f = Program(name).make("graphcore")
    assert isinstance(f, gc.Compiled)
    for graph in f.stages.values():
        check(graph)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs_with_hostile_names(program: gc.Tensor) -> None:
    check(Graph((), (program.node,)))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_kept_to_the_bit(value: np.ndarray) -> None:
    node = OPS["leaf.constant"](value=Literal(value), dims=None)
    (found,) = Graph.from_json(Graph((), (node,)).to_json()).outputs
    assert found is node
    assert found.attrs["value"].array.tobytes() == value.tobytes()


@settings(max_examples=100)
@given(size=SIZES)
def test_sizes(size: Size) -> None:
    node = OPS["leaf.extent"](size=size, dtype=np.dtype("int64"), dims=())
    check(Graph((), (node,)))


def test_hidden_names_stay_hidden() -> None:
    for name in ("step", Hidden("step")):
        node = OPS["leaf.extent"](size=unknown(name), dtype=np.dtype("int64"), dims=())
        assert Graph.from_json(Graph((), (node,)).to_json()).outputs == (node,)


def test_former_names_of_ops_are_read() -> None:
    a = gc.tensor("a", "i").node
    node = tensor.where_greater(tensor.multiply_no_nan(a, a), a, a)
    graph = Graph((a,), (node,))
    written, pickled = (
        graph.to_json(),
        pickle.dumps(graph, 0),
    )  # names end at their line's end there
    for former, name in RENAMED.items():
        assert name in written
        written = written.replace(name, former)
        pickled = pickled.replace(name.encode(), former.encode())
    assert Graph.from_json(written).outputs == pickle.loads(pickled).outputs == (node,)


def test_the_text_is_enough() -> None:
    """A process that never saw the nodes writes the same text again."""
    text = logistic_regression().stages["scheduled"].to_json()
    code = "import sys, graphcore as gc; from graphcore.ir.graph import Graph as G"
    code += "; t = sys.stdin.read(); g = G.from_json(t); assert g.to_json() == t; print(g)"
    run = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "test_golden.py:" in run.stdout


@pytest.mark.parametrize("depth", [5_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_deep_graphs(depth: int) -> None:
    x = y = gc.tensor("x", {"k": 3})
    for _ in range(depth):
        y = gc.sin(y)
    check(Graph((x.node,), (y.node,)))


DOCUMENT = json.loads(logistic_regression().stages["named"].to_json())


def damaged(*path: Any, to: Any) -> str:
    """The text of a graph in which one part is another."""
    document = json.loads(json.dumps(DOCUMENT))
    part = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = to
    return json.dumps(document)


NODES = "graphs", -1, "nodes"
HUGE = {"dtype": "<f8", "shape": [1 << 40, 1 << 40], "bytes": ""}
ADDED = next(i for i, x in enumerate(DOCUMENT["graphs"][-1]["nodes"]) if x["inputs"])
HOSTILE: dict[str, Callable[[], str]] = {
    "nothing": lambda: "",
    "no JSON": lambda: "{",
    "a list": lambda: "[]",
    "another format": lambda: damaged("format", to="pickle"),
    "another version": lambda: damaged("version", to=2),
    "a key more": lambda: damaged("__reduce__", to="os.system"),
    "no graphs": lambda: damaged("graphs", to=[]),
    "an unknown op": lambda: damaged(*NODES, ADDED, "op", to="os.system"),
    "an op of Python": lambda: damaged(*NODES, ADDED, "op", to="builtins.eval"),
    "an op that is no text": lambda: damaged(*NODES, ADDED, "op", to=["named.sum"]),
    "a later node": lambda: damaged(*NODES, ADDED, "inputs", to=[ADDED]),
    "a negative number": lambda: damaged(*NODES, ADDED, "inputs", to=[-1]),
    "a number that is true": lambda: damaged(*NODES, ADDED, "inputs", to=[True]),
    "too many operands": lambda: damaged(*NODES, ADDED, "inputs", to=[0] * 9),
    "unknown attrs": lambda: damaged(*NODES, ADDED, "attrs", to={"self": 1}),
    "attrs of no kind": lambda: damaged(*NODES, ADDED, "attrs", to={"x": {"py/object": "os"}}),
    "another type": lambda: damaged(*NODES, ADDED, "type", to=0),
    "an object array": lambda: damaged("types", 0, "dtype", to="O"),
    "a dtype of fields": lambda: damaged("types", 0, "dtype", to="f8,f8"),
    "a shape of no sizes": lambda: damaged("types", 0, "shape", to=[1.5]),
    "a huge power": lambda: damaged("types", 0, "shape", to=[{"size": [[1, [["n", 10**9]]]]}]),
    "a size that is not canonical": lambda: damaged("types", 0, "shape", to=[{"size": []}]),
    "a size by zero": lambda: damaged(
        "types", 0, "shape", to=[{"size": [[1, [[{"//": ["n", 0]}, 1]]]]}]
    ),
    "a huge literal": lambda: damaged(*NODES, ADDED, "attrs", to={"value": {"literal": HUGE}}),
    "a graph after": lambda: damaged(*NODES, ADDED, "attrs", to={"body": {"graph": 7}}),
    "a line of no parts": lambda: damaged("origins", 0, to=[]),
    "a line asked by itself": lambda: damaged("origins", 0, to=["f.py", 1, 0, None, ""]),
    "labels of other axes": lambda: damaged(*NODES, ADDED, "labels", to=["a"] * 5),
    "no numbers": lambda: '{"format": NaN}',
    "nested without end": lambda: "[" * 200_000,
    "an endless integer": lambda: "9" * 10_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_damaged_and_hostile_text_is_refused(text: Callable[[], str]) -> None:
    with pytest.raises(gc.GraphValueError, match="from_json: the text is not a graph: ") as caught:
        Graph.from_json(text())
    assert "cure: give text that to_json of this version wrote" in str(caught.value)
    assert len(str(caught.value)) < 600


def test_every_part_that_is_gone_or_another_is_refused_or_read() -> None:
    """Whatever is damaged, no other error appears."""
    text = json.dumps(DOCUMENT)
    rng = np.random.default_rng(0)
    for _ in range(100):
        at, count = rng.integers(len(text)), rng.integers(1, 4)
        broken = text[:at] + "".join(rng.choice(list('0"[]{}:,-a'), count)) + text[at + count :]
        with suppress(gc.GraphValueError):
            assert isinstance(Graph.from_json(broken), Graph)


def test_no_module_is_imported_and_no_code_run() -> None:
    text = damaged(*NODES, ADDED, "op", to="antigravity.fly")
    before = set(sys.modules)
    with pytest.raises(gc.GraphValueError, match="is not declared: import its package"):
        Graph.from_json(text)
    assert set(sys.modules) == before


def test_what_is_no_data_is_refused() -> None:
    node = OPS["leaf.constant"](value=Literal(1.0), dims=None)
    attrs = type(node.attrs)({"f": len})
    odd = object.__new__(type(node))
    for name in ("op", "inputs", "type", "builds", "needs"):
        object.__setattr__(odd, name, getattr(node, name))
    object.__setattr__(odd, "attrs", attrs)
    with pytest.raises(gc.GraphTypeError, match="has a builtin_function_or_method, which JSON"):
        Graph((), (odd,)).to_json()
