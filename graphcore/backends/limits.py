"""What this machine can do at most: products of matrices and copies, as NumPy does them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from time import perf_counter

import numpy as np

from graphcore.inspection.profile import Machine

PATIENCE = 10e-3
"""How many seconds one kind of call is measured."""
SIDES = 64, 128, 256, 512
"""The sides of the matrices that are multiplied: small ones run on one core, as others are busy."""
COPIES = tuple([2**n for n in range(15, 27)])
"""The numbers of bytes of the copies that are measured, those that are read and those written."""


@cache
def limits() -> Machine:
    """What this machine can do at most, measured once in a process."""
    flops, copies = [], []
    for side in SIDES:
        a, out = np.ones((side, side)), np.empty((side, side))
        flops.append(2 * side**3 / fastest(partial(np.dot, a, a, out)))
    for bytes in COPIES:
        x, y = np.ones(bytes // 16), np.ones(bytes // 16)
        copies.append((bytes, bytes / fastest(partial(np.copyto, y, x))))
    return Machine(max(flops), tuple(copies))


def fastest(call: Callable[[], object]) -> float:
    """The seconds of the fastest of several calls, after a first one."""
    call()
    best, begin = time_of_call(call), perf_counter()
    while perf_counter() - begin < PATIENCE:
        best = min(best, time_of_call(call))
    return best


def time_of_call(call: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    begin = perf_counter()
    call()
    return perf_counter() - begin
