"""Search in sorted rows, and the order of the values along an axis.

Values are put in order as unsigned words: bits of floats, changed so that they compare as numbers.
No two orders of words differ, so that results are the same bits however they are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import resources
from typing import Any

import numpy as np

from graphcore.ir import Node, Size, TensorType
from graphcore.ir.dtypes import promote
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from . import capsules, machine
from .addressing import Buffer, Index, index_of
from .arithmetic import cast, kind_of, kind_of_dtype, rule_of
from .batches import One, each_shared
from .builder import TRUE, WIDTH, Builder, Value, integer, real
from .entrance import Address
from .places import At
from .results import changed, finished
from .writer import Homes, Writer

SEARCHED = 4 * WIDTH
"""How many values are searched for at once: each step of a search waits for a value of the row."""
WORD, NARROW = np.dtype(np.int64), np.dtype(np.int32)
"""Words, which are compared without sign: wide enough for all values, or for those of 4 bytes."""


def is_ordered(node: Node) -> bool:
    """Whether machine code compares the values of a node."""
    kind = kind_of(node)
    return kind != "f16" and kind[0] != "c"


# ---- search


def searched(w: Writer, node: Node, homes: Homes) -> None:
    """How many values of a row come before each value, bit by bit from the largest."""
    p, b, (x, values) = w.places, w.b, node.inputs
    kind = kind_of_dtype(promote(x.type.dtype, values.type.dtype))
    row, buffer, batch = w.lying(x), w.home(node), x.type.ndim - 1
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
        p.store(buffer, index, mask, b.loop(integer(0), bits, 1, [start], one)[0])

    shape, many = node.type.shape, SEARCHED if values in p.buffers else b.width

    def several(index: At, i: Index, mask: Value) -> Sequence[Value]:
        place((*index, i), mask)
        return ()

    def inner(index: At) -> Sequence[Value]:
        """All places behind some of the axes in front, whole groups first."""
        n = w.size(shape[len(index)])
        if len(index) < len(shape) - 1:
            return p.each(n, (), lambda i: inner((*index, i)))
        whole = b.op("and", n, integer(-many)) if n.number is None else integer(n.number & -many)
        with b.side_by_side(many):
            group = lambda i: several(index, Index(i, integer(1)), TRUE)
            p.looped(integer(0), whole, many, (), group)
        return p.run(whole, n, (), partial(several, index))

    if shape:
        w.sharing.over(partial(w.program.count, shape), lambda: inner(()))
    else:
        place((), TRUE)
    finished(w, node, homes, buffer)


def is_less(b: Builder, x: Value, y: Value) -> Value:
    """Whether x comes before y in order, nan last."""
    less = rule_of(e.less, x.kind)(b, x, y)
    if x.kind[0] != "f":
        return less
    missing = b.op("and", b.op("fcmp uno", y, y), b.op("fcmp ord", x, x))
    return b.op("or", less, missing)


# ---- order


@machine.cached
def code() -> machine.Code:
    """The routines that put words in order."""
    text = (resources.files(__package__) / "sorting.ll").read_text()
    return machine.compiled(f"{text}\n{machine.ATTRIBUTES}\n", "order", "first")


class Order:
    """Memory for the words of one row, and the call that puts them in order."""

    def __init__(self, w: Writer, node: Node) -> None:
        axis, x = node.attrs["axis"], node.inputs[0]
        n = x.type.shape[axis]
        self.w, self.length, self.many = w, w.size(n), w.size(node.type.shape[axis])
        self.finds_places = node.op is t.argsort
        narrow = not self.finds_places and x.type.dtype.itemsize <= 4
        self.word = "i32" if narrow else "i64"
        self.sort = capsules.sort(32 if narrow else 64)
        self.keys = self.array(node, NARROW if narrow else WORD, n)
        more = 4 if self.finds_places else 3 * (self.sort is None)
        self.rest = [self.array(node, WORD, n) for _ in range(more)]

    def array(self, node: Node, dtype: np.dtype[Any], n: Size) -> Buffer:
        """Memory for as many words as a row has values."""
        return self.w.new(node, TensorType(dtype, (n,)))

    def of_thread(self) -> None:
        """Take memory of each thread where the loop that comes next is shared."""
        self.keys, *self.rest = [self.w.own(x) for x in (self.keys, *self.rest)]

    def take(self, i: Index, mask: Value, key: Value) -> None:
        """Keep the word of a place."""
        if self.word == "i32":
            key = self.w.b.convert("trunc", key, "i32")
        self.w.places.store(self.keys, (i,), mask, key)

    def call(self) -> None:
        """The words in order; or the places of the first ones, in the first of the other arrays."""
        none = Value("null", "ptr")
        rest = [buffer.pointer for buffer in self.rest]
        given = [self.keys.pointer, *rest[:1], self.length]
        if self.finds_places:
            sort = none if self.sort is None else self.pointer("words", self.sort)
            given += [self.many, *rest[1:], sort]
            self.w.call(self.pointer("first", code()["first"]), *given)
        elif self.sort is None:
            self.w.call(self.pointer("order", code()["order"]), *given, *rest[1:])
        else:  # what it returns is always 0
            self.w.call(self.pointer(("words", self.word), self.sort), *given, none)

    def pointer(self, key: object, address: int) -> Value:
        """Where a routine is."""
        return self.w.program.shared(("order", key), Address(address))

    def found(self, i: Index, mask: Value) -> Value:
        """A word, or a place, in order."""
        w = self.w
        buffer = self.rest[0] if self.finds_places else self.keys
        value = w.places.load(changed(w, buffer), (i,), mask)
        return w.b.convert("zext", value, "i64") if self.word == "i32" else value


def ordered(w: Writer, node: Node, homes: Homes) -> None:
    """The values along an axis in order, or the places where they were."""
    p, b, x, axis = w.places, w.b, node.inputs[0], node.attrs["axis"]
    kind, buffer, shape = kind_of(x), w.home(node), x.type.shape
    order, falls = Order(w, node), bool(node.attrs.get("descending"))
    places = order.finds_places

    def row(_: Value, before: tuple[Value, ...]) -> None:
        index = tuple(map(Index, before))

        def at(i: Index) -> At:
            return (*index[:axis], i, *index[axis:])

        def take(i: Index, mask: Value) -> Sequence[Value]:
            value = p.at(x, at(i), mask)
            order.take(i, mask, key_of(b, value, falls, zeros_alike=places))
            return ()

        def give(i: Index, mask: Value) -> Sequence[Value]:
            found = order.found(i, mask)
            p.store(buffer, at(i), mask, found if places else value_of(b, found, kind))
            return ()

        p.lanes(order.length, (), take)
        order.call()
        p.lanes(order.many, (), give)

    def prepared() -> One:
        order.of_thread()
        return row

    others = tuple([size for n, size in enumerate(shape) if n != axis])
    each_shared(w, others, partial(w.program.count, shape), prepared)
    finished(w, node, homes, buffer)


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
