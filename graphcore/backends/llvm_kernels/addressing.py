"""Buffers of stored values, the indices of elements in them, and their addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .builder import FALSE, PARTS, TRUE, Builder, Value, integer, spelled, type_of
from .storing import Stores, masks_are_quick

BYTES = {
    **{"f64": 8, "f32": 4, "f16": 2, "i1": 1, "c128": 16, "c64": 8},
    **{f"{sign}{bits}": bits // 8 for sign in "iu" for bits in (8, 16, 32, 64)},
}
"""How many bytes a value of each kind has in memory."""


class Index(NamedTuple):
    """A position on one axis: `base + lane * k` in lane k, or any vector of positions."""

    base: Value
    lane: Value = integer(0)
    vector: Value | None = None

    @property
    def is_wide(self) -> bool:
        """Whether the lanes have positions of their own."""
        return self.vector is not None or self.lane.number != 0

    @property
    def is_run(self) -> bool:
        """Whether the lanes stand one after the other."""
        return self.vector is None and self.lane.number == 1


ZERO = Index(integer(0))


def index_of(x: Value) -> Index:
    """The index of a position, or of one for each lane."""
    return Index(integer(0), integer(0), x) if x.wide else Index(x)


class Buffer(NamedTuple):
    """Memory of a stored value, row-major. Its content is known at `level`, as a `version`.

    If the value is stored one row at a time, the first `skipped` indices of a place are left out.
    If it is stored some rows at a time, the pointer is where all of it would begin, of which only
    these rows may be read: `readable` is the number of a place that can always be.
    """

    pointer: Value
    shape: tuple[Value, ...]
    kind: str
    level: int = 0
    version: int = 0
    skipped: int = 0
    readable: Value = integer(0)


def moved(b: Builder, pointer: Value, places: Value, kind: str) -> Value:
    """The address so many places on."""
    bytes = b.mul(places, integer(BYTES[kind]))
    text = f"getelementptr i8, {pointer.typed}, {bytes.typed}"
    return pointer if bytes.number == 0 else b.emit("ptr", 0, text, pointer, bytes)


class Memory:
    """Arithmetic of indices, and access to buffers.

    `open` are the loops that are being written, each with its number of steps: a value that is
    loaded before such a loop may lie in no buffer at all if the loop has none, so it is loaded from
    the `readable` place of its buffer instead: the start can be read in an empty one too.
    `some` are the masks that hold in some lane wherever they are known.
    """

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.open: list[tuple[int, Value]] = []
        self.some: set[str] = set()
        self.stores = Stores(b)

    # ---- indices

    def plus(self, i: Index, k: Value) -> Index:
        """An index moved by k."""
        if i.vector is not None:
            return i if k.number == 0 else i._replace(vector=self.b.op("add", i.vector, k))
        return i._replace(base=self.b.add(i.base, k))

    def times(self, i: Index, k: Value) -> Index:
        """An index k times as far."""
        if i.vector is not None:
            return i if k.number == 1 else i._replace(vector=self.b.op("mul", i.vector, k))
        return Index(self.b.mul(i.base, k), self.b.mul(i.lane, k))

    def sum(self, i: Index, j: Index) -> Index:
        """The sum of two indices."""
        if i.vector is not None or j.vector is not None:
            return index_of(self.b.add(self.spelled(i), self.spelled(j)))
        return Index(self.b.add(i.base, j.base), self.b.add(i.lane, j.lane))

    def spelled(self, i: Index) -> Value:
        """An index as a value."""
        if i.vector is not None:
            return i.vector
        if not i.is_wide:
            return i.base
        lanes = self.b.numbers
        steps = lanes if i.lane.number == 1 else self.b.op("mul", lanes, i.lane)
        return self.b.op("add", i.base, steps)

    def divided(self, i: Index, k: Value) -> tuple[Index, Index]:
        """The quotient and the remainder of an index, which is not negative, by k."""
        if k.number == 1:
            return i, ZERO
        whole = self.spelled(i)
        if k.number is None:  # of an empty axis it may be computed, though nothing reads it
            k = self.b.call("smax", k, integer(1))
        quotient, rest = self.b.op("udiv", whole, k), self.b.op("urem", whole, k)
        return index_of(quotient), index_of(rest)

    def below(self, i: Index, k: Value) -> Value:
        """Whether an index is less than k."""
        if not i.is_wide and i.base.number is not None and k.number is not None:
            return TRUE if i.base.number < k.number else FALSE
        return self.b.op("icmp slt", self.spelled(i), k)

    def positive(self, i: Index) -> Value:
        """Whether an index is not negative."""
        if not i.is_wide and i.base.number is not None:
            return TRUE if i.base.number >= 0 else FALSE
        return self.b.op("icmp sge", self.spelled(i), integer(0))

    # ---- parts of buffers

    def after(self, buffer: Buffer, places: Value) -> Buffer:
        """What is left of a buffer of one axis behind so many places."""
        return self.moved(buffer, places, (self.b.sub(buffer.shape[0], places),))

    def moved(self, buffer: Buffer, places: Value, shape: tuple[Value, ...]) -> Buffer:
        """A buffer that begins so many places on."""
        text = f"getelementptr {type_of(buffer.kind)}, {buffer.pointer.typed}, {places.typed}"
        pointer = self.b.emit("ptr", 0, text, buffer.pointer, places)
        return buffer._replace(pointer=pointer, shape=shape)

    # ---- access

    def prefetch(self, buffer: Buffer, place: Value, how: str) -> None:
        """Have the line of the cache with a place brought near: to read it or to write into it."""
        b, name = self.b, "@llvm.prefetch.p0"
        b.declared[name] = f"declare void {name}(ptr, i32, i32, i32)"
        pointer = self.moved(buffer, place, buffer.shape).pointer
        b.do(f"call void {name}({pointer.typed}, {how}, i32 1)", pointer)

    def load(self, buffer: Buffer, index: Sequence[Index], mask: Value) -> Value:
        """The values of a buffer at places; zeros, or any value, where the mask does not hold."""
        offset = self.place(index[buffer.skipped :], buffer.shape)
        if buffer.kind in PARTS:
            part = buffer._replace(kind=PARTS[buffer.kind])
            if offset.is_run:
                return self._fetch_side_by_side(part, offset, mask)
            both = self.times(offset, integer(2))
            halves = [self._fetch(part, self.plus(both, integer(k)), mask) for k in (0, 1)]
            return self.b.complex(*halves)
        if buffer.kind == "i1":
            byte = self._fetch(buffer._replace(kind="i8"), offset, mask)
            return self.b.op("icmp ne", byte, integer(0, "i8"))
        return self._fetch(buffer, offset, mask)

    def store(
        self,
        buffer: Buffer,
        index: Sequence[Index],
        mask: Value,
        x: Value,
        left: Value | None = None,
    ) -> None:
        """Put values into a buffer where the mask holds; else the first `left` of them."""
        offset = self.place(index[buffer.skipped :], buffer.shape)
        if buffer.kind in PARTS:
            part = buffer._replace(kind=PARTS[buffer.kind])
            if offset.is_run:
                self._put_side_by_side(part, offset, mask, self.b.widen(x))
                return
            both = self.times(offset, integer(2))
            for k, half in enumerate(self.b.parts(x)):
                self._put(part, self.plus(both, integer(k)), mask, half)
        elif buffer.kind == "i1":
            byte = self.b.convert("zext", x, "i8")
            self._put(buffer._replace(kind="i8"), offset, mask, byte)
        else:
            self._put(buffer, offset, mask, x, left)

    def place(self, index: Sequence[Index], sizes: Sequence[Value]) -> Index:
        """The number of a place in row-major order, unless the index is that number."""
        if len(index) == 1 < len(sizes):
            return index[0]
        total = ZERO
        for i, size in zip(index, sizes, strict=True):
            total = self.sum(self.times(total, size), i)
        return total

    def _halves(self, offset: Index, mask: Value) -> list[tuple[Index, Value]]:
        """The two runs of floats of complex values that follow each other, and their masks."""
        b, width = self.b, self.b.width
        left, found = self.stores.lefts.get(mask.text), []
        for k in (0, 1):
            base = b.add(b.mul(offset.base, integer(2)), integer(k * width))
            half = mask
            if left is not None:
                half = self.stores.first(b.sub(b.mul(left, integer(2)), integer(k * width)))
            elif mask.wide:
                half = b.shuffle(mask, [(k * width + i) // 2 for i in range(width)])
            found.append((Index(base, integer(1)), half))
        return found

    def _fetch_side_by_side(self, part: Buffer, offset: Index, mask: Value) -> Value:
        """Complex values that follow each other: loaded as floats, then separated into parts."""
        b, width = self.b, self.b.width
        low, high = [self._fetch(part, at, m) for at, m in self._halves(offset, mask)]
        both = [b.shuffle(low, [*range(k, 2 * width, 2)], high) for k in (0, 1)]
        return b.complex(*both)

    def _put_side_by_side(self, part: Buffer, offset: Index, mask: Value, x: Value) -> None:
        """Store complex values that follow each other: their parts are interleaved first."""
        b, width = self.b, self.b.width
        a, c = b.parts(x)
        pairs = [place for i in range(width) for place in (i, width + i)]
        for k, (at, m) in enumerate(self._halves(offset, mask)):
            self._put(part, at, m, b.shuffle(a, pairs[k * width :][:width], c))

    def _fetch(self, buffer: Buffer, offset: Index, mask: Value) -> Value:
        b, kind, note = self.b, buffer.kind, f"; {buffer.version}"
        width, several = b.width, type_of(kind, b.width)
        if not offset.is_wide and mask.wide:  # one place for all lanes, if any wants it
            mask = TRUE if mask.text in self.some else b.any_lane(mask)
        at = offset.base if offset.vector is None else offset.vector
        left = self.stores.lefts.get(mask.text)
        runs = self._runs(max(buffer.level, buffer.pointer.level, at.level, mask.level))
        mask = b.both(mask, runs)
        if left is not None:
            left = b.select(runs, left, integer(0))
        if not offset.is_wide:
            p = self._address(buffer, b.select(mask, at, buffer.readable))
            return b.emit(kind, 0, f"load {type_of(kind)}, {p.typed} {note}", p, least=buffer.level)
        mask, align = b.widen(mask), BYTES[kind]
        if offset.is_run:
            p = self._address(buffer, at)
            text = f"{self.stores.get(kind, p, align, mask, left)} {note}"
            return b.emit(kind, width, text, p, mask, least=buffer.level)
        if not masks_are_quick():
            return self._fetch_one_by_one(buffer, offset, mask)
        p = self._addresses(buffer, offset)
        name = f"@llvm.masked.gather.v{width}{spelled(kind)}.v{width}p0"
        b.declared[name] = f"declare {several} {name}({p.type}, i32, {mask.type}, {several})"
        given = f"{p.typed}, i32 {align}, {mask.typed}, {several} zeroinitializer"
        text = f"call {several} {name}({given}) {note}"
        return b.emit(kind, width, text, p, mask, least=buffer.level)

    def _fetch_one_by_one(self, buffer: Buffer, offset: Index, mask: Value) -> Value:
        """Values at places of their own, each loaded alone.

        An instruction that loads them under a mask takes 1.5 ns a value on CPUs of AVX2, this takes
        0.7 ns. Lanes where the mask does not hold load what can always be read.
        """
        b, kind = self.b, buffer.kind
        at = b.select(mask, self.spelled(offset), b.widen(buffer.readable))
        several = Value("poison", kind, b.width)
        for k in range(b.width):
            p = self._address(buffer, b.lane(at, k))
            load = f"load {type_of(kind)}, {p.typed} ; {buffer.version}"
            one = b.emit(kind, 0, load, p, least=buffer.level)
            text = f"insertelement {several.typed}, {one.typed}, i32 {k}"
            several = b.emit(kind, b.width, text, several, one)
        return several

    def _put(
        self, buffer: Buffer, offset: Index, mask: Value, x: Value, left: Value | None = None
    ) -> None:
        b, kind, width = self.b, buffer.kind, self.b.width
        if not offset.is_wide:
            p = self._address(buffer, offset.base)
            b.do(f"store {x.typed}, {p.typed}", x, p)
            return
        x, align = b.widen(x), BYTES[kind]
        if offset.is_run:
            self.stores.put(x, self._address(buffer, offset.base), align, mask, left)
            return
        p, mask = self._addresses(buffer, offset), b.widen(mask)
        name = f"@llvm.masked.scatter.v{width}{spelled(kind)}.v{width}p0"
        b.declared[name] = f"declare void {name}({x.type}, {p.type}, i32, {mask.type})"
        b.do(f"call void {name}({x.typed}, {p.typed}, i32 {align}, {mask.typed})", x, p, mask)

    def _address(self, buffer: Buffer, at: Value) -> Value:
        p = buffer.pointer
        text = f"getelementptr {type_of(buffer.kind)}, {p.typed}, {at.typed}"
        return p if at.number == 0 else self.b.emit("ptr", 0, text, p, at)

    def _addresses(self, buffer: Buffer, offset: Index) -> Value:
        p, at = buffer.pointer, self.spelled(offset)
        text = f"getelementptr {type_of(buffer.kind)}, {p.typed}, {at.typed}"
        return self.b.emit("ptr", at.wide, text, p, at)

    def _runs(self, level: int) -> Value:
        """Whether the loops, outside of which a load of a level moves, have any steps."""
        holds, level = TRUE, max(level, self.b.floors[-1])
        for within, steps in self.open:
            if within > level:
                holds = self.b.both(holds, self.b.op("icmp sgt", steps, integer(0)))
        return holds

    def guards(self) -> tuple[str, ...]:
        """The numbers of steps on which values that are loaded here depend."""
        return tuple([steps.text for _, steps in self.open])
