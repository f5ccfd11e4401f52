"""Memory of large results, which holds other results once no array refers to it.

Memory that is new to a process comes page by page, each of them cleared first: for the results of
cheap programs that takes longer than to compute them. Blocks of memory that are idle are kept for
the next results, up to `MOST_KEPT` bytes, the last used first. All but the latest `MOST_WARM` bytes
are cold: the system takes their pages where it needs some.

An array in a block has an `Owner` as its base, as have all views of it, however they are made. The
lists of idle blocks are changed by single operations alone, which no other thread, signal handler
or finaliser interrupts: who has taken a block out has it alone. So there is no lock that a
finaliser could wait for, or that a process could hold while it forks.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any, TypeVar

import numpy as np

from graphcore.ir import Array

T = TypeVar("T")

LARGE = 2**22
"""Results of so many bytes have blocks; memory of smaller ones is mostly kept by the C library."""
MOST_WARM = 2**26
"""The most bytes of idle blocks whose pages stay: to mark some as free takes up to 40 µs."""
MOST_BLOCKS = 64
"""The most idle blocks: one that fits is looked for among them all."""


def most_kept() -> int:
    """The most bytes of idle blocks, which a user may give; none where pages cannot be cold."""
    given = os.environ.get("GRAPHCORE_REUSED_MEMORY", "")
    if not hasattr(mmap, "MADV_FREE"):
        return 0
    return int(given) if given.isdecimal() else 2**30


MOST_KEPT = most_kept()


class Block:
    """Memory from the system, for one array and its views at a time."""

    __slots__ = ("address", "pages", "size")

    def __init__(self, bytes: int) -> None:
        self.size = -(-bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            self.pages = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(f"no memory for a result of {bytes} bytes") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # of a system without large pages
                self.pages.madvise(mmap.MADV_HUGEPAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))


class Owner:
    """What the arrays in a block refer to: once it has gone, none do."""

    __slots__ = ("__array_interface__", "block")

    def __init__(self, block: Block, bytes: int) -> None:
        self.block = block
        place = {"version": 3, "typestr": "|u1", "shape": (bytes,), "data": (block.address, False)}
        self.__array_interface__ = place

    def __del__(self) -> None:
        whole = hasattr(self, "block")  # no signal handler has raised meanwhile
        if whole and not sys.is_finalizing():  # Python ends, and its modules have gone
            set_aside(self.block)


WARM: list[Block] = []
COLD: list[Block] = []
"""Idle blocks, the last used at the end; cold ones were used before all warm ones."""


def is_large(bytes: int) -> bool:
    """Whether a result of so many bytes lies in a block."""
    return LARGE <= bytes <= MOST_KEPT


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """A new array, in a block if it is large.

    MemoryError if there is no memory for it, ValueError if there never could be.
    """
    bytes = prod(shape) * dtype.itemsize
    if not is_large(bytes):
        return np.empty(shape, dtype)
    block = idle_block(bytes) or with_all_memory(lambda: Block(bytes))
    return np.ndarray(shape, dtype, np.asarray(Owner(block, bytes)))


def idle_block(bytes: int) -> Block | None:
    """An idle block of so many bytes, and an eighth more at most, which is idle no longer."""
    for blocks in (WARM, COLD):
        for block in reversed(blocks.copy()):
            if bytes <= block.size <= bytes + bytes // 8:
                with suppress(ValueError):  # another thread has taken it
                    blocks.remove(block)
                    return block
    return None


def set_aside(block: Block) -> None:
    """Keep a block for later results; those that were used longest ago become cold, or go."""
    WARM.append(block)
    with suppress(IndexError):  # another thread has taken the last one
        while size_of(WARM) > MOST_WARM:
            older = WARM.pop(0)
            older.pages.madvise(mmap.MADV_FREE)
            COLD.append(older)
        most = most_within_limit()
        while size_of(WARM) + size_of(COLD) > most or len(WARM) + len(COLD) > MOST_BLOCKS:
            (COLD or WARM).pop(0)


def most_within_limit() -> int:
    """The most bytes of idle blocks; of a limit of the address space they take a sixteenth."""
    import resource  # which is there wherever pages can be cold

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return MOST_KEPT if limit == resource.RLIM_INFINITY else min(MOST_KEPT, limit // 16)


def size_of(blocks: list[Block]) -> int:
    """The bytes of some blocks."""
    return sum([block.size for block in blocks.copy()])


def with_all_memory(make: Callable[[], T]) -> T:
    """What `make` makes; if there is no memory for it, without any idle blocks."""
    try:
        return make()
    except MemoryError:
        WARM.clear()
        COLD.clear()
        return make()
