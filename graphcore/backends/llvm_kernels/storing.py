"""Vectors stored where only the first lanes have an element.

AVX-512 stores under a mask as quickly as without one. CPUs with AVX2 alone may take ten times as
long: there a branch stores whole vectors as they are, and a routine the first lanes of the others.
They load values of one or two bytes under a mask one by one, so a routine loads these, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from .builder import FALSE, TRUE, WIDTH, Builder, Value, integer, lanes, spelled, type_of
from .machine import levels

ROUTINE = "put"
"""`put.i64x8` stores the first of eight values of 64 bits."""
LOADING = "first"
"""`first.i8x8` loads the first of eight values of 8 bits."""


@cache
def masks_are_quick() -> bool:
    """Whether this CPU stores under a mask as quickly as without one."""
    return levels()[:1] == ("x86-64-v4",)


class Store(NamedTuple):
    """A vector, the address of its first lane, and how many lanes have a place, all if `whole`."""

    x: Value
    pointer: Value
    align: int
    left: Value
    whole: Value


class Stores:
    """The stores of vectors in one function.

    `lefts` says of masks of the first lanes, by their text, in how many lanes they hold.
    """

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.lefts: dict[str, Value] = {}
        self.waiting: list[Store] = []
        self.level: int | None = None

    def first(self, left: Value) -> Value:
        """The mask of so many lanes."""
        b, width, most = self.b, self.b.width, left
        if left.number is not None:
            if left.number >= width:
                return TRUE
            mask = lanes(*[int(k < left.number) for k in range(width)], kind="i1")
            self.lefts[mask.text] = left
            return mask
        if width > WIDTH:  # as many small numbers are compared at once
            most = b.convert("trunc", b.call("smin", left, integer(width)), "i32")
        mask = b.op("icmp slt", lanes(*range(width), kind=most.kind), most)
        self.lefts[mask.text] = left
        return mask

    @contextmanager
    def together(self) -> Iterator[None]:
        """A context at whose end its stores are made, behind one branch: nothing in it reads them.

        Those in loops and branches within it are made at once.
        """
        before = self.waiting, self.level
        self.waiting, self.level = [], self.b.level
        yield
        stores = self.waiting
        self.waiting, self.level = before
        if stores:
            self._make(stores)

    def get(self, kind: str, pointer: Value, align: int, mask: Value, left: Value | None) -> str:
        """The instruction that loads the lanes where a mask holds: the first `left`, if known."""
        b = self.b
        slow = kind[1:] in ("8", "16") and kind[0] != "f" and not masks_are_quick()
        if not slow or left is None or left.number is not None:
            return masked_load(b, kind, pointer, mask, align)
        vector, name = type_of(kind, mask.wide), f"@{LOADING}.i{8 * align}x{mask.wide}"
        b.declared[name] = f"declare {vector} {name}(ptr, i64) #0"
        return f"call {vector} {name}({pointer.typed}, {left.typed})"

    def put(
        self, x: Value, pointer: Value, align: int, mask: Value, left: Value | None = None
    ) -> None:
        """Store the lanes of x where a mask holds; if it does not hold in all, the first `left`."""
        b, known = self.b, self.lefts.get(mask.text)
        if left is not None and mask.text != "true" and (known is None or masks_are_quick()):
            mask, known = self.first(left), left
        if mask.text == "true":
            b.do(plainly(x, pointer, align), x, pointer)
        elif known is None or masks_are_quick():
            mask = b.widen(mask)
            name = f"@llvm.masked.store.v{x.wide}{spelled(x.kind)}.p0"
            b.declared[name] = f"declare void {name}({x.type}, ptr, i32, {mask.type})"
            text = f"call void {name}({x.typed}, {pointer.typed}, i32 {align}, {mask.typed})"
            b.do(text, x, pointer, mask)
        elif (least := known if left is None else left).number is not None:
            halves(b, x, pointer, least, align)
        else:
            whole = b.op("icmp sge", known, integer(b.width))
            store = Store(x, pointer, align, least, whole)
            if self.level == b.level:
                self.waiting.append(store)
            else:
                self._make([store])

    def _make(self, stores: Sequence[Store]) -> None:
        """Stores of whole vectors, or of the first lanes of each."""
        b, all_are_whole = self.b, TRUE
        for whole in dict.fromkeys([each.whole for each in stores]):
            all_are_whole = b.both(all_are_whole, whole)

        def in_full() -> Sequence[Value]:
            for each in stores:
                b.do(plainly(each.x, each.pointer, each.align), each.x, each.pointer)
            return ()

        def in_part() -> Sequence[Value]:
            for each in stores:
                x = b.convert("bitcast", each.x, f"i{8 * each.align}")
                name = f"@{ROUTINE}.{x.kind}x{x.wide}"
                b.declared[name] = f"declare void {name}({x.type}, ptr, i64) #0"
                given = x, each.pointer, each.left
                b.do(f"call void {name}({', '.join([v.typed for v in given])})", *given)
            return ()

        b.branch(all_are_whole, in_full, in_part)


def plainly(x: Value, pointer: Value, align: int) -> str:
    """The instruction that stores all lanes."""
    return f"store {x.typed}, {pointer.typed}, align {align}"


def halves(b: Builder, x: Value, p: Value, n: Value, align: int) -> None:
    """Store the first n lanes at p: the first half of them, if there are so many, then the rest."""
    if not x.wide:
        b.branch(reaches(b, n, 1), lambda: stored(b, x, p, align))
        return
    half = x.wide // 2
    low, high = [b.shuffle(x, range(k, k + half)) if half > 1 else b.lane(x, k) for k in (0, half)]

    def first() -> Sequence[Value]:
        stored(b, low, p, align)
        after = f"getelementptr {type_of(x.kind)}, {p.typed}, i64 {half}"
        return high, b.emit("ptr", 0, after, p), b.sub(n, integer(half))

    x, p, n = b.branch(reaches(b, n, half), first, lambda: (low, p, n))
    halves(b, x, p, n, align)


def reaches(b: Builder, n: Value, least: int) -> Value:
    """Whether n is at least so much."""
    if n.number is None:
        return b.op("icmp sge", n, integer(least))
    return TRUE if n.number >= least else FALSE


def stored(b: Builder, x: Value, p: Value, align: int) -> Sequence[Value]:
    """Store all lanes, as a branch without values."""
    b.do(plainly(x, p, align), x, p)
    return ()


def loading(kind: str, width: int) -> Builder:
    """The body of a routine that loads the first n lanes of a vector from p."""
    b, align = Builder(width), int(kind[1:]) // 8
    p, n, vector = Value("%p", "ptr"), Value("%n", "i64"), type_of(kind, width)

    def in_full() -> Sequence[Value]:
        return [b.now(kind, f"load {vector}, {p.typed}, align {align}", width)]

    def in_part() -> Sequence[Value]:
        mask = b.op("icmp slt", lanes(*range(width)), n)
        return [b.now(kind, masked_load(b, kind, p, mask, align), width)]

    (x,) = b.branch(reaches(b, n, width), in_full, in_part)
    b.do(f"ret {x.typed}")
    return b


def masked_load(b: Builder, kind: str, p: Value, mask: Value, align: int) -> str:
    """The instruction that loads the lanes for which a mask holds, and zeros for the others."""
    vector = type_of(kind, mask.wide)
    name = f"@llvm.masked.load.v{mask.wide}{spelled(kind)}.p0"
    b.declared[name] = f"declare {vector} {name}(ptr, i32, {mask.type}, {vector})"
    return f"call {vector} {name}({p.typed}, i32 {align}, {mask.typed}, {vector} zeroinitializer)"


def routine(kind: str, width: int) -> Builder:
    """The body of a routine that stores the first n lanes of a vector x at p."""
    b = Builder(width)
    x, p, n = Value("%x", kind, width), Value("%p", "ptr"), Value("%n", "i64")
    halves(b, x, p, n, int(kind[1:]) // 8)
    b.do("ret void")
    return b
