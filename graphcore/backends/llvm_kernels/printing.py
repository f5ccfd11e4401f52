"""Printed values: a step that puts a copy of them into the buffer of the call.

The buffer is shown where it is full, when loops look for signals, and after the kernel: see
`entrance.ll`. No code of the user's runs between.
"""

from __future__ import annotations

from graphcore.ir import Node

from . import entrance
from .kernel_calls import place
from .results import finished
from .writer import Homes, Writer


def print_(w: Writer, node: Node, homes: Homes) -> None:
    """y = x, and a print of y."""
    b, p, type = w.b, w.program, node.type
    buffer = w.home(node)
    w.copy(node.inputs[0], [buffer])
    begin = p.first + len(p.slots)
    p.slots.append(entrance.Print(node.attrs["label"], node.attrs["dims"], type.dtype))
    p.slots += [entrance.Cell()] * type.ndim
    for at, size in enumerate(type.shape, begin + 1):
        b.do(f"store {p.size(size).typed}, {place(w, at).typed}")
    routine = p.shared("print", entrance.Address(entrance.code()["print"]))
    slot, count, bytes = place(w, begin), f"i64 {type.ndim}", p.bytes(type)
    given = f"ptr %record, {slot.typed}, {count}, {buffer.pointer.typed}, {bytes.typed}"
    b.lines[-1] += b.signals.outside(b.name(""), f"{routine.text}({given})")
    finished(w, node, homes, buffer)
