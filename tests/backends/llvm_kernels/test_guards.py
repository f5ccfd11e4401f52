"""The guard zones around the memory of machine code show what is written into them."""

from __future__ import annotations

import ctypes
import gc as memory
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels

if why := llvm_kernels.unavailable():
    pytest.skip(why, allow_module_level=True)

from graphcore.backends.llvm_kernels import (
    dense,
    elementary,
    matvecs,
    small_matrices,
    thin,
    transposing,
)
from graphcore.backends.llvm_kernels.addressing import Buffer, Index, Memory
from graphcore.backends.llvm_kernels.builder import TRUE, Builder, Value, integer, real
from graphcore.backends.llvm_kernels.places import Places
from tests import checks, guards

x = gc.tensor("x", {"row": None, "col": None})


def test_new_arrays_are_full_of_rubbish() -> None:
    with guards.guarded():
        assert (np.empty(5, np.uint8) == 0x7F).all()
        with guards.rubbish(0xFF):
            assert np.isnan(np.empty(5)).all()


@pytest.mark.parametrize("offset", [-1, -200, 96, 96 + 200])
def test_around_arrays(offset: int) -> None:
    f = gc.compile([x], gc.exp(x), native=True)
    with guards.guarded():
        y = f(np.zeros((3, 4)))
        assert guards.found() == []
        ctypes.memset(y.ctypes.data + offset, 1, 1)
        del y
        assert guards.found() == [f"something was written at byte {offset} of an array of 96 bytes"]
        assert guards.found() == []


def test_behind_buffers() -> None:
    with guards.guarded():
        f = gc.compile([x], gc.special.softmax(gc.cumsum(x, "row"), "col"), native=True)
        f(np.zeros((3, 4)))
        assert guards.found() == []
        _, buffers = [*guards.alive.values()][-1]
        ctypes.memset(next(iter(buffers.ends)) + 7, 1, 1)
        del f
        memory.collect()
        [wrong] = guards.found()
        assert "behind a buffer (slot" in wrong


def test_records_grow_between_zones() -> None:
    """The steps of a loop are remembered in memory that is given back whole."""
    n, s = gc.tensor("n", {}, dtype="int64"), gc.tensor("s", {})
    step = lambda c: (gc.sin(c[0]) + 1, c[1] + 1)
    last = gc.while_loop(lambda c: c[1] < n, step, (s, n * 0))[0]
    with guards.guarded():
        f = gc.compile([s, n], gc.grad(last, s), native=True)
        wanted = gc.compile([s, n], gc.grad(last, s))
        for count in (3, 500):
            np.testing.assert_allclose(f(0.3, count), wanted(0.3, count), rtol=1e-12)
        del f
        memory.collect()
        assert guards.found() == []


PLACE = Memory.place


@pytest.mark.parametrize("shape", [(3, 4), (2, 17), (1, 1), (9, 8)])
@pytest.mark.parametrize("dtype", ["float64", "complex128", "bool"])
def test_places_are_checked(
    shape: tuple[int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads and writes one place further than it should is reported, with its line."""
    z = gc.tensor("z", {"row": None, "col": None}, dtype=dtype)
    given = np.ones(shape, dtype)
    with guards.guarded(), checks.checked():
        f = gc.compile([z], (z + z).transpose("col", "row"), native=True)
        np.testing.assert_array_equal(f(given), (given + given).T)
        assert checks.found() == []
        del f  # so that its machine code is not taken again
        monkeypatch.setattr(Memory, "place", lambda m, *at: m.plus(PLACE(m, *at), integer(1)))
        f = gc.compile([z], (z + z).transpose("col", "row"), native=True)
        f._program.prepare()  # machine code is made
        monkeypatch.undo()
        f(given)
        [wrong] = checks.found()
        assert "test_guards.py" in wrong
        assert f"of {given.size}," in wrong or f"of {2 * given.size}," in wrong
        guards.found()


@pytest.mark.parametrize(
    ("module", "name", "op"),
    [
        (dense.Dense, "text", lambda x: gc.dot(x, x.rename(row="other"), dim="col")),
        (
            vars(thin),
            "thin",
            lambda x: gc.dot(x, gc.sin(x[{"col": slice(3)}].rename(col="new")), dim="row"),
        ),
        (vars(transposing), "transpose_text", gc.Tensor.transpose),
        (small_matrices.WRITTEN, "factor", gc.linalg.det),
        (matvecs.WRITTEN, "across", lambda x: gc.dot(x, x.isel(row=0), dim="col")),
    ],
)
def test_places_in_routines_are_checked(
    module: dict[str, Callable[..., str]] | type,
    name: str,
    op: Callable[[gc.Tensor], gc.Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A routine that was compiled before is compiled again, with checks."""
    monkeypatch.setattr(small_matrices, "MOST_ROWS", 16)
    y, right = op(x), module[name] if isinstance(module, dict) else getattr(module, name)
    wanted = gc.compile([x], y, native=True)(np.eye(9))

    def wrong(*given: str) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Memory, "place", lambda m, *at: m.plus(PLACE(m, *at), integer(1)))
            return right(*given)

    if isinstance(module, dict):
        monkeypatch.setitem(module, name, wrong)
    else:
        monkeypatch.setattr(module, name, wrong)
    with guards.guarded(), checks.checked():
        gc.compile([x], y, native=True)(np.eye(9))
        [found] = checks.found()
        made_at_the_call = module is dense.Dense  # as it depends on sizes
        assert ("no node" if made_at_the_call else "test_guards.py") in found
        guards.found()
    np.testing.assert_array_equal(gc.compile([x], y, native=True)(np.eye(9)), wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_stay_in_their_places(dtype: str) -> None:
    """Of matrices that lie in any order; each routine is compiled once, with checks."""
    matrices = [
        gc.tensor(dims, dict.fromkeys(dims), dtype=dtype) for dims in ("ik", "ki", "kj", "jk")
    ]
    first, other, *columns = matrices
    outputs = [gc.dot(a, b, dim="k") for a in (first, other) for b in columns]
    outputs += [gc.dot(a, a.rename(i="other"), dim="k") for a in (first, other)]
    with guards.guarded(), checks.checked():
        f = gc.compile(matrices, outputs, native=True)
        for i, k, j in ((0, 3, 2), (3, 0, 2), (1, 1, 1), (7, 9, 3), (17, 20, 41), (300, 260, 1)):
            sizes = {"i": i, "k": k, "j": j}
            f(*[np.ones([sizes[dim] for dim in x.dims], dtype) for x in matrices])
            assert checks.found() == [], sizes
        del f
        assert guards.found() == []


def test_a_loop_without_steps_reads_nothing() -> None:
    """What it would read at each step is read before it, and may not be there."""
    b, n = Builder(), Value("%n", "i64")
    p, buffer = Places(b, integer), Buffer(Value("%x", "ptr"), (n,), "f64")
    with checks.checked():
        fifth = lambda i, total: [b.op("fadd", total, p.load(buffer, (Index(integer(5)),), TRUE))]
        (total,) = p.each(n, [real(0.0)], fifth)
        b.do(f"ret {total.typed}")
        code = elementary.compiled(elementary.module("define double @f(ptr %x, i64 %n)", b), "f")
    given = np.arange(7.0)
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)(code["f"])
    assert [f(given.ctypes.data, size) for size in (7, 0)] == [35.0, 0.0]
    assert checks.found() == []
