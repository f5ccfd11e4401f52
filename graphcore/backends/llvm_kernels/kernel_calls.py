"""Kernels that a kernel calls: the parts of a long graph, each compiled once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from graphcore.ir import Node, Size
from graphcore.ir.sizes import unknowns
from graphcore.ops.leaf import values

from .builder import Value
from .entrance import Address, Cell, Constant, Growing, Routine, Same, Scratch
from .failures import Machine
from .places import is_register
from .writer import Shared, Writer


class Block(NamedTuple):
    """Where in our table that of a kernel begins.

    `moving` are the places in it that get pointers before the call, and `growing` its buffers that
    our loops size.
    """

    begin: int
    moving: list[tuple[int, Value]]
    growing: list[tuple[int, Size]]


def code(p: Shared, made: Machine) -> str:
    """The address of the code of a kernel, which looks for signals in nests if ours does."""
    code = made.kernel.code.with_care()  # the address is written into our own code
    pointer = p.shared(("kernel", made.graph), Address(code["kernel"]))
    if not p.b.signals.in_nests or made.kernel.patient is None:
        return pointer.text
    p.calls.patient.append(made.kernel.patient())
    return f"inttoptr (i64 {p.calls.patient[-1].with_care()['kernel']} to ptr)"


def block(p: Shared, made: Machine, pointers: Sequence[Value]) -> Block:
    """The table of a kernel for one call with these pointers to operands and results.

    Pointers that do not change during a call of ours are there from the start.
    """
    begin = p.first + len(p.slots)
    fixed = [p.fixed.get(pointer.text) for pointer in pointers]
    p.slots += [Cell() if at is None else Same(at) for at in fixed]
    moving = [(begin + n, x) for n, x in enumerate(pointers) if fixed[n] is None]
    first, growing, lent = len(p.slots), list[tuple[int, Size]](), Counter[Size]()
    before = p.calls.first.setdefault(made.graph, first)
    for at, slot in enumerate(made.kernel.slots, first):
        if isinstance(slot, Same):
            slot = Same(slot.at + first)
        elif isinstance(slot, Scratch) and unknowns(slot.bytes) & p.found:
            growing.append((at + p.first, slot.bytes))
            slot = Growing()
        elif isinstance(slot, Routine) and unknowns(slot.size) & p.found:
            slot = Address(slot.make())
        elif isinstance(slot, Scratch):
            buffers, number = p.calls.lent.setdefault(slot.bytes, []), lent[slot.bytes]
            lent[slot.bytes] += 1
            if number < len(buffers):
                lend(p, buffers[number])
                slot = Same(buffers[number])
            else:
                buffers.append(at)
                slot = Scratch(slot.bytes, 1 << p.time)
        elif isinstance(slot, Constant | Address | Routine) and before < first:
            slot = Same(before + at - first)
        p.slots.append(slot)
    p.time += 1
    return Block(begin, moving, growing)


def call(w: Writer, node: Node) -> None:
    """The call of the kernel of a node, whose results go to buffers."""
    b, p, results = w.b, w.program, values(node)
    made = p.calls.machine(node.attrs["body"])
    buffers = [*[w.lying(x) for x in node.inputs], *[w.home(y) for y in results]]
    table = block(p, made, [buffer.pointer for buffer in buffers])
    for at, pointer in table.moving:
        b.do(f"store {pointer.typed}, {place(w, at).typed}")
    for at, bytes in table.growing:
        slot = place(w, at)
        p.enlarge(b.now("ptr", f"load ptr, {slot.typed}"), slot, p.size(bytes))
    sizes = sizes_for(w, made.kernel.unknowns)
    given = f"{place(w, table.begin).typed}, {sizes}, ptr %record"
    status = b.now("i64", f"call i64 {code(p, made)}({given})")
    p.failures.called(b, status, node, made.sites, made.kernel.record)
    for y, buffer in zip(results, buffers[len(node.inputs) :], strict=True):
        new = w.buffer(y.type, buffer.pointer)
        w.know([y], [w.load(new) if is_register(y.type) else new])


def lend(p: Shared, at: int) -> None:
    """Note that a kernel that is called now uses a buffer."""
    buffer = p.slots[at]
    assert isinstance(buffer, Scratch)
    p.slots[at] = buffer._replace(times=buffer.times | 1 << p.time)


def place(w: Writer, at: int) -> Value:
    """The address of a place of the table, used here alone."""
    return w.b.now("ptr", f"getelementptr ptr, ptr %table, i64 {at}")


def sizes_for(w: Writer, names: tuple[str, ...]) -> str:
    """Where a kernel finds the unknown sizes of these names."""
    p = w.program
    if names == p.names:
        return "ptr %sizes"
    if ("sizes", names) not in p.places:
        p.places["sizes", names] = len(p.slots) + p.first
        p.slots += [Cell()] * len(names)
    begin = p.places["sizes", names]
    for at, name in enumerate(names, begin):
        w.b.do(f"store {p.sizes[name].typed}, {place(w, at).typed}")
    return place(w, begin).typed
