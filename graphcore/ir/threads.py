"""How many threads run a program: the number that machine code reads while it runs."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from math import ceil
from pathlib import Path

from .errors import GraphValueError

NAME = "GRAPHCORE_THREADS"
MOST = 1024
"""The most threads: more are a mistake."""


@cache
def number() -> ctypes.c_int64:
    """The number of threads, in memory, where machine code has its address."""
    return ctypes.c_int64(initial())


def initial() -> int:
    """What the environment says, or how many CPUs there are."""
    given = os.environ.get(NAME, "").strip()
    if not given:
        return available()
    if not given.isdecimal() or not 1 <= int(given) <= MOST:
        raise GraphValueError(
            f"threads: the environment variable {NAME} is {given!r}, not a number of threads\n"
            f"  cure: set it to a number from 1 to {MOST}, or leave it out"
        )
    return int(given)


def available() -> int:
    """The CPUs that this process may use, by its affinity and by the limit of its cgroup."""
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(MOST, ceil(min(cpus, quota()))))


def quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """How many CPUs the cgroup of this process, and those around it, may use; inf without a limit.

    Source: the Linux kernel's cgroup-v2.rst (cpu.max), and sched-bwc.rst for the older files.
    """
    found = float("inf")
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return found
    for _, controllers, path in lines:
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = root / controllers if controllers else root
        here = base / path.lstrip("/")
        for place in [here, *here.parents]:
            found = min(found, limit(place))
            if place == base:
                break
    return found


def limit(group: Path) -> float:
    """How many CPUs one cgroup may use."""
    try:
        if (group / "cpu.max").exists():
            most, period = (group / "cpu.max").read_text().split()
        else:
            files = "cpu.cfs_quota_us", "cpu.cfs_period_us"
            most, period = [(group / name).read_text().strip() for name in files]
        return float("inf") if most in ("max", "-1") else int(most) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return float("inf")
