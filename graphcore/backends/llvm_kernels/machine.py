"""Text of LLVM IR to machine code: checked, compiled, loaded, and called by its address.

The target is a level of x86-64 with fused multiply-add, v4 (AVX-512) or v3 (AVX2), not the very
CPU: equal programs give equal results on both. No LLVM option of the process is changed, so that
other libraries may use LLVM in the same process.

Kernels are made in two stages: quickly for their first calls, and with care once these have taken
as long as making them with care takes. Both give the same bits.
"""

from __future__ import annotations

import atexit
import os
import platform
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial, wraps
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from graphcore.ir.errors import DefectError, GraphError, GraphMemoryError
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.locks import new_lock

Given = TypeVarTuple("Given")
Made = TypeVar("Made")

ATTRIBUTES = (
    'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }'
)
"""Of each function: a vector of eight float64 is one register where there are such registers."""

LEVELS = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe"),
}
"""The levels of x86-64 that machine code is made for, and the features that a CPU needs."""

OBJECTS = 64
"""How many objects one linker loads: LLVM forgets a linker, but not all about an object."""

QUICKLY, WITH_CARE = 0, 2
"""The efforts of LLVM: quick code takes a fourth of the time to make, and more to run."""
LINE = 35e-6
"""About how many seconds it takes to make code of a line of IR with care."""
PART = 1 / 4
"""Once calls of quick code have taken this part of that time, careful code is made.

A program that is called a few dozen times is mostly called many times more.
"""

UNUSED = 2**23
"""About how many bytes of memory code that is not in use may take."""
MODULE = 2**16
"""About how many bytes code in memory takes besides its IR: the linker needs pages of its own."""

NEEDED, NEEDED_FOR_EACH = 2**25, 2**7
"""At least so many bytes does LLVM need free, and more for each character of IR."""

NONE: Mapping[str, int] = {}
SERIAL = count()
LINKERS: dict[int, Any] = {}
"""The linker in use, by its number."""
LOADED: dict[int, tuple[Any, Any]] = {}
"""The libraries in memory, each with its linker, which has to be there as long."""


@cache
def unavailable() -> str | None:
    """Why no machine code can be made here; None where it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "machine code is made on Linux for x86-64 only"
    try:
        import_module("llvmlite.binding")
    except (ImportError, OSError) as error:
        return f"llvmlite cannot be imported: {error}"
    if not levels():
        return "this CPU has no AVX2 with fused multiply-add (x86-64-v3)"
    return None


@contextmanager
def making() -> Iterator[None]:
    """A block that makes machine code: what goes wrong there is a defect, in words with a cure."""
    try:
        yield
    except GraphError:
        raise
    except Exception as error:
        if is_interrupt(error):
            raise
        first, _, _ = str(error).partition("\n")
        raise DefectError(
            f"call: machine code could not be made: {type(error).__name__}: {first}\n"
            "  cure: compile it with native=False, and please report it with the program"
        ) from error


@cache
def levels() -> tuple[str, ...]:
    """The levels of x86-64 that this CPU has, the best first."""
    import llvmlite.binding as llvm

    has = llvm.get_host_cpu_features()
    v4, v3 = [all(has.get(name) for name in names) for names in LEVELS.values()]
    return tuple([level for level, there in zip(LEVELS, (v4 and v3, v3)) if there])


@cache
def prepare() -> None:
    """Prepare LLVM. A fork waits until it has ended in other threads, which a child does not have.

    So it leaves neither the lock of llvmlite taken nor what LLVM keeps half done.
    """
    import llvmlite.binding as llvm

    lock = llvm.ffi.lib._lock
    leave = partial(lock.__exit__, None, None, None)
    os.register_at_fork(before=lock.__enter__, after_in_parent=leave, after_in_child=leave)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def target(level: str, effort: int = WITH_CARE) -> Any:
    """The target machine for a level of x86-64."""
    import llvmlite.binding as llvm

    prepare()
    here = llvm.Target.from_triple(llvm.get_process_triple())
    return here.create_target_machine(cpu=level, opt=effort)


def linker(number: int) -> Any:
    """The linker that loads the object of that number into this process."""
    import llvmlite.binding as llvm

    turn = number // OBJECTS
    found = LINKERS.get(turn)
    if found is None:
        found = llvm.create_lljit_compiler(target(levels()[0]))
        LINKERS.clear()
        LINKERS[turn] = found
    return found


def to_object(text: str, level: str | None = None, effort: int = WITH_CARE) -> bytes:
    """The object of a module of IR, for the best level this CPU has.

    Raises
    ------
    RuntimeError
        If the text is no correct IR: a defect of graphcore's.
    """
    import llvmlite.binding as llvm

    require_memory(text)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    found: bytes = target(level or levels()[0], effort).emit_object(module)
    return found


def require_memory(text: str) -> None:
    """Refuse to compile where a limit of the process leaves LLVM too little memory for this IR.

    LLVM ends the process where it gets none.
    """
    import resource  # which is there wherever machine code is made

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        if limit - pages * resource.getpagesize() < NEEDED + NEEDED_FOR_EACH * len(text):
            raise GraphMemoryError(
                "compile: the limit of the address space leaves too little for machine code\n"
                "  cure: raise the limit (ulimit -v), or compile with native=False"
            )


class Code:
    """Machine code in memory, as long as this object lives.

    `names` are the functions to be called from outside, `needed` the addresses of those it calls,
    which have to live as long, as have `calls`; functions of the C library are found by themselves.
    """

    def __init__(self, image: bytes, *names: str, needed: Mapping[str, int] = NONE) -> None:
        import llvmlite.binding as llvm

        library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for name in names:
            library.export_symbol(name)
        for name, address in needed.items():
            library.import_symbol(name, address)
        number = next(SERIAL)
        home = linker(number)
        loaded = library.link(home, f"graphcore{number}")
        LOADED[number] = loaded, home
        self.addresses: dict[str, int] = {name: loaded[name] for name in names}
        self.calls: Sequence[Code] = ()
        weakref.finalize(self, unload, number).atexit = False

    def __getitem__(self, name: str) -> int:
        """The address of a function of the module, one of `names`."""
        return self.addresses[name]


def cached(make: Callable[[*Given], Made]) -> Callable[[*Given], Made]:
    """A function whose values are kept, one for the same arguments in all threads.

    Two of machine code would not do: one is dropped, and its memory freed, while others have its
    address.
    """
    kept: dict[tuple[*Given], Made] = {}
    lock = new_lock()

    @wraps(make)
    def found(*given: *Given) -> Made:
        with lock:
            if given not in kept:
                kept[given] = make(*given)
            return kept[given]

    return found


class Stages:
    """The machine code of one module of IR, made quickly first, and with care later.

    `make` makes it with some effort, with care once calls have taken so many `seconds`. Both stay
    in memory as long as this object lives, as do the `calls`: other threads may be running the
    first when the second has been made.
    """

    def __init__(
        self, make: Callable[[int], Code], seconds: float, calls: Sequence[Stages] = ()
    ) -> None:
        self.seconds, self.calls = seconds, calls
        self._make: Callable[[int], Code] | None = make
        self._lock = new_lock()
        self._first: Code | None = None
        self._last: Code | None = None

    @classmethod
    def of(cls, text: str, make: Callable[[int], Code], calls: Sequence[Stages] = ()) -> Stages:
        """The stages of this IR."""
        return cls(make, text.count("\n") * LINE * PART, calls)

    @property
    def is_last(self) -> bool:
        """Whether the code has been made with care."""
        return self._last is not None

    def at_once(self) -> Code:
        """The best code that there is, made quickly if there is none."""
        with self._lock:
            found = self._last or self._first
            if found is None:
                assert self._make is not None
                found = self._first = self._make(QUICKLY)
            return found

    def with_care(self) -> Code:
        """The code made with care."""
        with self._lock:
            if self._last is None:
                assert self._make is not None
                self._last = self._make(WITH_CARE)
                self._make = None  # the text is not needed any more
            return self._last


class Recent:
    """The machine code of IR that was made last, so that equal IR is compiled once.

    It stays when the last program that runs it is dropped. All together takes so many bytes at
    most; the oldest goes first.
    """

    def __init__(self, most: int = UNUSED) -> None:
        self.most, self.bytes = most, 0
        self._made: OrderedDict[str, Stages] = OrderedDict()
        self._lock = new_lock()

    def of(self, text: str, make: Callable[[int], Code]) -> Stages:
        """The stages of some IR, found or new."""
        with self._lock:
            if (found := self._made.get(text)) is not None:
                self._made.move_to_end(text)
                return found
            new = Stages.of(text, make)
            if len(text) + MODULE <= self.most:
                self._made[text] = new
                self.bytes += len(text) + MODULE
            while self.bytes > self.most:
                oldest, _ = self._made.popitem(last=False)
                self.bytes -= len(oldest) + MODULE
            return new


def finished(code: Code) -> Stages:
    """Code that has been made with care, as the stages of a kernel."""
    made = Stages(lambda effort: code, 0.0)
    made.with_care()
    return made


def unload(number: int) -> None:
    """Free the memory of a library; its linker goes after the last one."""
    library, _ = LOADED.pop(number)
    library.close()


@atexit.register
def leave_loaded() -> None:
    """Code that is in memory when Python ends stays there: a thread may be running it."""
    for each in (*LINKERS.values(), *[x for pair in LOADED.values() for x in pair]):
        each.detach()


def compiled(text: str, *names: str, effort: int = WITH_CARE) -> Code:
    """A module of IR as machine code; `names` are the functions to be called from outside."""
    return Code(to_object(text, effort=effort), *names)
