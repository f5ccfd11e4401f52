"""Stores of the first lanes of a vector: by a routine with AVX2, under a mask with AVX-512.

And loads of those of small values.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import elementary, machine, storing
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .native import Both, M, N, fenced, given, needs_machine_code

pytestmark = needs_machine_code


def twice(x: Node) -> Node:
    return e.add(x, x)


ROOTS: dict[str, Callable[[Node], Node]] = {
    "elementwise": twice,
    "interleaved": lambda x: t.expand(twice(x), axes=(2,), sizes=(3,)),
    "turned": lambda x: t.transpose(twice(x), perm=(1, 0)),
    "padded": lambda x: t.embed(x, shape=(N + 2, M + 3), starts=(1, 2), steps=(1, 1)),
    "joined": lambda x: t.concat(twice(x), x, axis=1),
    "added up": lambda x: t.sum_(x, axes=(0,)),
}


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_the_routine_stores_the_first_lanes(kind: str, width: int) -> None:
    """And writes nowhere else."""
    name = f"{storing.ROUTINE}.{kind}x{width}"
    code = elementary.compiled(through_memory(name, kind, width), "through")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code["through"])
    x = np.arange(1, width + 1, dtype=kind.replace("i", "int"))
    for n in range(-1, width + 2):
        y = np.zeros(3 * width, x.dtype)
        call(x.ctypes.data, y[width:].ctypes.data, n)
        wanted = np.zeros_like(y)
        wanted[width : width + min(max(n, 0), width)] = x[: max(n, 0)]
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("kind", ["i8", "i16"])
def test_the_routine_loads_the_first_lanes(kind: str, width: int) -> None:
    """And reads nothing behind them, where a page begins that may not be read."""
    name, vector = f"{storing.LOADING}.{kind}x{width}", f"<{width} x {kind}>"
    ir = f"""define void @through(ptr %x, ptr %y, i64 %n) #0 {{
  %v = call {vector} @{name}(ptr %x, i64 %n)
  store {vector} %v, ptr %y, align 1
  ret void
}}
declare {vector} @{name}(ptr, i64) #0
{machine.ATTRIBUTES}
"""
    code = elementary.compiled(ir, "through")
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code["through"])
    for n in range(-1, width + 2):
        count = min(max(n, 0), width)
        memory = fenced(32, behind=False).view(kind.replace("i", "int"))
        x = memory[memory.size - count :]
        x[:] = np.arange(1, count + 1)
        y = np.full(width, -1, x.dtype)
        call(x.ctypes.data, y.ctypes.data, n)
        np.testing.assert_array_equal(y, [*x, *[0] * (width - count)])


def test_masks_of_bytes_are_loaded_by_a_routine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where masks are slow; rows of every length, with conditions and small integers."""
    monkeypatch.setattr(storing, "masks_are_quick", lambda: False)
    monkeypatch.setattr(llvm_kernels, "MADE", {})
    keep, small = given("keep", N, M, dtype="bool"), given("small", M, dtype="int8")
    x = given("x", N, M)
    wide = t.expand(small, axes=(0,), sizes=(N,))
    both = Both([e.where(keep, x, e.cast(wide, dtype=x.type.dtype))])
    graph = Graph(both.params, (e.where(keep, x, x),))
    assert f"@{storing.LOADING}.i8x8" in llvm_kernels.written(graph, ("n", "m"))[0]
    rng = np.random.default_rng(0)
    for n, m in ((0, 3), (1, 1), (3, 7), (9, 8), (17, 10), (3, 20), (40, 0)):
        values = rng.random((n, m)) > 0.5, rng.integers(-9, 9, m).astype("int8"), rng.random((n, m))
        both.agree([*values], (n, m), 4)


def through_memory(name: str, kind: str, width: int) -> str:
    """IR of a function that loads a vector and gives it to the routine."""
    x = f"<{width} x {kind}>"
    return f"""define void @through(ptr %x, ptr %y, i64 %n) #0 {{
  %v = load {x}, ptr %x, align 1
  call void @{name}({x} %v, ptr %y, i64 %n)
  ret void
}}
declare void @{name}({x}, ptr, i64) #0
{machine.ATTRIBUTES}
"""


@pytest.mark.parametrize("m", [3, 7, 9, 15])
def test_rows_of_known_sizes(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "masks_are_quick", lambda: False)
    monkeypatch.setattr(llvm_kernels, "MADE", {})
    x = given("x", 5, m, dtype="float32")
    both = Both([root(x) for name, root in ROOTS.items() if name != "padded"])
    both.agree([np.random.default_rng(0).standard_normal((5, m)).astype("float32")], (0, 0), 4)


def test_stores_of_several_values_are_behind_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "masks_are_quick", lambda: False)
    x = gc.tensor("x", {"i": None})
    f = gc.compile([x], [x + 1, x * 2, x - 3], native=True)
    assert f.llvm.count("label %way") == 2


def test_long_nests_load_whole_vectors_without_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the code for large sizes, and of sizes that are known and leave no lanes."""
    monkeypatch.setattr(storing, "masks_are_quick", lambda: False)
    for n, patient, found in ((N, True, 2), (N, False, 1), (64, False, 1)):
        x = given("x", n)
        ir, _ = llvm_kernels.written(Graph((x,), (twice(x),)), ("n",), patient=patient)
        loads = re.findall(r"@llvm.masked.load.v8f64.p0\(ptr \S+, i32 8, <8 x i1> (\S+)", ir)
        assert len(loads) == found
        assert ("splat" in loads) is (patient or n == 64)
