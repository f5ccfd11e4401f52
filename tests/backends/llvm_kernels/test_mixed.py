"""Programs in which NumPy computes some ops, and kernels all others."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.ir.node import OPS, Node
from graphcore.ir.op import Trait
from graphcore.ops import leaf
from graphcore.ops.schedule import kernel
from graphcore.schedule.regions import is_repeated
from tests.shares import parts
from tests.targets.comparing import Verdict, attempt
from tests.targets.drawing import KINDS, whole

from .native import needs_machine_code

pytestmark = needs_machine_code


@contextmanager
def on_the_host(share: Callable[[str], bool]) -> Iterator[None]:
    """NumPy computes the ops in this block whose names are in a share of all."""
    computes = llvm_kernels.computes

    def some(node: Node) -> bool:
        free = is_repeated(node) or not node.inputs or node.op.name == "project"
        return computes(node) and (free or not share(node.op.name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llvm_kernels, "computes", some)
        yield


@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [
        *[("programs", 500, 8), ("graphs", 2, 6), ("loops", 2, 3)],
        *parts("programs", 2000, 300),
        *parts("graphs", 3, 300),
        *parts("loops", 3, 100),
    ],
)
def test_random_programs(kind: str, first: int, count: int) -> None:
    """Values and derivatives are those of NumPy calls alone, and the same calls are refused."""
    for seed in range(first, first + count):
        with on_the_host(lambda op, seed=seed: (seed + sum(map(ord, op))) % 4 == 0):
            for verdict in whole(KINDS[kind](seed)):
                fine = verdict.kind != "differs" or both_refuse(verdict)
                assert fine, f"{seed}: {verdict.reason}"


def both_refuse(verdict: Verdict) -> bool:
    """Whether both targets refuse: which of several ops fails first is a matter of order."""
    found, _, wanted = verdict.reason.partition(", NumPy: ")
    return all(words[1:].startswith("call: ") for words in (found, wanted))


def both(inputs: list[gc.Tensor], outputs: Any) -> tuple[gc.Compiled, gc.Compiled]:
    """The program with machine code, and as NumPy calls alone."""
    return gc.compile(inputs, outputs, native=True), gc.compile(inputs, outputs)


def factored() -> tuple[list[gc.Tensor], dict[str, gc.Tensor]]:
    """A function of a factor that NumPy computes, and its gradient."""
    a = gc.tensor("a", {"row": None, "col": None})
    q, r = gc.linalg.qr(a * 2 + 1, dims=("row", "col"))
    y = (gc.exp(-q * q) + gc.tanh(q)).sum("row")
    return [a], {"y": y, "r": r * 2, "grad": gc.grad(y.sum(), a)}


def test_its_kernels_are_a_stage_and_lines_of_its_source(
    golden: Callable[[str, str], None],
) -> None:
    f = gc.compile(*factored(), native=True)
    golden("mixed", f"{f.stages['kernels']}\n\n{f.source}")
    assert [node.op for node in f.stages["kernels"].nodes()].count(kernel) == 2
    assert f.diff("optimized", "kernels")


def test_arguments_of_any_layout_and_size(random: np.random.Generator) -> None:
    native, calls = both(*factored())
    for shape in ((6, 4), (4, 6), (1, 1), (9, 17)):
        wide = random.standard_normal((2 * shape[0], shape[1]))
        for a in (wide[::2], np.asfortranarray(wide[::2]), wide[::-2], wide[: shape[0]].tolist()):
            found, wanted = native(a), calls(a)
            for name, y in wanted.items():
                np.testing.assert_allclose(found[name], y, rtol=1e-12, atol=1e-13)


def test_pickled_and_shared_by_threads(random: np.random.Generator) -> None:
    f = gc.compile(*factored(), native=True)
    g = pickle.loads(pickle.dumps(f))
    given = [random.standard_normal((n, 3)) for n in range(3, 20)] * 4
    wanted = [f(x)["grad"] for x in given]
    with ThreadPoolExecutor(4) as pool:
        for x, y in zip(pool.map(g, given), wanted, strict=True):
            np.testing.assert_array_equal(x["grad"], y)


def test_equal_kernels_are_one() -> None:
    x, y = gc.tensor("x", {"row": None}), gc.tensor("y", {"row": None})
    once = gc.sort(gc.sin(y) * x, "row")
    twice = gc.sort(gc.sin(once) * x, "row")
    with on_the_host(lambda op: op == "sort"):
        f = gc.compile([x, y], gc.sort(gc.sin(twice) * x, "row"), native=True)
    assert f.source.count("    k0(") == 3
    assert "k1" not in f.source
    (body,) = {node.attrs["body"] for node in f.stages["kernels"].nodes() if node.op is kernel}
    made = llvm_kernels.machine_code(body, ("row",))
    with on_the_host(lambda op: op == "sort"):
        g = gc.compile([x, y], once, native=True)
    assert llvm_kernels.machine_code(body, ("row",)) is made
    assert g.native


def test_machine_code_goes_with_the_last_program_that_has_it() -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], gc.sin(x) * 1.75, native=True)
    key = f.stages["kernels"].outputs[0].inputs[0].attrs["body"], ("row",)
    f._program.prepare()  # machine code is made
    made = id(llvm_kernels.MADE[key])
    g = gc.compile([x], gc.sin(x) * 1.75, native=True)
    g._program.prepare()
    del f
    assert id(llvm_kernels.MADE[key]) == made
    del g
    assert key not in llvm_kernels.MADE


def test_every_view_and_leaf_has_machine_code() -> None:
    """Kernels have views and leaves of their own; sizes are found between kernels."""
    plain = {"tensor", "leaf"}
    free = [op for op in OPS.values() if op.dialect in plain and op.module.startswith("graphcore.")]
    free = [op for op in free if op.traits & {Trait.VIEW, Trait.FREE}]
    assert len(free) > 5
    assert set(free) - {leaf.after} <= llvm_kernels.EMITTED


# ---- errors


def same_words(native: gc.Compiled, calls: gc.Compiled, *args: Any) -> str:
    found, wanted = (attempt(f, args) for f in (native, calls))
    assert isinstance(wanted, str)
    assert found == wanted
    return wanted


def test_an_error_out_of_a_kernel_in_a_loop_names_the_steps() -> None:
    x = gc.tensor("x", {"row": None})
    at = gc.tensor("at", {"time": None, "inner": None}, dtype="int64")

    def outer(s: gc.Tensor, ks: gc.Tensor) -> Any:
        def step(s: gc.Tensor, k: gc.Tensor) -> Any:
            return s + gc.take(x, k.expand_dims(row=1), "row").sum() * 0.5, None

        last, _ = gc.scan(step, s.sum(), ks, dim="inner")
        return gc.sort(s + last, "row") * 0.5 + gc.sin(s), None

    last, _ = gc.scan(outer, x, at, dim="time")
    positions = np.zeros((4, 3), np.int64)
    with on_the_host(lambda op: op == "sort"):
        native, calls = both([x, at], last)
    assert "k0(" in native.source
    assert "for " in native.source
    np.testing.assert_allclose(native(np.ones(2), positions), calls(np.ones(2), positions))
    positions[2, 1] = -9
    words = same_words(native, calls, np.ones(2), positions)
    assert "in step 1 (from 0)" in words
    assert "in step 2 (from 0)" in words
    positions[2, 1] = 0
    np.testing.assert_allclose(native(np.ones(2), positions), calls(np.ones(2), positions))


def test_an_error_names_the_line_of_its_own_place() -> None:
    """Kernels with one body stand for nodes of several lines."""
    x = gc.tensor("x", {"row": None})
    i, j = (gc.tensor(name, {"at": None}, dtype="int64") for name in "ij")
    y = gc.take(x, i, "row") * 2 + 1
    y = gc.sort(y, "at")
    y = gc.take(y, j, "at") * 2 + 1
    line = sys._getframe().f_lineno - 1
    with on_the_host(lambda op: op == "sort"):
        native, calls = both([x, i, j], gc.sort(y, "at"))
    fine, wrong = np.array([0, 1]), np.array([0, 5])
    assert f":{line - 2}: position 5 is outside dim 'row'" in same_words(
        native, calls, np.ones(2), wrong, fine
    )
    assert f":{line}: position 5 is outside dim 'at'" in same_words(
        native, calls, np.ones(2), fine, wrong
    )


def test_matrices_without_a_factor() -> None:
    a = gc.tensor("a", {"batch": None, "row": 3, "col": 3})
    w, _ = gc.linalg.eigh(gc.linalg.cholesky(a + 0.0, dims=("row", "col")) * 2 + 1)
    native, calls = both([a], w)
    assert "k0(" in native.source
    given = np.stack([np.eye(3), -np.eye(3)])
    assert "batch=1" in same_words(native, calls, given)


def test_no_memory() -> None:
    u, v = gc.tensor("u", {"i": None}), gc.tensor("v", {"j": None})
    y = gc.sort((gc.exp(u) * v + 1).sum("j"), "i")
    size = 2**33
    with on_the_host(lambda op: op == "sort"):
        native, calls = both([u, v], gc.cumsum(gc.exp(u) * v + y, "j"))
    with pytest.raises(gc.GraphError, match=r"call: \w+ at test_mixed.py:\d+: ") as refused:
        native(np.broadcast_to(1.0, size), np.broadcast_to(1.0, size))
    assert isinstance(refused.value, MemoryError)
    np.testing.assert_allclose(native(np.ones(3), np.ones(3)), calls(np.ones(3), np.ones(3)))


def test_operands_in_another_order_are_copied_without_python(
    random: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel takes transposed, strided and float32 operands; only float32 needs `prepare`."""
    x, y = gc.tensor("x", {"row": None, "col": None}), gc.tensor("y", {"row": None})
    with on_the_host(lambda op: op == "sort"):
        f = gc.compile([x, y], gc.sort(gc.exp(x) * y + x, "row"), native=True)
    (called,) = [node for node in f.stages["kernels"].nodes() if node.op is kernel]
    prepared: list[int] = []
    prepare = llvm_kernels.entrance.Hosted.prepare
    monkeypatch.setattr(
        llvm_kernels.entrance.Hosted, "prepare", lambda *args: prepared.append(1) or prepare(*args)
    )
    with monkeypatch.context() as careful:  # code that is made again is prepared by the clock
        stages = llvm_kernels.machine.Stages
        careful.setattr(stages, "at_once", stages.with_care)
        compute = llvm_kernels.hosted(called.attrs["body"])
    matrix, vector = random.standard_normal((4, 3)), random.standard_normal(8)
    place, numbers = np.empty((3, 4)), {"row": 3, "col": 4}
    sizes = [numbers[name] for name in compute.sizes]
    for a, count in ((matrix.T, 1), (matrix.T, 0), (matrix.T.astype("f4"), 1), (matrix.T, 0)):
        b = vector[:6:2]
        given = [a if operand.type.ndim == 2 else b for operand in called.inputs]
        references = sys.getrefcount(a), sys.getrefcount(b)
        compute.function(*sizes, *given, place)
        assert (sys.getrefcount(a), sys.getrefcount(b)) == references
        np.testing.assert_allclose(place, np.exp(a) * b[:, None] + a, rtol=1e-6)
        assert len(prepared) == count
        prepared.clear()
