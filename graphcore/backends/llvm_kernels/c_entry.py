"""Kernels as C functions: machine code that checks sizes, fills the table of a kernel and calls it.

c_entry.ll has what all of them share: workspaces that threads take in turn, and failures; c_nan.ll
searches results for nan.
"""

from __future__ import annotations

import ctypes
import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np

from graphcore.backends.boundary import Boundary
from graphcore.backends.c_declarations import refuse
from graphcore.backends.c_interface import FAILED, MEMORY, NAN, Failure, Interface
from graphcore.ir import Array, Graph, Node, TensorType
from graphcore.ir.errors import GraphError
from graphcore.ir.provenance import described_by
from graphcore.ir.sizes import count, evaluate
from graphcore.ops import leaf, tensor
from graphcore.ops.outside import CALLBACKS
from graphcore.ops.schedule import kernel

from . import capsules, computes, machine, machine_code, single_kernel
from .addressing import BYTES
from .arena import LINE, libc
from .builder import BITS
from .c_entry_code import CALLED, EntryCode, Given, own_values
from .c_layout import Layout
from .elementary import compiled
from .entrance import FULL, HEAD, Kernel, Report
from .entrance import code as code_of_entrance

SLOTS = 16
"""How many workspaces are kept: of more calls at once the others make and free their own."""
FIRST_SLOT = 16
"""The number of 8-byte words in a pool before its slots, which take a cache line each."""
FAILED_SIZES = FIRST_SLOT + SLOTS * LINE // 8
"""The number of 8-byte words in a pool before the sizes of the last failure."""
TRIES_TO_READ = 1000
"""How often a failure that is being noted is waited for; after a fork no one may be noting it."""
PARTS_OF_FLOATS = ("f64", "f32", "f16")
"""The kinds of floats, and of the parts of complex numbers."""
PARAMETER = re.compile(r"\b(HEAD|SLOTS|LINE|SIZES)\b")


@machine.cached
def routines() -> machine.Code:
    """The machine code that all C functions share."""
    text = (resources.files(__package__) / "c_entry.ll").read_text()
    words = {"HEAD": HEAD, "SLOTS": SLOTS, "LINE": LINE, "SIZES": FAILED_SIZES}
    text = PARAMETER.sub(lambda found: str(words[found[0]]), text)
    free = ctypes.cast(libc().free, ctypes.c_void_p).value or 0
    needed = {"free_grown": free}
    text += "".join(map(search_for_nan, PARTS_OF_FLOATS))
    return compiled(f"{text}\n{machine.ATTRIBUTES}\n", *CALLED, *EXPORTS, needed=needed)


def search_for_nan(kind: str) -> str:
    """The routine that searches values of a kind for nan."""
    text = (resources.files(__package__) / "c_nan.ll").read_text()
    return text.replace("TYPE", BITS[kind]).replace("BYTES", str(BYTES[kind]))


EXPORTS = ("read_failure", "free_all", "release_owner")


def entry_maker(graph: Graph, boundary: Boundary) -> Callable[[Interface], NativeEntry]:
    """Makes C functions of a graph with kernels, which has to be one of them."""
    with described_by(graph.trace):
        for node in graph.every_node():
            if refusal := reason(node):
                raise refusal
    if (called := single_kernel(graph)) is None:
        raise refuse("the program has no results", cure="give gc.compile an output")

    def make(interface: Interface) -> NativeEntry:
        with machine.making():
            made = machine_code(called.attrs["body"], boundary.unknowns)

        def failed(record: list[int], known: dict[str, int]) -> Exception:
            with described_by(graph.trace):
                return made.failed(record, known).worded(called)

        return NativeEntry(made.kernel, interface, failed)

    return make


def reason(node: Node) -> GraphError | None:
    """The error for a node that no C function has; None where it may have it."""
    if node.op is tensor.print_:
        what, cure = "prints, which needs Python", "leave gc.print out"
    elif node.op in (leaf.as_size, leaf.after):
        what = "has a size that is found while the program runs"
        cure = "give results sizes that are known before, such as by gc.where in place of x[mask]"
    elif node.op in CALLBACKS:
        what = "calls a Python function"
        cure = "write it with functions of gc, or call it from C beside the program"
    elif node.op is not kernel and not computes(node):
        what = "is a NumPy call: there is no machine code for it"
        cure = "compute it before, and make its result an input of the program"
    else:
        return None
    return refuse(f"{node.said} at {node.origin} {what}", cure=cure)


class NativeEntry:
    """A kernel as a C function, with its workspaces."""

    def __init__(self, kernel: Kernel, interface: Interface, report: Report) -> None:
        self.kernel, self.interface, self.report = kernel, interface, report
        code_of_entrance()  # which loops call
        self.layout = layout = Layout(kernel, interface.known)
        self.names = [*kernel.unknowns, *[x for x in interface.sizes if x not in kernel.unknowns]]
        own = own_values(interface, kernel)
        moved = [(layout.table + at, n) for n, at in enumerate(own, layout.chunks)]
        moved += layout.moved
        starts = [*layout.starts, *[layout.number(at) for at in own]]
        self.moved, self.growing = words([x for pair in moved for x in pair]), words(layout.growing)
        self.starts = words(starts)
        self.known = words([interface.known.get(x, 0) for x in self.names])
        memory = np.zeros(FAILED_SIZES + len(self.names) + kernel.record + LINE // 8, np.int64)
        self.pool = memory[-memory.ctypes.data % LINE // 8 :]
        self.pool[:6] = [
            *(layout.template.ctypes.data, layout.template.nbytes),
            *(self.moved.ctypes.data, len(moved)),
            *(self.growing.ctypes.data, len(layout.growing)),
        ]
        self.pool[13:15] = len(self.names), kernel.record
        if not layout.varies:
            bytes = [bytes_of(x, interface.known) for x in (*kernel.params, *kernel.results)]
            layout.template[layout.bytes : layout.table] = bytes
        with machine.making():
            self.kernel_code = kernel.code.with_care()
            data = [x.ctypes.data for x in (self.known, self.starts)]
            given = Given.of(self.pool.ctypes.data, self.kernel_code["kernel"], *data)
            text = EntryCode(kernel, interface, layout, self.names, given).text()
            self.code = compiled(text, "entry", needed={x: routines()[x] for x in CALLED})
        self.address = self.code["entry"]
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(routines()["free_all"])
        weakref.finalize(self, free_all, free, self.pool, self.growing).atexit = False

    def capsule(self, name: str) -> Any:
        """A capsule of this name with the address, which keeps the function in memory."""
        return capsules.keeping(self, self.address, name, routines()["release_owner"])

    def failure(self) -> Failure | None:
        """The last call that failed since this was asked before."""
        found = np.zeros(len(self.pool) - 9, np.int64)
        given = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
        read = ctypes.CFUNCTYPE(ctypes.c_int64, *given)(routines()["read_failure"])
        for _ in range(TRIES_TO_READ):
            if read(self.pool.ctypes.data, found.ctypes.data, found.nbytes):
                break
            time.sleep(0)
        else:
            self.pool[8] = 0
            return self.failure()
        many, status, pair = found[:3].tolist()
        if not many:
            return None
        numbers = found[FAILED_SIZES - 9 :].tolist()
        sizes = {**self.interface.known, **dict(zip(self.names, numbers, strict=False))}
        error: Exception | None = None
        if status in (FAILED, MEMORY):
            record = numbers[len(self.names) :] if status == FAILED else [FULL]
            error = self.report(record, {x: sizes[x] for x in self.kernel.unknowns})

        assert error is None or isinstance(error, GraphError)
        at, result = divmod(pair, len(self.kernel.results))
        numbers_of = (result, at) if status == NAN else (pair & 0xFFFFFFFF, pair >> 32)
        return Failure(status, sizes, numbers_of, error)


def bytes_of(type: TensorType, known: Mapping[str, int]) -> int:
    """How much memory values of a type take."""
    return evaluate(count(type.shape), known) * type.dtype.itemsize


def words(numbers: Sequence[int]) -> Array:
    """Numbers in memory, at least one."""
    return np.array([*numbers, 0], np.int64)


def free_all(free: Callable[[int], None], pool: Array, growing: Array) -> None:
    """Free the workspaces of a pool, which have memory in the places of `growing`."""
    assert pool[4] == growing.ctypes.data
    free(pool.ctypes.data)
