"""Large results lie in memory that is used again once nobody refers to it."""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import result_memory

pytestmark = pytest.mark.skipif(result_memory.MOST_KEPT == 0, reason="the system keeps all memory")
X = np.arange(1024.0)
BYTES = X.nbytes


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of 8 kB are large; eight of them are kept, four of these warm."""
    monkeypatch.setattr(result_memory, "LARGE", BYTES)
    monkeypatch.setattr(result_memory, "MOST_KEPT", 8 * BYTES)
    monkeypatch.setattr(result_memory, "MOST_WARM", 4 * BYTES)
    monkeypatch.setattr(result_memory, "WARM", [])
    monkeypatch.setattr(result_memory, "COLD", [])


@pytest.fixture(params=[True, False], ids=["native", "numpy"])
def f(request: pytest.FixtureRequest) -> Callable[..., Any]:
    x = gc.tensor("x", {"row": None})
    return gc.compile([x], [2 * x + 1, x.sum(), gc.exp(-x)], native=request.param)


def address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


def test_memory_is_used_again_once_no_view_is_left(f: Callable[..., Any]) -> None:
    twice, total, powers = f(X)
    assert total.base is None  # it is small
    assert all(
        x.flags.c_contiguous and x.flags.writeable and x.dtype is X.dtype for x in (twice, powers)
    )
    where = {address(twice), address(powers)}
    view, other, powers = twice[::2].view(np.int64), memoryview(twice.reshape(-1, 2)), None
    del twice
    kept = view.tobytes()
    again = f(X)
    assert len(where & {address(again[0]), address(again[2])}) == 1
    assert view.tobytes() == kept
    assert other[0, 1] == 3.0
    again = view = other = None
    assert len(result_memory.WARM) == 3
    last = f(X)
    assert len(result_memory.WARM) == 1
    np.testing.assert_array_equal(last[0], 2 * X + 1)


def test_other_sizes_and_dtypes_share_memory() -> None:
    first = result_memory.empty((1024,), np.dtype(np.float64))
    where = address(first)
    del first
    assert address(result_memory.empty((1025, 2), np.dtype(np.float32))) != where  # one page more
    assert address(result_memory.empty((2, 512), np.dtype(np.complex64))) == where
    assert result_memory.empty((1,), np.dtype(np.float64)).base is None
    with pytest.raises((MemoryError, ValueError)):
        result_memory.empty((2**62,), np.dtype(np.float64))


def test_what_is_kept_is_bounded_and_the_last_used_first(f: Callable[..., Any]) -> None:
    held = [result_memory.empty((1024,), X.dtype) for _ in range(20)]
    order = [address(x) for x in held]
    while held:
        held.pop(0)
        warm, cold = result_memory.WARM, result_memory.COLD
        assert len(warm) <= 4
        assert len(warm) + len(cold) <= 8
    assert [block.address for block in (*cold, *warm)] == order[-8:]
    assert address(f(X)[0]) in order[-2:]
    large = result_memory.empty((9 * 1024,), X.dtype)
    assert large.base is None  # it would never be kept


def test_failed_calls_give_their_memory_back() -> None:
    x, at = gc.tensor("x", {"row": None}), gc.tensor("at", {"row": None}, dtype="int64")
    for native in (True, False):
        f = gc.compile([x, at], [x * 2, x.isel(row=at)], native=native)
        wrong = np.full(len(X), len(X))
        for _ in range(2):
            with pytest.raises(gc.GraphError):
                f(X, wrong)
        np.testing.assert_array_equal(f(X, wrong - 1)[1], np.full(len(X), X[-1]))


def test_an_interrupt_is_no_lack_of_memory(
    f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, wanted in (
        (KeyboardInterrupt, KeyboardInterrupt),
        (MemoryError, gc.GraphError),
        (ValueError, gc.GraphError),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(result_memory, "idle_block", Mock(side_effect=error))
            with pytest.raises(wanted):
                f(X)
    np.testing.assert_array_equal(f(X)[0], 2 * X + 1)
    result_memory.Owner.__new__(result_memory.Owner)  # interrupted before it had a block


def test_pickles_copies_and_resizing(f: Callable[..., Any]) -> None:
    (y, *_) = f(X)
    for other in (pickle.loads(pickle.dumps(y, 5)), y.copy(), np.resize(y, 2000)[: len(y)]):
        assert not np.shares_memory(y, other)
        np.testing.assert_array_equal(other, y)
    with pytest.raises(ValueError, match="does not own its data"):
        y.resize(3)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_threads_and_forks_have_memory_of_their_own(f: Callable[..., Any]) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        kept: list[Any] = []
        for k in range(100):
            kept = [*kept[-3:], (k + number, f(X + k + number)[0])]
            if not all((y == 2 * (X + n) + 1).all() for n, y in kept):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    mine = f(X)[0]
    if (child := os.fork()) == 0:
        signal.alarm(20)
        work(7)
        os._exit(len(wrong))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for thread in threads:
        thread.join(20)
    assert wrong == []
    np.testing.assert_array_equal(mine, 2 * X + 1)


def test_idle_memory_goes_before_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [result_memory.empty((1024,), X.dtype) for _ in range(3)]
    del kept
    made: list[int] = []

    def no_memory_while_some_is_idle(*args: Any, **options: Any) -> mmap.mmap:
        if result_memory.WARM:
            raise OSError("no memory")
        made.append(1)
        return new(*args, **options)

    new = mmap.mmap
    monkeypatch.setattr(mmap, "mmap", no_memory_while_some_is_idle)
    assert result_memory.empty((4096,), X.dtype).nbytes == 4 * BYTES
    assert made == [1]


@pytest.mark.parametrize(("given", "most"), [("0", 0), ("5000000", 5_000_000), ("", 2**30)])
def test_the_environment_says_how_much_is_kept(
    given: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHCORE_REUSED_MEMORY", given)
    assert result_memory.most_kept() == most


LIMIT = """
import resource
from pathlib import Path
import numpy as np
import graphcore as gc

x = gc.tensor("x", {"row": None})
f = gc.compile([x], 2 * x, native=True)
f(np.ones(10))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
for megabytes in (60, 70, 80, 90, 100, 110, 120, 60):
    assert f(np.ones(megabytes << 17))[-1] == 2
print("served")
"""


@pytest.mark.slow
def test_idle_memory_is_no_reason_to_refuse_a_call() -> None:
    done = subprocess.run([sys.executable, "-c", LIMIT], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("served\n", "")


@pytest.mark.slow
def test_results_that_are_there_when_python_ends() -> None:
    code = """
import numpy as np
import graphcore as gc

x = gc.tensor("x", {"i": None})
f = gc.compile([x], 2 * x, native=True)
kept = [f(np.ones(10**6))]
kept.append(kept)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
