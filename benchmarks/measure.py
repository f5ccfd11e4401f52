"""Times, memory and how they are written."""

from __future__ import annotations

import math
import os
import platform
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphcore.backends.llvm_kernels import machine

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}
AVX2_ALONE = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "XLA_FLAGS": f"{ONE_THREAD['XLA_FLAGS']} --xla_cpu_max_isa=AVX2",
    "GRAPHCORE_AVX2_ALONE": "yes",
}
"""What holds all libraries to AVX2 on a CPU with AVX-512; ours by `hold_machine_code`."""
LEFT_TO_OPENBLAS = "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"
"""Unset while we measure, so that OpenBLAS chooses its kernels by the CPU, as it does for users."""
STARTED = "GRAPHCORE_BENCHMARKS"
"""Set in the environment of a process that was started anew."""


def environment() -> dict[str, str]:
    """The environment of processes that are measured."""
    return {name: value for name, value in os.environ.items() if name not in LEFT_TO_OPENBLAS}


def start_anew(settings: Mapping[str, str]) -> None:
    """Start this process anew, once, so that its libraries are started with some settings."""
    if STARTED in os.environ:  # what a script has set since is as it wants it
        return
    sys.stdout.flush()
    os.execve(sys.executable, sys.orig_argv, {**environment(), **settings, STARTED: "yes"})


def use_one_thread(settings: Mapping[str, str] = {}) -> None:
    """Start this process anew, once, so that its libraries are started with one thread.

    XLA has no such option: it takes as many threads as it finds CPUs, so that it gets one CPU.
    """
    if STARTED not in os.environ:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    start_anew({**ONE_THREAD, **settings})


def hold_machine_code() -> None:
    """Make machine code for AVX2 in a process that was started with `AVX2_ALONE`."""
    if "GRAPHCORE_AVX2_ALONE" in os.environ:
        machine.LEVELS["x86-64-v4"] = ("left out",)
        machine.levels.cache_clear()


def hardware() -> dict[str, str]:
    """The CPU, its vector extensions, and which of them NumPy, BLAS and our machine code use."""
    said = Path("/proc/cpuinfo")
    lines = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
    known = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    flags = [x for x in known.get("flags", "").split() if x.startswith(("avx", "fma"))]
    found = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": f"{os.cpu_count()} CPUs, {known.get('model name', platform.processor())}",
        "flags": " ".join(flags),
        "numpy uses": " ".join(np.show_config(mode="dicts")["SIMD Extensions"]["found"]),
        "machine code": "none" if machine.unavailable() else machine.levels()[0],
    }
    return found | {f"blas of {library}": kernels for library, kernels in blas().items()}


def blas() -> dict[str, str]:
    """The BLAS that NumPy and SciPy have loaded, each with the CPU whose kernels it runs."""
    import scipy.linalg  # noqa: F401

    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"numpy": f"{built['name']} {built['version']} (threadpoolctl knows its kernels)"}
    return {
        Path(x["filepath"]).parent.name.partition(".")[0]: (
            f"{x['internal_api']} {x['version']}, {x.get('architecture', 'unknown')} kernels"
        )
        for x in threadpool_info()
        if x["user_api"] == "blas"
    }


def settle_allocator() -> None:
    """Free a large block, after which glibc serves blocks up to its size without the system.

    Otherwise what an array costs depends on which arrays were freed before, and jumps by the price
    of fresh pages; whoever allocates most, NumPy by hand, gains most from this.
    """
    bytearray(31 << 20)


class Call(NamedTuple):
    """A function and the arguments it is timed with."""

    function: Callable[..., Any]
    arguments: Sequence[Any]

    def timer(self, clock: Callable[[], float] = time.perf_counter) -> timeit.Timer:
        """A timer of one call; it keeps the garbage collector out of the samples."""
        scope = {"f": self.function, "a": tuple(self.arguments)}
        return timeit.Timer("f(*a)", timer=clock, globals=scope)


def interleaved(
    calls: Mapping[str, Call],
    rounds: int,
    least: float = 0.005,
    clock: Callable[[], float] = time.perf_counter,
    before: float = 0.0,
) -> dict[str, list[float]]:
    """Seconds of one call, sampled in turn A B C A B C ...; a sample takes at least `least`.

    With `time.process_time` as `clock`, other processes do not count. Each function is called for
    `before` seconds first, so that compilers that make better code after some calls have made it.

    Each sample follows a call that is not counted: whoever comes after the library that fills the
    caches with its own copies would pay for it otherwise.
    """
    timers = {name: call.timer(clock) for name, call in calls.items()}
    for timer in timers.values():
        timer.timeit(repeats_for(timer, before))
    repeats = {name: repeats_for(timer, least) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            timer.timeit(1)
            samples[name].append(timer.timeit(repeats[name]) / repeats[name])
    return samples


def repeats_for(timer: timeit.Timer, least: float) -> int:
    """How many calls take `least` seconds."""
    timer.timeit(1)
    repeats = 1
    while (spent := timer.timeit(repeats)) < least:
        repeats = max(repeats * 2, math.ceil(repeats * 1.2 * least / max(spent, 1e-9)))
    return repeats


class Spread(NamedTuple):
    """The median of a sample and the quartiles about it."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of some values."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        return cls(*statistics.quantiles(values, n=4, method="inclusive"))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}..{self.high:.2f})"


def ratios(over: Sequence[float], under: Sequence[float]) -> Spread:
    """over / under, pair by pair as they were sampled."""
    return Spread.of([a / b for a, b in zip(over, under, strict=True)])


def summary(
    samples: Mapping[str, Sequence[float]], ours: str = "graphcore"
) -> tuple[dict[str, float], dict[str, Spread]]:
    """The median of each, and the times of all others over ours."""
    medians = {who: Spread.of(times).median for who, times in samples.items()}
    return medians, {who: ratios(samples[who], samples[ours]) for who in samples if who != ours}


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    unit, factor = ("s", 1) if value >= 1 else ("ms", 1e3) if value >= 1e-3 else ("us", 1e6)
    shown = value * factor
    return f"{shown:.3g} {unit}" if shown < 1000 else f"{shown:.0f} {unit}"


def resident() -> int:
    """Bytes of memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_resident() -> int:
    """The most bytes of memory this process has held, or since `forget_peak`.

    Not what getrusage says: a process started by another inherits its peak.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_peak() -> None:
    """Let `peak_resident` begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
