"""Search in sorted rows, and the order of the values along an axis.

Values are put in order as unsigned words: bits of floats, changed so that they compare as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from graphcore.ir.dtypes import promote
from graphcore.ir.node import Node
from graphcore.ir.types import TensorType
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from . import machine
from .arithmetic import cast, kind_of, kind_of_dtype, rule_of
from .builder import Builder, Value, integer, real
from .entrance import Address
from .places import At
from .results import changed, finished
from .rooms import Index, index_of

if TYPE_CHECKING:
    from .writer import Homes, Writer

WORD = np.dtype(np.int64)


def is_ordered(node: Node) -> bool:
    """Whether machine code compares the values of a node."""
    kind = kind_of(node)
    return kind != "f16" and kind[0] != "c"


# ---- search


def searched(w: Writer, node: Node, homes: Homes) -> None:
    """How many values of a row come before each value, bit by bit from the largest."""
    p, b, (x, values) = w.places, w.b, node.inputs
    kind = kind_of_dtype(promote(x.type.dtype, values.type.dtype))
    row, room, batch = w.lying(x), w.home(node), x.type.ndim - 1
    size = w.size(x.type.shape[-1])
    bits = b.sub(integer(64), b.call("ctlz", size, flags="i1 false"))

    def place(index: At, mask: Value) -> None:
        value = cast(b, p.at(values, index, mask), kind)
        wide = any(i.is_wide for i in index)

        def one(i: Value, found: Value) -> Sequence[Value]:
            bit = b.op("shl", integer(1), b.sub(b.sub(bits, integer(1)), i))
            reached = b.op("add", found, bit)
            there = b.op("icmp sle", reached, size)
            at = (*index[:batch], index_of(b.op("sub", reached, integer(1))))
            last = cast(b, p.load(row, at, b.both(mask, there)), kind)
            if node.attrs["side"] == "left":
                passed = is_less(b, last, value)
            else:
                passed = b.neither(is_less(b, value, last))
            return [b.select(b.both(there, passed), reached, found)]

        start = b.widen(integer(0)) if wide else integer(0)
        p.store(room, index, mask, b.loop(integer(0), bits, 1, [start], one)[0])

    p.everywhere(node.type.shape, place)
    finished(w, node, homes, room)


def is_less(b: Builder, x: Value, y: Value) -> Value:
    """Whether x comes before y in order, nan last."""
    less = rule_of(e.less, x.kind)(b, x, y)
    if x.kind[0] != "f":
        return less
    missing = b.op("and", b.op("fcmp uno", y, y), b.op("fcmp ord", x, x))
    return b.op("or", less, missing)


# ---- order


@machine.once
def code() -> machine.Code:
    """The routine that puts words in order."""
    text = (resources.files(__package__) / "sorting.ll").read_text()
    return machine.compiled(f"{text}\n{machine.ATTRIBUTES}\n", "order")


def ordered(w: Writer, node: Node, homes: Homes) -> None:
    """The values along an axis in order, or the places where they were."""
    p, b, x, axis = w.places, w.b, node.inputs[0], node.attrs["axis"]
    kind, room, shape = kind_of(x), w.home(node), x.type.shape
    type = TensorType(WORD, (shape[axis],))
    keys, beside, *more = [w.new(node, type) for _ in range(4)]
    length, many = w.size(shape[axis]), w.size(node.type.shape[axis])
    routine = w.program.pointer(w.program.address(Address(code()["order"])))
    falls, places = bool(node.attrs.get("descending")), node.op is t.argsort

    def row(index: At) -> Sequence[Value]:
        def at(i: Index) -> At:
            return (*index[:axis], i, *index[axis:])

        def take(i: Index, mask: Value) -> Sequence[Value]:
            value = p.at(x, at(i), mask)
            p.store(keys, (i,), mask, key_of(b, value, falls, zeros_alike=places))
            p.store(beside, (i,), mask, p.spelled(i))
            return ()

        def give(i: Index, mask: Value) -> Sequence[Value]:
            if places:
                value = p.load(changed(w, beside), (i,), mask)
            else:
                value = value_of(b, p.load(changed(w, keys), (i,), mask), kind)
            p.store(room, at(i), mask, value)
            return ()

        p.lanes(length, (), take)
        given = [keys.pointer, beside.pointer, length, *[other.pointer for other in more]]
        b.do(f"call void {routine.text}({', '.join([v.typed for v in given])})")
        p.lanes(many, (), give)
        return ()

    others = [size for n, size in enumerate(shape) if n != axis]

    def inner(index: At) -> Sequence[Value]:
        if len(index) == len(others):
            return row(index)
        return p.each(w.size(others[len(index)]), (), lambda i: inner((*index, i)), 0)

    inner(())
    finished(w, node, homes, room)


def key_of(b: Builder, x: Value, falls: bool, zeros_alike: bool) -> Value:
    """A word that compares, without sign, as the value does; nan is the largest."""
    if x.kind == "i1":
        key = b.convert("zext", x, "i64")
        return b.op("xor", key, integer(1)) if falls else key
    bits = x.kind[1:]
    word, sign = f"i{bits}", integer(1 << int(bits) - 1, f"i{bits}")
    if x.kind[0] == "f":
        if zeros_alike:
            x = b.op("fadd", x, real(0.0, x.kind))
        x = b.select(b.op("fcmp uno", x, x), real(float("nan"), x.kind), x)
        x = b.convert("bitcast", x, word)
        negative = b.op("ashr", x, integer(int(bits) - 1, word))
        x = b.op("xor", x, b.op("or", negative, sign))
    elif x.kind[0] == "i":
        x = b.op("xor", x, sign)
    x = x._replace(kind=word)
    if falls:
        x = b.op("xor", x, integer(-1, word))
    return b.convert("zext", x, "i64")


def value_of(b: Builder, key: Value, kind: str) -> Value:
    """The value that a word stands for."""
    if kind == "i1":
        return b.op("icmp ne", key, integer(0))
    bits = kind[1:]
    word, sign = f"i{bits}", integer(1 << int(bits) - 1, f"i{bits}")
    x = b.convert("trunc", key, word)
    if kind[0] == "f":
        negative = b.op("ashr", b.op("xor", x, sign), integer(int(bits) - 1, word))
        x = b.op("xor", x, b.op("or", negative, sign))
        return b.convert("bitcast", x, kind)
    return (b.op("xor", x, sign) if kind[0] == "i" else x)._replace(kind=kind)


SORTING = {t.searchsorted: searched, t.sort: ordered, t.argsort: ordered}
