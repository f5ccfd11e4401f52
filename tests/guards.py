"""A mode in which guard zones lie around all memory that machine code reads and writes.

Arguments, results and workspaces are arrays, whose memory NumPy gets from here; records that grow
get theirs from here too; the buffers of a workspace are moved apart. New memory is full of rubbish.
Every zone is looked at when its memory is freed, those of buffers after each test as well.
"""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import arena, c_entry, elementary, entrance, machine
from graphcore.ir.sizes import evaluate

GUARD = 256
"""How many bytes before and behind each block, and behind each buffer, nothing may write."""
ZONE = 0x5A
"""What they are full of."""
RUBBISH = (0x7F, 0xFF)
"""What new memory is full of: huge numbers, or nan and -1."""
SET_HANDLER = 304
"""The place of PyDataMem_SetHandler in NumPy's table of functions for C."""
EXPORTS = (
    *("guarded_malloc", "guarded_calloc", "guarded_realloc", "guarded_free"),
    *("growing", "free_grown", "check", "fill", "damaged", "where"),
)


@cache
def code() -> machine.Code:
    """The functions of guards.ll."""
    text = Path(__file__).with_name("guards.ll").read_text()
    for name, value in (("GUARD", GUARD), ("TWICE", 2 * GUARD), ("ZONE", ZONE)):
        text = re.sub(rf"\b{name}\b", str(value), text)
    return machine.compiled(text, *EXPORTS)


class Handler(ctypes.Structure):
    """PyDataMem_Handler of NumPy."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *[(name, ctypes.c_void_p) for name in ("malloc", "calloc", "realloc", "free")],
    )


@cache
def capsule() -> Any:
    """The guarded functions, as NumPy takes them."""
    functions = [code()[f"guarded_{name}"] for name in ("malloc", "calloc", "realloc", "free")]
    kept.append(Handler(b"guarded", 1, None, *functions))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(kept[-1]), b"mem_handler", None)


kept: list[Handler] = []


def word(name: str, at: int = 0) -> ctypes.c_int64:
    """A number of guards.ll."""
    return ctypes.c_int64.from_address(code()[name] + 8 * at)


# ---- buffers


class Buffers:
    """The zones behind the buffers of a workspace: where each begins, and what for."""

    def __init__(
        self, program: entrance.CallableKernel, words: np.ndarray, known: dict[str, int]
    ) -> None:
        slots, self.program = program.kernel.slots, weakref.ref(program)
        table = program.places.end - len(slots)
        self.ends = {
            int(words[table + n]) + evaluate(slot.bytes, known) - GUARD: f"slot {n}, {slot.bytes}"
            for n, slot in enumerate(slots)
            if isinstance(slot, entrance.Scratch)
        }
        for end in self.ends:
            ctypes.memset(end, ZONE, GUARD)

    def check(self) -> None:
        for end, buffer in self.ends.items():
            if ctypes.string_at(end, GUARD) != bytes([ZONE]) * GUARD:
                ctypes.memset(end, ZONE, GUARD)
                overrun.append(f"something was written behind a buffer ({buffer} bytes)")


overrun: list[str] = []
"""What was found."""
alive: dict[int, tuple[np.ndarray, Buffers]] = {}
"""The memory of each workspace, which is freed after its zones have been looked at."""


def leave(number: int) -> None:
    if number in alive:  # else a block in a block has looked already
        _, buffers = alive.pop(number)
        buffers.check()


def watched(made: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Workspaces whose zones are looked at in the end."""

    def workspace(
        self: entrance.CallableKernel, shape: list[int], sizes: tuple[int, ...]
    ) -> np.ndarray:
        words = made(self, shape, sizes)
        memory = words if words.base is None else words.base
        alive[id(words)] = memory, Buffers(self, words, self.known(sizes))
        weakref.finalize(words, leave, id(words)).atexit = False
        return words

    return workspace


def apart(made: Callable[..., None]) -> Callable[..., None]:
    """Programs whose buffers have zones behind them."""

    def start(
        self: entrance.CallableKernel, kernel: entrance.Kernel, bind: Any, report: Any
    ) -> None:
        slots = tuple(map(with_guard, kernel.slots))
        made(self, kernel._replace(slots=slots), bind, report)

    return start


def with_guard(slot: entrance.Slot) -> entrance.Slot:
    """A buffer with bytes behind it that nothing should write."""
    return entrance.Scratch(slot.bytes + GUARD) if isinstance(slot, entrance.Scratch) else slot


class Code(machine.Code):
    """Machine code whose records grow in guarded memory."""

    def __init__(self, image: bytes, *names: str, needed: Any = machine.NONE) -> None:
        ours = {"realloc": code()["growing"], "free_grown": code()["free_grown"]}
        super().__init__(image, *names, needed={**needed, **ours})


@contextmanager
def guarded() -> Iterator[None]:
    """What is compiled and called in this block has guard zones around its memory."""
    program = entrance.CallableKernel
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    freed = free(code()["guarded_free"])
    library = SimpleNamespace(free=lambda address: freed(None, address, 0))
    with (
        mock.patch.object(program, "workspace", watched(program.workspace)),
        mock.patch.object(program, "__init__", apart(program.__init__)),
        mock.patch.object(elementary, "Code", Code),
        mock.patch.object(llvm_kernels, "RECENT", machine.Recent()),
        mock.patch.object(arena, "libc", return_value=library),
        mock.patch.object(c_entry, "routines", machine.cached(c_entry.routines.__wrapped__)),
        rubbish(RUBBISH[0]),
    ):
        yield


@contextmanager
def rubbish(byte: int) -> Iterator[None]:
    """New arrays lie between zones and are full of a byte."""
    setter = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
    set_handler = setter(entrance.numpy_api()[SET_HANDLER])
    ctypes.c_uint8.from_address(code()["fill"]).value = byte
    before = set_handler(capsule())
    try:
        yield
    finally:
        set_handler(before)


def found() -> list[str]:
    """What was written where nothing should, since this was asked for last."""
    for _, buffers in list(alive.values()):
        buffers.check()
    if word("damaged").value:
        size, at = word("where").value, word("where", 1).value
        overrun.append(f"something was written at byte {at} of an array of {size} bytes")
        word("damaged").value = 0
    wrong, overrun[:] = overrun[:], []
    return wrong
