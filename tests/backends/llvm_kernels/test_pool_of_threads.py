"""The pool of threads: forks, interrupts, calls within calls, and how many threads there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import entrance
from graphcore.ir.threads import available, initial, number, quota

from .native import needs_machine_code

pytestmark = needs_machine_code


def ran(code: str, **options: Any) -> str:
    """What a process of its own prints, which may not take long."""
    given = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(given, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


FORKS = """
import os, signal, sys, threading, time
import numpy as np
import graphcore as gc
from graphcore.backends.llvm_kernels import threads

x = gc.tensor("x", {"i": None, "j": None})
f = gc.compile([x], [gc.special.softmax(x, dim="j"), gc.exp(x) * x, x.sum()], native=True)
given = np.random.default_rng(0).normal(size=(900, 800))
gc.threads(3)
wanted = f(given)

def right():
    return all(np.array_equal(a, b) for a, b in zip(f(given), wanted))

def ends_well(child):
    for _ in range(3000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return False

def forked():
    child = os.fork()
    if child == 0:
        before = threads.shared()
        os._exit(0 if right() and right() and threads.shared() > before else 1)
    return ends_well(child)
"""


@pytest.mark.slow
def test_a_fork_has_threads_of_its_own() -> None:
    ran(FORKS + "assert forked() and right() and forked() and right()")


@pytest.mark.slow
def test_a_fork_while_another_thread_shares_a_loop() -> None:
    code = """
ends = []
def calls():
    while not ends:
        assert right()
other = threading.Thread(target=calls)
other.start()
import warnings
warnings.simplefilter("ignore")  # Python warns of forks beside threads
ok = all([forked() for _ in range(8)])
ends.append(1)
other.join()
assert ok and right()
"""
    ran(FORKS + code)


@pytest.mark.slow
def test_a_fork_by_a_signal_handler_within_a_shared_loop() -> None:
    """The child goes on with the loop, without the other threads: no step is lost."""
    code = """
children = []
def handler(*_):
    child = os.fork()
    if child == 0:
        children[:] = [0] * 9
    else:
        children.append(child)
        if len(children) < 3:  # not before: Python's own hooks hold no fork within a fork
            signal.setitimer(signal.ITIMER_REAL, 0.05)
x = gc.tensor("x", {"i": None})
y = x
for _ in range(12):
    y = gc.sin(y) + gc.exp(-y * y)
f = gc.compile([x], [y, y.sum()], native=True)
given = np.random.default_rng(0).normal(size=3_000_000)
with gc.threads(1):
    wanted = f(given)
parent = os.getpid()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.02)
while len(children) < 3:
    good = right()
    if os.getpid() != parent:
        os._exit(0 if good else 1)
    assert good
assert all([ends_well(child) for child in children])
"""
    ran(FORKS + code)


@pytest.mark.slow
def test_an_interrupt_ends_a_shared_loop() -> None:
    code = """
x = gc.tensor("x", {"i": None})
y = x
for _ in range(60):
    y = gc.sin(y) + gc.exp(-y * y)
f = gc.compile([x], y, native=True)
given = np.random.default_rng(0).normal(size=8_000_000)
small = f(given[:300_000])
main = threading.main_thread().ident
threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT]).start()
begin = time.perf_counter()
try:
    while True:
        f(given)
except KeyboardInterrupt:
    taken = time.perf_counter() - begin
assert taken < 10, taken
assert np.array_equal(f(given[:300_000]), small)
"""
    ran(FORKS + code)


@pytest.mark.slow
def test_calls_within_a_shared_loop_run_alone() -> None:
    """A signal handler that calls a program, while a loop of another call is shared."""
    code = """
inside = []
def handler(*_):
    inside.append(right())
signal.signal(signal.SIGALRM, handler)
for _ in range(20):
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    assert right()
    while signal.getitimer(signal.ITIMER_REAL)[0]:
        assert right()
assert len(inside) == 20 and all(inside)
"""
    ran(FORKS + code)


@pytest.mark.slow
def test_threads_that_the_system_refuses() -> None:
    """A program runs with half of those that there could be, and has memory for its arrays."""
    code = """
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[0]) * resource.getpagesize()
child = os.fork()
if child == 0:
    resource.setrlimit(resource.RLIMIT_AS, (pages + 100_000_000, hard))
    gc.threads(500)
    try:
        os._exit(0 if f(given) and right() and right() else 1)
    except MemoryError:
        os._exit(2)
assert ends_well(child)
assert right()
"""
    ran(FORKS + code)


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = number().value
    with gc.threads(5):
        assert number().value == 5
        gc.threads(4)
        assert number().value == 4
    assert number().value == before
    for wrong in (0, -1, 10**30):
        with pytest.raises(gc.GraphValueError, match="threads: n="):
            gc.threads(wrong)
    with pytest.raises(gc.GraphTypeError, match="is not an integer"):
        gc.threads(2.0)
    for given, wanted in (("3", 3), ("", available()), (" 12 ", 12)):
        monkeypatch.setenv("GRAPHCORE_THREADS", given)
        assert initial() == wanted
    for given in ("many", "0", "-1", "10000"):
        monkeypatch.setenv("GRAPHCORE_THREADS", given)
        with pytest.raises(gc.GraphValueError, match=f"GRAPHCORE_THREADS is '{given}'"):
            initial()


def test_a_python_without_the_lock_gets_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance.sysconfig, "get_config_var", lambda name: 1)
    reason = entrance.unavailable.__wrapped__()
    assert reason == "the entrance of machine code needs a CPython with a global interpreter lock"


@pytest.mark.parametrize(
    ("files", "own", "wanted"),
    [
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, "0::/a/b", 1.5),
        ({"cpu.max": "max 100000"}, "0::/", float("inf")),
        ({"cpu,cpuacct/c/cpu.cfs_quota_us": "200000",
          "cpu,cpuacct/c/cpu.cfs_period_us": "100000"}, "4:cpu,cpuacct:/c", 2.0),
        ({}, "3:cpuset:/x", float("inf")),
    ],
)  # fmt: skip
def test_the_limit_of_a_cgroup(
    files: dict[str, str], own: str, wanted: float, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "own").write_text(own + "\n")
    assert quota(tmp_path, tmp_path / "own") == wanted
