"""Machine code under threads, in other processes, over many calls, with arguments of any form."""

from __future__ import annotations

import gc as memory
import importlib.util
import resource
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels

if why := llvm_kernels.unavailable():
    pytest.skip(why, allow_module_level=True)

from tests import checks, guards
from tests.targets.drawing import forms

x = gc.tensor("x", {"row": None})


def walk() -> list[gc.Tensor]:
    """A loop with its gradient."""
    last, each = gc.scan(lambda s, x: (gc.tanh(s + x), s * x), 0.1, x, dim="row")
    y = last + each.sum()
    return [y, gc.grad(y, x)]


def run(script: str, *args: str) -> str:
    """What a script prints in a process of its own, which has to end well."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(script), *args], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- arguments


FENCE = """
    import ctypes, itertools, mmap, sys
    import numpy as np
    import graphcore as gc

    PAGE = mmap.PAGESIZE
    libc = ctypes.CDLL(None)
    kept = []

    def fenced(x, at_end):
        "The same array, with memory right behind or before it that cannot be read."
        whole = mmap.mmap(-1, 3 * PAGE + x.nbytes // PAGE * PAGE)
        kept.append(whole)
        start = ctypes.addressof(ctypes.c_char.from_buffer(whole))
        inside = len(whole) - 2 * PAGE
        for fence in (start, start + PAGE + inside):
            assert libc.mprotect(ctypes.c_void_p(fence), PAGE, 0) == 0
        offset = PAGE + (inside - x.nbytes if at_end else 0)
        y = np.frombuffer(whole, x.dtype, x.size, offset).reshape(x.shape)
        y[...] = x
        return y

    dtype = sys.argv[1]
    x = gc.tensor("x", {"row": None, "col": None}, dtype=dtype)
    y = gc.tensor("y", {"row": None}, dtype=dtype)
    z = gc.tensor("z", {"col": None}, dtype=dtype)
    outputs = [
        x * y + z, x.transpose("col", "row"), x.sum("row"), x.sum("col"), x.sum(),
        gc.sort(z, "col") if np.dtype(dtype).kind != "c" else gc.exp(z),
        gc.cumsum(x, "col"), gc.cumsum(x, "row"), gc.dot(x, z, dim="col"), gc.dot(x, y, dim="row"),
        gc.dot(y, y, dim="row"), gc.roll(x, {"col": 1}), gc.concat([y, y], "row"),
        *gc.scan(lambda s, r: (s + r, s.sum()), z, x, dim="row"), x.isel(row=slice(None, None, -1)),
        x.rename(row="other") * x, gc.dot(x, x.rename(row="other"), dim="col"),
    ]
    native, calls = gc.compile([x, y, z], outputs, native=True), gc.compile([x, y, z], outputs)
    for rows, cols in itertools.product((0, 1, 7, 8, 9, 17), repeat=2):
        given = [np.ones((rows, cols), dtype), np.ones(rows, dtype), np.ones(cols, dtype)]
        wanted = calls(*given)
        for at_end in (True, False):
            found = native(*[fenced(a, at_end) for a in given])
            for a, b in zip(found, wanted):
                np.testing.assert_array_equal(a, b)
    print("whole")
"""


@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        *[
            pytest.param(d, marks=pytest.mark.slow)
            for d in ("float32", "int8", "int64", "complex64")
        ],
    ],
)
def test_nothing_is_read_beyond_an_argument(dtype: str) -> None:
    """Pages before and behind the arguments cannot be read, those of empty arguments neither."""
    assert run(FENCE, dtype) == "whole\n"


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
@pytest.mark.parametrize("size", [1, 8, 17])
def test_arguments_of_any_form(dtype: str, size: int) -> None:
    z = gc.tensor("z", {"row": None}, dtype=dtype)
    made = [gc.where(z == z, z, z), gc.concat([z, z], "row"), (z != z).any()]
    f = gc.compile([z], made, native=True)
    given = np.random.default_rng(0).integers(0, 3, size).astype(dtype)
    wanted = f(given)
    for name, other in forms(given).items():
        before = np.array(other)
        for y, expected in zip(f(other), wanted, strict=True):
            np.testing.assert_array_equal(y, expected, name)
        np.testing.assert_array_equal(other, before, name)


def test_a_nan_that_is_moved_keeps_its_bits() -> None:
    bits = np.array(
        [0x7FF8_0000_0000_1234, 0xFFF8_0000_0000_0001, 0x3FF0_0000_0000_0000], np.uint64
    )
    given = np.tile(bits, 6).view(np.float64)
    moved = [x.isel(row=slice(None, None, -1)), gc.concat([x, x], "row"), gc.roll(x, {"row": 2})]
    found, expected = [gc.compile([x], moved, native=native)(given) for native in (True, False)]
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_array_equal(y.view(np.uint64), z.view(np.uint64))


@pytest.mark.parametrize("op", ["take", "set", "add", "take_along", "switch"])
def test_positions_that_another_thread_changes(op: str) -> None:
    """They are refused or used, but nothing outside is read or written."""
    at = gc.tensor("at", {"pick": None}, dtype="int64")
    made = {
        "take": lambda: gc.take(x, at, dim="row"),
        "set": lambda: gc.zeros_like(x).at[{"row": at}].set(gc.cos(at * 1.0)),
        "add": lambda: gc.zeros_like(x).at[{"row": at}].add(gc.cos(at * 1.0)),
        "take_along": lambda: gc.take_along(x, at.rename(pick="row"), "row"),
        "switch": lambda: gc.map(
            lambda i: gc.switch(i, [lambda: x.sum(), lambda: x.max(), lambda: x.min()]), at, "pick"
        ),
    }[op]()
    rng, size = np.random.default_rng(0), 50_000 if op != "switch" else 5_000
    good = rng.integers(0, 3, size)
    moving, values = good.copy(), np.arange(float(size if op == "take_along" else 3))
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            moving[::7] = 2**40
            moving[1::5] = -(2**40)
            moving[...] = good
            time.sleep(3e-5)

    with guards.guarded(), checks.checked():
        f = gc.compile([x, at], made, native=True)
        f(values, good)
        thread = threading.Thread(target=change)
        thread.start()
        outcomes = set()
        try:
            for _ in range(60):
                try:
                    outcomes.add(np.shape(f(values, moving)))
                except gc.GraphIndexError:
                    outcomes.add("refused")
        finally:
            ended.set()
            thread.join()
        assert len(outcomes) <= 2
        assert guards.found() == checks.found() == []


# ---- threads, processes, the interpreter


@pytest.mark.parametrize("calls", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_eight_threads(calls: int) -> None:
    """All call one program, with sizes of their own."""
    f = gc.compile([x], walk(), native=True)
    given = [np.linspace(-1, 1, size) for size in (3, 8, 0, 17, 3, 100, 9, 1)]
    wanted = [[y.copy() for y in f(a)] for a in given]
    wrong: list[int] = []

    def work(k: int) -> None:
        a, (value, slope) = given[k], wanted[k]
        for n in range(calls):
            y, g = f(a)
            if y != value or not np.array_equal(g, slope):
                wrong.append(n)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes(start: str, tmp_path: Path) -> None:
    """A program compiled before works in them, while another thread runs it; they compile too."""
    file = tmp_path / "processes.py"
    file.write_text(
        dedent(f"""
        import multiprocessing, threading
        import numpy as np
        import graphcore as gc

        x = gc.tensor("x", {{"row": None}})
        n = gc.tensor("n", {{}}, dtype="int64")
        count = lambda s: (gc.sin(s[0]) + x, s[1] + 1)
        last = gc.while_loop(lambda s: s[1] < n, count, (x, n * 0))[0]

        def total(f, k):
            own = gc.compile([x], gc.exp(x) * k, native=True)
            return float(f(np.ones(17), k).sum() + own(np.ones(17)).sum())

        if __name__ == "__main__":
            f = gc.compile([x, n], last, native=True)
            wanted = [total(f, k) for k in range(8)]
            running = threading.Thread(target=f, args=(np.ones(1000), 300_000))
            running.start()
            with multiprocessing.get_context({start!r}).Pool(2) as pool:
                found = pool.starmap(total, [(f, k) for k in range(8)])
                print(found == wanted, running.is_alive())
            running.join()
        """)
    )
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[0] == "True", done.stderr
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("daemon", [True, False])
@pytest.mark.parametrize("straight", [True, False])
def test_the_interpreter_ends_while_a_thread_runs(daemon: bool, straight: bool) -> None:
    """In a loop, which looks for signals now and then, and in straight-line code."""
    printed = run(
        """
        import sys, threading, time
        import numpy as np
        import graphcore as gc

        daemon, straight = [word == "True" for word in sys.argv[1:]]
        x, n = gc.tensor("x", {"row": None}), gc.tensor("n", {}, dtype="int64")
        step = lambda s: (gc.sin(s[0]) + 1, s[1] + 1)
        loop = gc.while_loop(lambda s: s[1] < n, step, (x, n * 0))[0]
        y = x
        for _ in range(12):
            y = gc.sin(y) + gc.exp(gc.cos(y))
        f = gc.compile([x, n], y if straight else loop, native=True)
        given = np.ones(3_000_000 if straight else 1000)
        f(given, 10)
        f(given, 10)
        steps = 10**10 if daemon else 20_000
        thread = threading.Thread(target=lambda: [f(given, steps) for _ in range(3)], daemon=daemon)
        thread.start()
        time.sleep(0.3)
        print("end", flush=True)
        """,
        str(daemon),
        str(straight),
    )
    assert printed == "end\n"


def test_threads_that_compile_first() -> None:
    """No thread frees what all need, such as functions and the entrance, under another one."""
    run(
        """
        import sys, threading
        import numpy as np
        import graphcore as gc

        sys.setswitchinterval(1e-5)
        begin, found, x = threading.Barrier(6), {}, gc.tensor("x", {"row": None})
        programs = [gc.sort(gc.exp(x) * n + gc.tanh(x), "row") for n in range(6)]

        def work(n):
            begin.wait()
            f = gc.compile([x], programs[n], native=True)
            for _ in range(200):
                found[n] = f(np.ones(20))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for n in range(6):
            np.testing.assert_allclose(found[n], n * np.e + np.tanh(1))
        """
    )


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("first", ["numba", "graphcore"])
def test_beside_numba(first: str) -> None:
    """Both use LLVM in one process, whichever is imported and compiles first."""
    printed = run(
        """
        import sys
        import numpy as np

        def ours():
            import graphcore as gc
            x = gc.tensor("x", {"row": None})
            s = gc.scan(lambda s, x: (gc.tanh(s + x), s), 0.0, x, dim="row")[0]
            f = gc.compile([x], [s, gc.grad(s, x), gc.exp(x)], native=True)
            return lambda: float(sum(y.sum() for y in f(np.linspace(0, 1, 17))))

        def theirs():
            import numba
            @numba.njit(fastmath=True)
            def f(x):
                s = 0.0
                for v in x:
                    s += np.exp(v)
                return s
            return lambda: f(np.linspace(0, 1, 17))

        made = [m() for m in ((theirs, ours) if sys.argv[1] == "numba" else (ours, theirs))]
        values = [m() for m in made]
        again = [m() for m in (ours(), theirs())]
        assert sorted(values) == sorted(again) == sorted(m() for m in made)
        print("same")
        """,
        first,
    )
    assert printed == "same\n"


# ---- memory


def resident() -> int:
    """How many bytes the process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.slow
def test_memory_over_calls() -> None:
    f = gc.compile([x], walk(), native=True)
    given = np.linspace(-1, 1, 9)

    def calls(count: int) -> None:
        for _ in range(count):
            f(given)

    calls(100_000)
    before = resident()
    calls(1_000_000)
    assert resident() - before < 2**20


@pytest.mark.slow
def test_memory_over_programs() -> None:
    """Each is another program, compiled, called and dropped."""

    def programs(first: int, count: int) -> None:
        for n in range(first, first + count):
            y = gc.exp(x * (n + 0.5)).sum() + n
            gc.compile([x], [y, gc.grad(y, x)], native=True)(np.zeros(3))

    programs(0, 600)
    memory.collect()
    before = resident()
    programs(600, 600)
    memory.collect()
    assert resident() - before < 3 * 2**20
