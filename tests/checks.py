"""A mode in which machine code checks each place that it reads or writes.

Every access to a buffer goes by a number, which has to be one of the buffer's own; with guard
zones, no value that is read may come from a zone either. `pytest --native --checked` runs any test
so. Routines that are compiled once in a process are compiled once more for it, with checks.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any
from unittest import mock
from weakref import WeakValueDictionary

from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import (
    dense,
    lu_routines,
    machine,
    matvecs,
    packed,
    removal,
    small_matrices,
    thin,
    transposing,
)
from graphcore.backends.llvm_kernels.addressing import Buffer, Index, Memory
from graphcore.backends.llvm_kernels.builder import PARTS, TRUE, Value, integer
from graphcore.ir.node import Node
from tests.guards import ZONE

sites: list[str] = []
"""What was being written, and how, by the numbers that checks have."""
ROUTINES = dense, lu_routines, matvecs, packed, removal, small_matrices, thin, transposing
"""The modules whose `code` is a routine that accesses buffers."""
KEPT: list[object] = []
"""Checked routines: programs that were made in a block may run after it."""
record = (ctypes.c_int64 * 4)()
"""How often something was wrong, and the last time: the site, the place, and how many there are."""


def definition(name: str, wide: int) -> str:
    """The function that notes it if a place, or that of a lane, is not below a number."""
    lanes = f"<{wide} x i1>" if wide else "i1"
    places = f"<{wide} x i64>" if wide else "i64"
    address = ctypes.addressof(record)
    if wide:
        reduced = f"call i1 @llvm.vector.reduce.or.v{wide}i1({lanes} %wrong)"
        zeros = f"<{wide} x i32> zeroinitializer"
        spread = (
            f"  %one = insertelement {places} poison, i64 %count, i32 0\n"
            f"  %many = shufflevector {places} %one, {places} poison, {zeros}\n"
        )
        found = (
            f"  %bits = bitcast {lanes} %wrong to i{wide}\n"
            f"  %lane = call i{wide} @llvm.cttz.i{wide}(i{wide} %bits, i1 true)\n"
            f"  %place = extractelement {places} %at, i{wide} %lane\n"
        )
    else:
        reduced, spread = "and i1 %wrong, true", "  %many = add i64 %count, 0\n"
        found = "  %place = add i64 %at, 0\n"
    words = "".join(
        f"  store i64 {x}, ptr inttoptr (i64 {address + 8 * n} to ptr)\n"
        for n, x in enumerate(("%times1", "%site", "%place", "%count"))
    )
    return (
        f"define internal i1 {name}({lanes} %mask, {places} %at, i64 %count, i64 %site) #0 {{\n"
        f"{spread}"
        f"  %outside = icmp uge {places} %at, %many\n"
        f"  %wrong = and {lanes} %mask, %outside\n"
        f"  %any = {reduced}\n"
        "  br i1 %any, label %bad, label %end\n"
        "bad:\n"
        f"{found}"
        f"  %times = load i64, ptr inttoptr (i64 {address} to ptr)\n"
        "  %times1 = add i64 %times, 1\n"
        f"{words}"
        "  br label %end\n"
        "end:\n"
        "  ret i1 %any\n"
        "}\n"
    )


def written() -> str:
    """The node that is being written, or is the first to need a routine, and its line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for name in ("node", "root", "step", "roots"):
            found = frame.f_locals.get(name)
            for node in found if isinstance(found, list) else [found]:
                if isinstance(node, Node):
                    return f"{node.op} at {node.origin}"
        frame = frame.f_back
    return "no node"


class Checks:
    """The methods of `Memory` that access buffers, with checks before them."""

    def __init__(self) -> None:
        self.parts = 1
        self.theirs = {name: getattr(Memory, name) for name in ("load", "store", "_fetch", "_put")}

    def whole(self, name: str) -> Any:
        """`load` or `store`: of complex values each part has a place of its own."""

        def access(memory: Memory, buffer: Buffer, *args: Any) -> Any:
            before, self.parts = self.parts, 1 + (buffer.kind in PARTS)
            try:
                return self.theirs[name](memory, buffer, *args)
            finally:
                self.parts = before

        return access

    def fetch(self, memory: Memory, buffer: Buffer, offset: Index, mask: Value) -> Value:
        b, m = memory.b, mask
        if not offset.is_wide and m.wide:
            m = b.any_lane(m)
        at = offset.base if offset.vector is None else offset.vector
        m = b.both(m, memory._runs(max(buffer.level, buffer.pointer.level, at.level, m.level)))
        self.check(memory, buffer, offset, m, "reads", moves=True)
        found: Value = self.theirs["_fetch"](memory, buffer, offset, mask)
        self.check_value(memory, buffer, found, b.widen(m) if found.wide else m)
        return found

    def put(
        self,
        memory: Memory,
        buffer: Buffer,
        offset: Index,
        mask: Value,
        x: Value,
        left: Value | None = None,
    ) -> None:
        m = mask if left is None else memory.stores.first(left)
        m = memory.b.widen(m) if offset.is_wide else TRUE
        self.check(memory, buffer, offset, m, "writes", moves=False)
        self.theirs["_put"](memory, buffer, offset, mask, x, left)

    def check(
        self, memory: Memory, buffer: Buffer, offset: Index, mask: Value, how: str, moves: bool
    ) -> None:
        """A call of `@check`, where the access is; that of a read goes with it out of loops."""
        b, count = memory.b, integer(self.parts)
        for size in buffer.shape:
            count = b.mul(count, size)
        at = memory.spelled(offset)
        mask = b.widen(mask) if at.wide else mask
        self.call(memory, buffer, how, mask, at, count, moves)

    def check_value(self, memory: Memory, buffer: Buffer, x: Value, mask: Value) -> None:
        """A call that notes it if what was read is what guard zones are full of."""
        b, bits = memory.b, {"f64": 64, "i64": 64, "u64": 64, "f32": 32}.get(x.kind, 0)
        if not bits:
            return
        zone = int.from_bytes(bytes([ZONE]) * (bits // 8))
        word = b.convert("bitcast", x, f"i{bits}")
        same = b.op("icmp eq", word, integer(zone, f"i{bits}"))
        m, same = b.alike(mask, same)
        nowhere = b.widen(integer(-1)) if same.wide else integer(-1)
        both = b.emit("i1", same.wide, f"and {m.typed}, {same.text}", m, same)
        self.call(memory, buffer, "reads from behind", both, nowhere, integer(0), True)

    def call(
        self,
        memory: Memory,
        buffer: Buffer,
        how: str,
        mask: Value,
        at: Value,
        count: Value,
        moves: bool,
    ) -> None:
        b = memory.b
        sites.append(f"{written()} {how} a buffer of {buffer.kind}")
        name = f"@check{at.wide}"
        b.declared[name] = definition(name, at.wide)
        if wide := at.wide:
            b.any_lane(mask)
            count_zeros = f"@llvm.cttz.i{wide}"
            b.declared[count_zeros] = f"declare i{wide} {count_zeros}(i{wide}, i1)"
        given: Sequence[Value] = (mask, at, count, integer(len(sites) - 1))
        text = f"call i1 {name}({', '.join(x.typed for x in given)})"
        if moves:
            b.emit("i1", 0, text, *given, least=buffer.level)
        else:
            b.now("i1", text, 0, *given)


def found() -> list[str]:
    """The last access that was wrong since this was asked for last, if any was."""
    times, site, place, count = record
    record[0] = 0
    return [f"{sites[site]}: place {place} of {count}, {times} times"] if times else []


@contextmanager
def checked() -> Iterator[None]:
    """Machine code that is written in this block checks where it reads and writes.

    None is taken from programs outside of it.
    """
    checks = Checks()
    accesses = mock.patch.multiple(
        Memory,
        load=checks.whole("load"),
        store=checks.whole("store"),
        _fetch=lambda *args: checks.fetch(*args),
        _put=lambda *args: checks.put(*args),
    )
    with ExitStack() as changed:
        changed.enter_context(accesses)
        changed.enter_context(mock.patch.object(llvm_kernels, "MADE", WeakValueDictionary()))
        changed.enter_context(mock.patch.object(llvm_kernels, "RECENT", machine.Recent()))
        for each in ROUTINES:
            own = machine.cached(each.code.__wrapped__)
            KEPT.append(own)
            changed.enter_context(mock.patch.object(each, "code", own))
        yield
