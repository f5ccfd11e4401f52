"""The trace of a compilation: each program is described by its own lines and dims."""

from __future__ import annotations

import gc as garbage
import io
import pickle
import re
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.provenance import CHANGES_KEPT

HERE = "test_trace.py"


def lines(f: gc.Compiled, stage: str) -> list[str]:
    """The printed lines of a stage."""
    out = io.StringIO()
    f.debug_print(stage, file=out)
    return out.getvalue().splitlines()


def built_at(f: gc.Compiled, stage: str) -> set[int]:
    """The lines of this file that a stage names first."""
    found = [re.search(rf"  {HERE}:(\d+)", line) for line in lines(f, stage)]
    return {int(line[1]) for line in found if line}


def towns() -> tuple[list[gc.Tensor], gc.Tensor, set[int]]:
    x = gc.tensor("x", {"town": 3})
    i = gc.tensor("i", {"trip": 2}, dtype="int64")
    y = x.isel(town=i) + 1
    first = towns.__code__.co_firstlineno
    return [x, i], y, {first + 1, first + 2, first + 3}


def cities() -> tuple[list[gc.Tensor], gc.Tensor, set[int]]:
    x = gc.tensor("x", {"city": 3})
    i = gc.tensor("i", {"day": 2}, dtype="int64")
    y = x.isel(city=i)
    first = cities.__code__.co_firstlineno
    return [x, i], y, {first + 1, first + 2, first + 3}


def towns_elsewhere() -> tuple[list[gc.Tensor], gc.Tensor, set[int]]:
    x = gc.tensor("x", {"town": 3})
    i = gc.tensor("i", {"trip": 2}, dtype="int64")
    y = x.isel(town=i) * 2
    first = towns_elsewhere.__code__.co_firstlineno
    return [x, i], y, {first + 1, first + 2, first + 3}


PROGRAMS = [(towns, "town"), (cities, "city"), (towns_elsewhere, "town")]


@pytest.mark.parametrize("compiled_at_once", [True, False])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_programs_with_inputs_of_one_name(order: tuple[int, ...], compiled_at_once: bool) -> None:
    """Messages and stages of each speak of its own dims and lines, whichever was built first."""
    built, functions = {}, {}
    for at in order:
        built[at] = PROGRAMS[at][0]()
        if compiled_at_once:
            functions[at] = gc.compile(*built[at][:2])
    for at in sorted(order):
        inputs, y, own = built[at]
        f = functions[at] if compiled_at_once else gc.compile(inputs, y)
        dim = PROGRAMS[at][1]
        for again in (f, pickle.loads(pickle.dumps(f))):
            for stage in ("named", "lowered", "optimized", "scheduled"):
                text = "\n".join(lines(again, stage))
                assert f"x : f64[{dim}=3]" in text.replace("x    :", "x :")
                assert built_at(again, stage) <= own
            assert built_at(again, "named") == own
            with pytest.raises(gc.GraphIndexError, match=f"outside dim '{dim}'") as caught:
                again(np.ones(3), np.array([0, 7]))
            assert f"isel at {HERE}:{max(own)} " in str(caught.value)
            with pytest.raises(gc.GraphError, match=rf"declared as .*{dim}.*{HERE}:{min(own)}\b"):
                again(np.ones(4), np.array([0, 1]))


def test_a_stage_keeps_its_lines_and_dims_when_pickled() -> None:
    inputs, y, own = cities()
    f = gc.compile(inputs, y)
    printed = {name: str(graph) for name, graph in f.stages.items()}
    towns()
    for name, graph in pickle.loads(pickle.dumps(f.stages)).items():
        assert str(graph) == printed[name]
    assert f.diff("named", "lowered") == f.diff("named", "lowered")
    assert (
        "city" in f.diff("lowered", "simplified") or f.stages["lowered"] == f.stages["simplified"]
    )
    assert own == built_at(f, "named")


def body(step: float) -> gc.Tensor:
    x = gc.tensor("x", {"k": 3})
    return gc.scan(lambda c, _: (gc.sin(c) * step, None), x, length=4)[0]


def test_lines_inside_of_loops() -> None:
    first, second = body(2.0), body(2.0)
    assert first is second
    x = gc.tensor("x", {"k": 3})
    f = gc.compile([x], first)
    at = body.__code__.co_firstlineno + 2
    assert {
        line.split(f"{HERE}:")[1][: len(str(at))] for line in lines(f, "named") if "sin" in line
    } == {str(at)}


def test_a_program_that_is_written_again_has_its_new_lines() -> None:
    """The nodes of an older cell of a notebook, or of an error that is kept, may live on."""
    x = gc.tensor("x", {"k": 3})
    older = gc.exp(gc.sin(x)).sum(), gc.cos(gc.sin(x))
    at = older[0].node.origin.line
    y = gc.exp(gc.sin(x)).sum()
    f = gc.compile([x], [y, gc.grad(y, x)])
    assert y is older[0]
    assert built_at(f, "named") == {at - 1, at + 2, at + 3}
    assert at not in built_at(f, "expanded")


def test_only_the_last_lines_are_remembered() -> None:
    """A node that many programs build does not grow for ever."""
    source = "\n".join("x = gc.tensor('many', {'a': 3})" for _ in range(3 * CHANGES_KEPT))
    scope = {"gc": gc}
    exec(compile(source, "many.py", "exec"), scope)
    node = scope["x"].node
    assert len(node.builds) == CHANGES_KEPT
    assert node.origin.line == 3 * CHANGES_KEPT


def test_every_rewrite_leaves_a_record() -> None:
    x, w = gc.tensor("x", {"row": 5, "k": 3}), gc.tensor("w", {"k": 3})
    last, _ = gc.scan(
        lambda c, row: (gc.tanh(gc.dot(row, w, dim="k") + c), None), 0.0, x, dim="row"
    )
    f = gc.compile([x, w], [last, gc.grad(last, w), gc.special.log_softmax(w, "k")])
    shown = {made.name: "\n".join(map(repr, made.records)) for made in f.passes}
    assert "lower_scan (" in shown["lowered"]
    assert "expand_pullback (expand.py:" in shown["expanded"]
    assert "tanh" in shown["expanded"]
    assert "outside (" in shown["moved out of loops"]
    assert "decompose_log_softmax (decompose.py:" in shown["decomposed"]
    trace = f.stages["scheduled"].trace
    assert trace is not None
    assert trace.records == [record for made in f.passes for record in made.records]
    assert not trace.known
    for node in f.stages["scheduled"].every_node():
        assert trace.origin(node).file == __file__, node


def test_a_trace_goes_with_its_function() -> None:
    inputs, y, _ = cities()
    f = gc.compile(inputs, gc.sin(y))
    node = weakref.ref(next(n for n in f.stages["scheduled"].nodes() if n.op.name == "sin"))
    del f, y, inputs
    garbage.collect()
    assert node() is None


def test_threads_compile_with_traces_of_their_own() -> None:
    found: dict[int, set[int]] = {}
    wanted: dict[int, set[int]] = {}

    def work(at: int) -> None:
        for _ in range(5):
            inputs, y, wanted[at] = PROGRAMS[at][0]()
            found[at] = built_at(gc.compile(inputs, gc.exp(y)), "simplified")
            assert found[at] <= wanted[at] | {work.__code__.co_firstlineno + 3}

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (1, 1)))
    assert len(found[1] & wanted[1]) == 3
