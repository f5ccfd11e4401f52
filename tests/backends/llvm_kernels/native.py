"""Graphs in machine code beside NumPy calls, with memory that starts out full of rubbish."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import entrance, machine
from graphcore.backends.llvm_kernels.pseudocode import pseudo_code
from graphcore.backends.numpy_backend import KernelError
from graphcore.backends.numpy_backend.function import Function
from graphcore.ir.errors import GraphError
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.provenance import described_by
from graphcore.ir.sizes import Size, evaluate, unknown
from graphcore.ops import leaf
from graphcore.schedule.regions import as_one
from tests.guards import GUARD, with_guard

N, M = unknown("n"), unknown("m")
SIZES = (0, 1, 7, 8, 9, 17, 1030)
RUBBISH = (0x7F, 0xFF)

needs_machine_code = pytest.mark.skipif(machine.unavailable() is not None, reason="no machine code")


def slowly(*values: object) -> list[Any]:
    """Parameters of slow tests, among those of tests that always run."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def among(x: np.ndarray, rubbish: int) -> np.ndarray:
    """The same values with rubbish before and behind them, as lanes without a value may read it."""
    memory = np.full(x.nbytes + 2 * GUARD, rubbish, np.uint8)
    y = memory[GUARD : GUARD + x.nbytes].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def given(name: str, *shape: Size, dtype: str = "float64") -> Node:
    return leaf.input_(name=name, dtype=np.dtype(dtype), shape=shape, dims=None)


def worded(error: KernelError, graph: Graph) -> GraphError:
    """An error of the kernel that a graph is, in the user's words."""
    with described_by(graph.trace):
        return error.worded(as_one(graph).outputs[0].inputs[0])


class Both:
    """A graph in both targets."""

    def __init__(self, outputs: Sequence[Node], unknowns: tuple[str, ...] = ("n", "m")) -> None:
        inputs = [x for x in Graph((), tuple(outputs)).nodes() if x.op is leaf.input_]
        self.params = tuple(sorted(inputs, key=lambda x: str(x.attrs["name"])))
        graph = Graph(self.params, tuple(outputs))
        self.numpy = Function(graph, unknowns)
        self.compile(graph, unknowns)

    @classmethod
    def of(cls, compiled: gc.Compiled, kernel: Graph | None = None) -> Both:
        """A compiled program in both targets; `kernel` is compiled to machine code in its place."""
        both = cls.__new__(cls)
        both.numpy, both.bind = compiled._program.function, compiled._boundary.bind
        both.compile(kernel or compiled.stages["optimized"], compiled._boundary.unknowns)
        return both

    def compile(self, graph: Graph, unknowns: tuple[str, ...]) -> None:
        """Machine code of the graph, its pseudo-code, and what words its failures."""
        self.text = pseudo_code(graph)
        made = llvm_kernels.machine_code(graph, unknowns)

        def report(record: list[int], known: dict[str, int]) -> Exception:
            return worded(made.failed(record, known), graph)

        self.kernel, self.report = made.kernel, report

    def program(self, bind: entrance.Bind) -> Callable[..., list[np.ndarray]]:
        return entrance.CallableKernel(self.kernel, bind, self.report).entrance()

    def agree_when_called(self, values: Sequence[np.ndarray], close: float) -> list[np.ndarray]:
        """As `agree`, for arguments of a call."""
        arrays, sizes = self.bind(values)
        return self.agree(arrays, sizes, close, cancels=True)

    def native(
        self, arrays: Sequence[np.ndarray], sizes: tuple[int, ...], rubbish: int = 0x7F
    ) -> list[np.ndarray]:
        """The results of machine code, in memory full of `rubbish`."""
        empty, made = np.empty, []
        arrays = [among(np.asarray(x), rubbish) for x in arrays]

        def dirty(*args: object, **options: object) -> np.ndarray:
            made.append(empty(*args, **options))
            made[-1].reshape(-1).view(np.uint8).fill(rubbish)  # one without axes, too
            return made[-1]

        guarded = self.kernel._replace(slots=tuple(map(with_guard, self.kernel.slots)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(entrance.np, "empty", dirty)
            program = entrance.CallableKernel(guarded, lambda xs: (list(xs), sizes), self.report)
            call = program.entrance()
            first = call(*arrays)
        self.check_guards(program, sizes, rubbish)
        again = call(*arrays)
        shared = self.program(lambda xs: (list(xs), sizes))(*arrays)  # buffers lie in one place
        for x, y, z in zip(first, again, shared, strict=True):
            np.testing.assert_array_equal(x, y)
            np.testing.assert_array_equal(x, z)
        return first

    def check_guards(
        self, program: entrance.CallableKernel, sizes: tuple[int, ...], rubbish: int
    ) -> None:
        """Nothing has been written behind a buffer."""
        known, (words, *_) = dict(zip(self.kernel.unknowns, sizes, strict=True)), program.idle
        table = program.places.end - len(self.kernel.slots)
        for at, slot in enumerate(self.kernel.slots, table):
            if isinstance(slot, entrance.Scratch):
                end = int(words[at]) + evaluate(slot.bytes, known)
                assert ctypes.string_at(end, GUARD) == bytes([rubbish]) * GUARD

    def agree(
        self,
        arrays: Sequence[np.ndarray],
        sizes: tuple[int, ...],
        close: float = 0.0,
        cancels: bool = False,
    ) -> list[np.ndarray]:
        """The results, after they are found to be those of NumPy calls, zeros with their sign.

        `close` is how far floats may be apart, in units of eps of themselves, of the largest value
        and, as sums may cancel, of a tenth.
        """
        wanted = self.numpy([x.copy() for x in arrays], sizes)
        for rubbish in RUBBISH:
            found = self.native(arrays, sizes, rubbish)
            for x, y in zip(found, wanted, strict=True):
                assert x.dtype == y.dtype
                assert x.shape == y.shape
                if close and x.dtype.kind in "fc":
                    eps = np.finfo(x.dtype).eps
                    scale = np.max(np.abs(y[np.isfinite(y)]), initial=0.1 if cancels else 0.0)
                    np.testing.assert_allclose(x, y, close * eps, close * eps * scale)
                    continue
                np.testing.assert_array_equal(x, y)
                if x.dtype.kind == "f":
                    zeros = y == 0
                    np.testing.assert_array_equal(np.signbit(x[zeros]), np.signbit(y[zeros]))
        return found


def some(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    """Values of a dtype: small integers, or floats with some special ones among them."""
    kind = np.dtype(dtype).kind
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -9, 9, shape).astype(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.standard_normal(shape)
    if kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def fenced(words: int, behind: bool) -> np.ndarray:
    """Words behind, or before, a page that nothing may access: who does ends the process."""
    size = -(-8 * words // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + 2 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for page in (0, size + mmap.PAGESIZE):
        assert protect(start + page, mmap.PAGESIZE, 0) == 0
    offset = mmap.PAGESIZE + (0 if behind else size - 8 * words)
    return np.frombuffer(pages, np.int64, words, offset)
