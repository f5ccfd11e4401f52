"""Where buffers lie in the memory of a call: those never in use at once may share it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from graphcore.ir import Array

LINE = 64
"""Buffers begin at multiples of so many bytes."""
DISTINCT = 500
"""The first so many slots hold one buffer each; from there on, slots of equal size are reused."""
MOST_FITTED = 1000
"""The most buffers that are fitted into each other: each is compared with all others."""


class Need(NamedTuple):
    """A number of bytes, in use at the times whose bits are set."""

    bytes: int
    times: int


def packed(needs: Sequence[Need]) -> tuple[list[int], int]:
    """Where each buffer begins, and how many bytes they take together.

    Buffers are placed one by one, larger ones first, and of equally large ones those that are in
    use for longer: each at the first place where no buffer lies that is in use at the same time.
    More than `MOST_FITTED` lie one after the other, as placing them would take long.
    """
    if len(needs) > MOST_FITTED:
        sizes = [-(-max(need.bytes, 1) // LINE) * LINE for need in needs]
        ends = [*accumulate(sizes)]
        return [0, *ends[:-1]], ends[-1]
    starts = [0] * len(needs)
    placed: list[tuple[int, int, int]] = []  # in order: start, end, times
    end = 0
    order = sorted(range(len(needs)), key=lambda n: (needs[n].bytes, needs[n].times.bit_count()))
    for n in reversed(order):
        size, times = -(-max(needs[n].bytes, 1) // LINE) * LINE, needs[n].times
        start = 0
        for first, last, others in placed:
            if others & times:
                if start + size <= first:
                    break
                start = max(start, last)
        starts[n] = start
        placed.append((start, start + size, times))
        placed.sort()
        end = max(end, start + size)
    return starts, end


def release(memory: Array, growing: list[int]) -> None:
    """Free the memory that a kernel has got from realloc."""
    words = memory[: (max(growing) + 1) * 8].view(np.int64)
    for at in growing:
        libc().free(int(words[at]))


@cache
def libc() -> Any:
    """The C library of the process."""
    found = ctypes.CDLL(None)
    found.free.argtypes = [ctypes.c_void_p]
    return found
