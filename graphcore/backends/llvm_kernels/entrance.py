"""The entrance of a program of machine code: a C function that Python calls, at little cost.

Arguments that are what the program takes, row-major arrays of the declared dtype with the sizes of
a call before, are passed on without any Python code. All others are bound, converted or refused by
`prepare`, as the NumPy backend does it. Each call in flight has a workspace of its own: calls are
reentrant, and safe under threads. entrance.ll describes workspaces.
"""

from __future__ import annotations

import ctypes
import re
import sys
import sysconfig
import time
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module, resources
from itertools import chain, islice
from math import prod
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from graphcore.backends import printing, result_memory
from graphcore.backends.boundary import Bind
from graphcore.ir import Array
from graphcore.ir.errors import GraphMemoryError
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.sizes import Size, evaluate
from graphcore.ir.types import TensorType, show_dtype

from . import capsules, machine
from .arena import LINE, Need, packed, release

Report: TypeAlias = "Callable[[list[int], dict[str, int]], Exception]"
"""From the record of a failure, and the unknown sizes, to the error."""

IDLE_KEPT = 4
"""How many idle workspaces are kept: memory for calls of other sizes, or at the same time."""
LONG_CALL = 20e-6
"""Calls that take this many seconds or more release the GIL."""
HUGE_NEST = 2**18
"""Nests of this many elements or more look for signals: they may take 10 ms, or many times that."""
PERIOD = 0.03
"""How many seconds pass between two looks for signals."""
FULL = -1
"""The first word of the record if there is no memory for the results."""
STOPPED = 2
"""The value that a kernel returns after a signal handler has raised."""
LARGE = 2
"""The word of a workspace that says whether some of its results are large."""
PRINTED = 5
"""The word of a workspace that says where its prints are, before the number of bytes that wait."""
PRINTS = 2**16
"""How many bytes of prints wait until they are shown."""
HEAD = 10
"""The words of a workspace before the record."""
FUEL = -3
"""The place, before the record, of the work that is left until a loop calls `poll`."""
TANK = 2**16
"""The work between two calls of `poll`, in computed values: about 50 µs."""
LEFT = 7
"""The word of a program that says how long calls may still take until better code is made."""
FITTING = 0x101
"""NumPy's flags of a row-major and aligned array."""


class Scratch(NamedTuple):
    """A slot of the table: memory of so many bytes, in use at the times whose bits are set."""

    bytes: Size
    times: int = -1


class Constant(NamedTuple):
    """A slot of the table: the values of an array."""

    array: Array


class Address(NamedTuple):
    """A slot of the table: where a routine is."""

    value: int


class Routine(NamedTuple):
    """A slot of the table: where a routine is that is made for sizes above `most`, else null."""

    make: Callable[[], int]
    size: Size
    most: int


class Growing(NamedTuple):
    """A slot of the table, null at first, for memory that the kernel gets from realloc."""


class Cell(NamedTuple):
    """A slot of the table with a number that the kernel keeps from call to call, 0 at first."""


class Meter(NamedTuple):
    """A slot of the table with the time that a step has taken, which `of` describes; 0 at first.

    The slot behind it has how often the step has run.
    """

    of: Any


class Print(NamedTuple):
    """A slot of the table: its own number, by which the kernel says which values it prints.

    So many slots with the sizes of the axes stand behind it.
    """

    label: str
    dims: tuple[str, ...]
    dtype: np.dtype[Any]


class Same(NamedTuple):
    """A slot of the table that holds the same as the one which is `at` places behind the first.

    So two kernels that a kernel calls share their buffers.
    """

    at: int


Slot: TypeAlias = Scratch | Constant | Address | Routine | Growing | Cell | Meter | Print | Same


class Kernel(NamedTuple):
    """Machine code, `i64 kernel(ptr table, ptr sizes, ptr record)`, and the types of its arguments.

    The table holds the data of the params, of the results, and then `slots`. Where some node has
    HUGE_NEST `counts` of places the `patient` kernel is called, whose nests look for signals. It
    returns 0, 1 after it has written a failure into the record, or STOPPED after `poll` has
    returned that.
    """

    code: machine.Stages
    params: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    unknowns: tuple[str, ...]
    slots: tuple[Slot, ...]
    record: int
    counts: tuple[Size, ...] = ()
    patient: Callable[[], machine.Stages] | None = None


class Places(NamedTuple):
    """Where the parts of a workspace begin, in words."""

    shapes: int
    unknowns: int
    numbers: int
    table: int
    end: int


class CallableKernel:
    """A kernel, its workspaces, and the steps of a call that run in Python."""

    def __init__(self, kernel: Kernel, bind: Bind, report: Report) -> None:
        self.kernel, self.bind, self.report = kernel, bind, report
        self.idle: list[Array] = []
        self.spaces: WeakValueDictionary[int, Array] = WeakValueDictionary()
        self.quick: dict[int, machine.Stages] = {}
        self.prints = any(isinstance(slot, Print) for slot in kernel.slots)
        types = (*kernel.params, *kernel.results)
        self.dtypes = [np.dtype(type.dtype) for type in types]
        axes = sum(type.ndim for type in types)
        shapes = HEAD + kernel.record
        numbers = shapes + axes + len(kernel.unknowns)
        table = numbers + len(kernel.params)
        end = table + len(types) + len(kernel.slots)
        self.places = Places(shapes, shapes + axes, numbers, table, end)
        self.words = np.array(
            [
                len(kernel.params),
                len(kernel.results),
                sum(type.ndim for type in kernel.params),
                *(*self.places[:-1], sys.maxsize),
                *chain(*[(id(d), t.ndim) for d, t in zip(self.dtypes, types, strict=True)]),
            ],
            np.int64,
        )

    def entrance(self) -> Callable[..., list[Array]]:
        """The program as a function of arrays that Python can call."""
        made: Callable[..., list[Array]] = self.function("enter")
        return made

    def function(self, name: str) -> Any:
        """The program behind a function of the entrance's machine code."""
        state = self.words, self.idle, self.prepare, self.failed, self.show, self.new_results
        return new_function()(definition(name).ctypes.data, state, None, None)

    def prepare(self, *args: Any) -> tuple[Array, ...]:
        """A workspace for a call with these arguments, and the arrays that it takes for them."""
        self.improve()
        arrays, sizes = self.bind(args)
        try:
            shape = [size for x in arrays for size in x.shape]
            words = self.idle_for(self.places.shapes, shape)
            if words is None:  # before operands are copied: it may not fit into memory
                words = self.workspace(shape, sizes)
            fitting = [fit(x, dtype) for x, dtype in zip(arrays, self.dtypes, strict=False)]
        except (MemoryError, ValueError) as error:
            if is_interrupt(error) or isinstance(error, GraphMemoryError):  # of making code
                raise
            raise self.report([FULL], self.known(sizes)) from error
        return words, *fitting

    def idle_for(self, start: int, sizes: list[int]) -> Array | None:
        """An idle workspace with these sizes from a word on; the oldest others are dropped."""
        for _ in range(len(self.idle)):
            try:
                words = self.idle.pop(0)
            except IndexError:  # other threads are quicker
                break
            if words[start : start + len(sizes)].tolist() == sizes:
                return words
            self.idle.append(words)
        del self.idle[: -IDLE_KEPT + 1]
        return None

    def workspace(self, shape: list[int], sizes: tuple[int, ...]) -> Array:
        """A new workspace for params of these sizes."""
        kernel, places = self.kernel, self.places
        known = self.known(sizes)
        shapes = [[evaluate(size, known) for size in type.shape] for type in kernel.results]
        pairs = zip(shapes, self.dtypes[len(kernel.params) :], strict=True)
        bytes_of = [np.empty(*pair).nbytes for pair in pairs]  # raises where there is no memory
        table = places.end - len(kernel.slots)
        values, buffers, growing = [], [], []
        for at, slot in enumerate(kernel.slots, table):
            value = 0
            match slot:
                case Scratch():
                    buffers.append(at)
                case Constant(array):
                    value = array.ctypes.data
                case Address(value):
                    pass
                case Routine(make, size, most):
                    value = make() if evaluate(size, known) > most else 0
                case Growing():
                    growing.append(at)
                case Print():
                    value = at
            values.append(value)
        slots = [kernel.slots[at - table] for at in buffers]
        needs = [Need(evaluate(x.bytes, known), x.times) for x in slots if isinstance(x, Scratch)]
        starts, bytes = packed(needs)
        head = -(-places.end * 8 // LINE) * LINE
        prints = PRINTS if self.prints else 0
        space = head + bytes + prints + LINE
        memory = result_memory.with_all_memory(lambda: np.empty(space, np.uint8))
        start = -memory.ctypes.data % LINE
        words = memory[start : start + places.end * 8].view(np.int64)
        words[:HEAD] = 0
        words[:2] = self.code_for(known), sys.maxsize
        words[LARGE] = any(map(result_memory.is_large, bytes_of))
        words[PRINTED] = words.ctypes.data + head + bytes
        words[places.shapes : places.numbers] = [*shape, *chain(*shapes), *sizes]
        words[table:] = values
        words[buffers] = [words.ctypes.data + head + start for start in starts]
        for at, slot in enumerate(kernel.slots, table):
            if isinstance(slot, Same):
                words[at] = words[table + slot.at]
        if growing:
            weakref.finalize(words, release, memory[start:], growing).atexit = False
        self.spaces[words.ctypes.data] = words
        return words

    def new_results(self, words: Array) -> list[Array]:
        """New arrays for the results of a call; large ones lie in memory that is reused."""
        axes, results = self.words[2], self.kernel.results
        sizes = iter(words[self.places.shapes + axes : self.places.unknowns].tolist())
        dtypes = self.dtypes[len(self.kernel.params) :]
        shapes = [tuple(islice(sizes, type.ndim)) for type in results]
        return [result_memory.empty(*pair) for pair in zip(shapes, dtypes, strict=True)]

    def code_for(self, known: dict[str, int]) -> int:
        """The address of the code for calls of some sizes, which is made at the first of them."""
        kernel, stages = self.kernel, self.kernel.code
        if kernel.patient and any(evaluate(size, known) >= HUGE_NEST for size in kernel.counts):
            stages = kernel.patient()
        address = stages.at_once()["kernel"]
        if not stages.is_last and address not in self.quick:
            self.quick[address] = stages
            self.words[LEFT] = int(stages.seconds * ticks_per_second())
        return address

    def improve(self) -> None:
        """Once calls of quick code have taken long enough, let all calls run better code.

        Other threads go on with the quick code while the better one is being made.
        """
        if self.words[LEFT] >= 0:
            return
        self.words[LEFT] = sys.maxsize
        try:
            for address, stages in [*self.quick.items()]:
                better = stages.with_care()["kernel"]
                for words in [*self.spaces.values()]:
                    if words[0] == address:
                        words[0] = better
                self.quick.pop(address, None)
        except BaseException as error:
            if is_interrupt(error):  # the next call makes it
                self.words[LEFT] = -1
            raise

    def failed(self, words: Array) -> None:
        """Raise the error that the record of the kernel describes."""
        places = self.places
        sizes = words[places.unknowns : places.numbers].tolist()
        raise self.report(words[HEAD : places.shapes].tolist(), self.known(sizes))

    def show(self, words: Array) -> None:
        """Show what the kernel has printed since the last time."""
        begin, waiting = words[PRINTED : PRINTED + 2].tolist()
        first, at, said = self.places.end - len(self.kernel.slots), begin, []
        while at < begin + waiting:
            number, away = (ctypes.c_int64 * 2).from_address(at)
            slot = self.kernel.slots[number - first]
            assert isinstance(slot, Print)
            shape = tuple((ctypes.c_int64 * len(slot.dims)).from_address(at + 16))
            at += 16 + 8 * len(shape)
            bytes = prod(shape) * slot.dtype.itemsize
            memory = (ctypes.c_uint8 * bytes).from_address(away or at)
            values = np.ndarray(shape, slot.dtype, memory)
            shown = show_dtype(slot.dtype)
            said.append(printing.lines_to_print(slot.label, shown, slot.dims, values))
            at += 0 if away else -(-bytes // 8) * 8
        words[PRINTED + 1] = 0
        printing.write("".join(said))

    def known(self, sizes: Sequence[int]) -> dict[str, int]:
        """The unknown sizes by name."""
        return dict(zip(self.kernel.unknowns, sizes, strict=True))


class Hosted(CallableKernel):
    """A kernel that NumPy calls stand around: the host gives it arrays for its results."""

    def __init__(self, kernel: Kernel, report: Report) -> None:
        super().__init__(kernel, lambda xs: ([*xs], ()), report)

    def entrance(self) -> Callable[..., Any]:
        """The kernel as a function of sizes, operands and arrays for the results."""
        made: Callable[..., Any] = self.function("compute")
        return made

    def prepare(self, *args: Any) -> tuple[Array, ...]:
        """A workspace for a call with these sizes, and the operands as the kernel takes them."""
        self.improve()
        kernel, count = self.kernel, len(self.kernel.unknowns)
        sizes = args[:count]
        arrays = [fit(x, dtype) for x, dtype in zip(args[count:], self.dtypes, strict=True)]
        params = arrays[: len(kernel.params)]
        for x, y in zip(arrays[len(params) :], args[count + len(params) :], strict=True):
            assert x is y, "the array for a result is not row-major"
        try:
            words = self.idle_for(self.places.unknowns, [*sizes])
            if words is None:
                known = self.known(sizes)
                shape = [evaluate(size, known) for type in kernel.params for size in type.shape]
                words = self.workspace(shape, sizes)
        except (MemoryError, ValueError) as error:
            if is_interrupt(error):
                raise
            raise self.report([FULL], self.known(sizes)) from error
        wanted = words[self.places.shapes : self.places.unknowns].tolist()
        found = [size for x in arrays for size in x.shape]
        assert found == wanted, f"arrays have sizes {found}, not {wanted}"
        return words, *params


def fit(x: Array, dtype: np.dtype[Any]) -> Array:
    """An array as the entrance takes it: row-major, aligned, and its dtype the one of that name."""
    if type(x) is np.ndarray and x.dtype is dtype and x.flags.num & FITTING == FITTING:
        return x
    return np.array(x, dtype, order="C")


# ---- the machine code of the entrance


@machine.cached
def code() -> machine.Code:
    """The machine code of the entrance, with the addresses of `EXPORTS`."""
    parts = [(resources.files(__package__) / f"{name}.ll").read_text() for name in PARTS]
    text = "\n".join(parts)
    for name, value in constants().items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    made = machine.compiled(f"{text}\n{machine.ATTRIBUTES}\n", *EXPORTS, effort=0)
    ticks = ctypes.CFUNCTYPE(ctypes.c_int64)(made["ticks"])
    first, begin = ticks(), time.perf_counter()
    while (now := time.perf_counter()) < begin + 0.5e-3:
        pass
    rate = (ticks() - first) / (now - begin)
    for name, seconds in (("long", LONG_CALL), ("period", PERIOD)):
        ctypes.c_int64.from_address(made[name]).value = int(seconds * rate)
    return made


def ticks_per_second() -> float:
    """The rate of the clock of the processor."""
    return float(ctypes.c_int64.from_address(code()["long"]).value / LONG_CALL)


PARTS = ("entrance", "hosted")
EXPORTS = ("enter", "compute", "poll", "print", "ticks", "long", "period")


def constants() -> dict[str, int]:
    """The values of the names in capitals in the text of the entrance."""
    return {
        "NDARRAY": id(np.ndarray),
        **{"FLOAT": id(float), "FLOAT64": id(np.float64), "DOUBLE": id(np.dtype(np.float64))},
        "NEW_COPY": numpy_api()[85],
        "NEW_FROM_DESCR": numpy_api()[94],
        "NONE": id(None),
        **{"MEMORY_ERROR": id(MemoryError), "VALUE_ERROR": id(ValueError)},
        **{"TANK": TANK, "PRINTS": PRINTS, "STOPPED": STOPPED},
    }


@cache
def numpy_api() -> Any:
    """NumPy's table of functions for C, whose places its headers document."""
    module = import_module("numpy._core._multiarray_umath")
    table = ctypes.c_void_p(capsules.pointer(module._ARRAY_API))
    return ctypes.cast(table, ctypes.POINTER(ctypes.c_int64))


METH_FASTCALL = 0x80


@machine.cached
def definition(function: str) -> Array:
    """The PyMethodDef of a function of the entrance, which stays in memory, as does its name."""
    name = ctypes.cast(NAME, ctypes.c_void_p).value or 0
    return np.array([name, code()[function], METH_FASTCALL, 0], np.int64)


NAME = ctypes.c_char_p(b"graphcore")


@machine.cached
def new_function() -> Any:
    """PyCMethod_New: a function of Python from its definition, its state, a module and a class.

    It is an object of its own: two threads that look it up in `ctypes.pythonapi` for the first time
    may each get another one there.
    """
    given = ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p
    return ctypes.PYFUNCTYPE(ctypes.py_object, *given)(("PyCMethod_New", ctypes.pythonapi))


@cache
def unavailable() -> str | None:
    """Why no entrance can be made in this Python; None where it can."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "the entrance of machine code needs a CPython with a global interpreter lock"
    abi = ctypes.CFUNCTYPE(ctypes.c_uint)(numpy_api()[0])() >> 24
    if abi != 2 or object.__basicsize__ != 16 or not all(map(reads, SAMPLES)):
        return "objects of this Python, or arrays of this NumPy, lie otherwise in memory"
    return None


SAMPLES = (np.zeros((2, 3)), np.arange(12.0)[1::2], np.zeros((), np.int8))


def reads(x: Array) -> bool:
    """Whether the fields of an array are where entrance.ll reads them."""
    type_, data, ndim, shape, _, _, dtype, flags = [
        ctypes.c_int64.from_address(id(x) + at).value for at in (8, 16, 24, 32, 40, 48, 56, 64)
    ]
    sizes = [ctypes.c_int64.from_address(shape + 8 * axis).value for axis in range(x.ndim)]
    return (type_, data, ndim & 0xFFFFFFFF, sizes, dtype, flags & 257 == 257) == (
        id(np.ndarray),
        x.ctypes.data,
        x.ndim,
        list(x.shape),
        id(x.dtype),
        x.flags.c_contiguous and x.flags.aligned,
    )
