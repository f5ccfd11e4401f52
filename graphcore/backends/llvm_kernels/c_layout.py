"""Where the parts of a workspace of a C function lie."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import accumulate

import numpy as np

from graphcore.ir import Array, Size
from graphcore.ir.sizes import evaluate

from .arena import LINE, Need, packed
from .entrance import HEAD, TANK, Address, Constant, Growing, Kernel, Routine, Same, Scratch, Slot


class Layout:
    """Where the parts of a workspace lie, in words, and where its buffers begin, in bytes.

    Where sizes vary, buffers lie one behind the other, but for those of one size that are never in
    use at once. `alike` has the times at which the memory of each size is in use.
    """

    def __init__(self, kernel: Kernel, known: Mapping[str, int]) -> None:
        self.args = len(kernel.params) + len(kernel.results)
        self.sizes = HEAD + kernel.record
        self.numbers = self.sizes + len(kernel.unknowns)
        self.bytes = self.numbers + self.args
        self.table = self.bytes + self.args
        first = self.table + self.args
        self.end = first + len(kernel.slots)
        self.head = -(-8 * self.end // LINE) * LINE
        self.alike: dict[Size, list[int]] = {}
        self.growing: list[int] = []
        self.template = np.zeros(self.end, np.int64)
        self.template[HEAD - 3 : HEAD - 1] = TANK, sys.maxsize  # loops never look for signals
        self.varies = any(name not in known for name in kernel.unknowns)
        place: dict[int, tuple[Size, int]] = {}
        for at, slot in enumerate(kernel.slots):
            if isinstance(slot, Same) and slot.at in place:
                place[at] = place[slot.at]
            elif isinstance(slot, Scratch):
                place[at] = slot.bytes, self.chunk(slot)
            elif isinstance(slot, Growing):
                self.growing.append(first + at)
            else:
                self.template[first + at] = value_of(slot, self.template[first:])
        counts = [len(times) for times in self.alike.values()]
        begin = dict(zip(self.alike, accumulate(counts, initial=0), strict=False))
        self.chunks = sum(counts)
        self.moved = [(first + at, begin[size] + n) for at, (size, n) in place.items()]
        self.starts, self.total = self.fixed(known)

    def chunk(self, buffer: Scratch) -> int:
        """The number of the memory of a buffer among all of its size."""
        alike = self.alike.setdefault(buffer.bytes, [])
        for n, times in enumerate(alike) if self.varies else ():
            if not times & buffer.times:
                alike[n] |= buffer.times
                return n
        alike.append(buffer.times)
        return len(alike) - 1

    def fixed(self, known: Mapping[str, int]) -> tuple[list[int], int]:
        """Where the chunks begin, and where the last one ends; nothing where sizes vary."""
        if self.varies:
            return [], 0
        pairs = [(evaluate(bytes, known), alike) for bytes, alike in self.alike.items()]
        starts, bytes = packed([Need(bytes, times) for bytes, alike in pairs for times in alike])
        return [self.head + start for start in starts], self.head + bytes + LINE

    def number(self, at: int) -> int:
        """Where the value of an input or result lies that is none of the caller's arrays."""
        return 8 * (self.numbers + at)


def value_of(slot: Slot, before: Array) -> int:
    """What the table has in a slot that is no memory."""
    if isinstance(slot, Constant):
        return int(slot.array.ctypes.data)
    if isinstance(slot, Address):
        return slot.value
    if isinstance(slot, Routine):
        return slot.make()
    return int(before[slot.at]) if isinstance(slot, Same) else 0
