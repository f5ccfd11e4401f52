"""PLACES: the value of each op at one element (`place`), or at several in vector lanes.

A rule is `(places, node, index, mask) -> value`; the index has an entry for each axis. Views are
arithmetic on the index, elementwise ops ask their operands for the same place, reductions loop.
So whatever is not stored is computed where it is read: fusion needs no rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, TypeAlias, TypeVar

from graphcore.ir import Node, Op, Shape, Size, TensorType
from graphcore.ir.provenance import setting
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from . import storing
from .addressing import ZERO, Buffer, Index, Memory, index_of
from .arithmetic import SCALAR, cast, kind_of, literal
from .builder import TRUE, WIDTH, Builder, Value, integer

At: TypeAlias = tuple[Index, ...]
Rule: TypeAlias = "Callable[[Places, Node, At, Value], Value]"
Body: TypeAlias = Callable[..., Sequence[Value]]
Position = TypeVar("Position")

WRITTEN_OUT = 8
"""Loops of so many steps are written out, one step after the other."""


def is_register(type: TensorType) -> bool:
    """Whether values of a type are held in a register: a number, or few side by side."""
    shape = type.shape
    return shape == () or (len(shape) == 1 and isinstance(shape[0], int) and 0 < shape[0] <= WIDTH)


class SharedBlocks(NamedTuple):
    """How blocks of long sums are shared: memory of so many bytes, and `Sharing.where_long`."""

    memory: Callable[[Value], Value]
    where_long: Callable[..., Sequence[Value]]


class Places(Memory):
    """The values of nodes at places, stored in `buffers`, in registers (`numbers`), or computed.

    Each body of a loop or branch has its own, as equal nodes of two bodies have other values.
    A sum along the last axis keeps `vectors` running totals, each in a vector of its own. For a
    concatenation in `parts`, only its part of that number is read along the lanes: see seams.py.
    `shared` says how threads share the blocks of long sums.
    """

    vectors = 1
    shared: SharedBlocks | None = None
    parts: Mapping[Node, int] = {}

    def __init__(self, b: Builder, size: Callable[[Size], Value]) -> None:
        super().__init__(b)
        self.size = size
        self.buffers: dict[Node, Buffer] = {}
        self.numbers: dict[Node, Value] = {}

    def at(self, node: Node, index: At, mask: Value = TRUE, stored: bool = True) -> Value:
        """The value of `node` at a place; `stored` says whether it may be read from its buffer.

        One index for several axes is the number of the place, in row-major order.
        """
        if mask.text == "false":
            return literal(0, kind_of(node))
        if node in self.numbers:
            return self.picked(self.numbers[node], index)
        key = self.known_as(node, index, mask)
        for known in reversed(self.b.known):
            if (found := known.get(key)) is not None:
                return found
        before = self.b.note
        if self.b.note_of is not None:
            self.b.note = self.b.note_of(node)
        if stored and node in self.buffers:
            value = self.load(self.buffers[node], index, mask)
        elif node.op in SCALAR:
            xs = [self.at(x, index, mask) for x in node.inputs]
            value = SCALAR[node.op](self.b, node, xs)
        else:
            value = PLACES[node.op](self, node, index, mask)
        self.b.note = before
        self.remember(node, index, mask, value)
        return value

    def remember(self, node: Node, index: At, mask: Value, value: Value) -> None:
        """Know the value of a node at a place."""
        if value.level < len(self.b.known):
            self.b.known[value.level][self.known_as(node, index, mask)] = value

    def known_as(self, node: Node, index: At, mask: Value) -> tuple[object, ...]:
        """The key of the value of a node at a place."""
        return self, node, index, mask, self.b.width, self.guards()

    def picked(self, x: Value, index: At) -> Value:
        """The places of a short vector in a register, or the number itself."""
        if not index or not x.wide:
            return x
        (i,), b = index, self.b
        if i.vector is None and i.base.number is not None and i.lane.number is not None:
            if not i.is_wide:
                return b.lane(x, max(i.base.number, 0))
            places = [i.base.number + i.lane.number * k for k in range(b.width)]
            if places == [*range(x.wide)]:
                return x
            return b.shuffle(x, [n if 0 <= n < x.wide else 0 for n in places])
        at, found = self.spelled(i), b.lane(x, 0)
        for k in range(1, x.wide):
            found = b.select(b.op("icmp eq", at, integer(k)), b.lane(x, k), found)
        return found

    def is_flat(self, node: Node) -> bool:
        """Whether each place of a node needs only places of the same number, and single numbers.

        Then one index, the number of the place, serves all axes: see `at`.
        """
        waiting, seen = [node], {node}
        while waiting:
            x = waiting.pop()
            if x in self.numbers:
                if x.type.shape and x.type.shape != node.type.shape:
                    return False
            elif (
                x in self.buffers
                or x.op is leaf.full
                or not x.type.shape
                or (x.op is t.expand and not x.inputs[0].type.shape)
            ):
                continue
            elif x.op in SCALAR or x.op in (t.reshape, t.pack):
                waiting += [y for y in x.inputs if y not in seen]
                seen.update(x.inputs)
            else:
                return False
        return True

    # ---- loops over places

    def at_once(self, vectors: int) -> AbstractContextManager[None]:
        """A context in which sums along the last axis have so many totals."""
        return setting(self, vectors=vectors)

    def reading(self, parts: Mapping[Node, int]) -> AbstractContextManager[None]:
        """A context in which each of these nodes reads one part of it along the lanes."""
        return setting(self, parts=parts)

    def lanes(self, size: Value, carried: Sequence[Value], body: Body) -> Sequence[Value]:
        """body(index, mask, *carried) over an axis, places side by side."""
        return self.run(integer(0), size, carried, body)

    def run(
        self,
        start: Value,
        stop: Value,
        carried: Sequence[Value],
        body: Body,
        most: int | None = None,
    ) -> Sequence[Value]:
        """body(index, mask, *carried) over places from `start` to `stop`, side by side."""

        def step(i: Value, *now: Value) -> Sequence[Value]:
            mask = self.left(stop, i)
            self.some.add(mask.text)
            return body(Index(i, integer(1)), mask, *now)

        if start.number == 0 and stop.number is not None and stop.number <= 2 * self.b.width:
            for i in range(0, stop.number, self.b.width):
                carried = step(integer(i), *carried)
            return carried
        if self.b.width > 2 * WIDTH and not carried:
            self.unmasked(start, stop, body, most)
            return carried
        size = self.b.sub(stop, start).number
        fits = size is not None and size % self.b.width == 0
        if fits or (self.b.signals.in_nests and not storing.masks_are_quick() and most is None):
            return self.whole_first(start, stop, carried, body, step)
        return self.looped(start, stop, self.b.width, carried, step, most)

    def whole_first(
        self, start: Value, stop: Value, carried: Sequence[Value], body: Body, rest: Body
    ) -> Sequence[Value]:
        """body(index, mask, *carried) without masks for all whole vectors, then for those left.

        AMD's processors read ahead less where lanes are loaded under a mask: arrays beyond the
        caches take twice as long to read.
        """
        b, size = self.b, self.b.sub(stop, start)
        if size.number is None:
            middle = b.add(start, b.op("and", size, integer(-b.width)))
        else:
            middle = b.add(start, integer(size.number & -b.width))

        def whole(i: Value, *now: Value) -> Sequence[Value]:
            return body(Index(i, integer(1)), TRUE, *now)

        carried = self.looped(start, middle, b.width, carried, whole)
        if middle == stop:
            return carried
        return self.looped(middle, stop, b.width, carried, rest, b.width)

    def unmasked(self, start: Value, stop: Value, body: Body, most: int | None) -> None:
        """body(index, mask) side by side as long as there are enough places, then one by one.

        Masks of so many lanes cost more than the rest, and AVX2 has none of bytes.
        """
        b = self.b
        whole = b.op("and", b.sub(stop, start), integer(-b.width))
        middle = b.add(start, whole)
        self.looped(start, middle, b.width, (), lambda i: body(Index(i, integer(1)), TRUE), most)
        self.looped(middle, stop, 1, (), lambda i: body(Index(i), TRUE), b.width)

    def left(self, stop: Value, i: Value) -> Value:
        """Which of the places from i on come before `stop`."""
        return self.stores.first(self.b.sub(stop, i))

    def each(
        self, size: Value, carried: Sequence[Value], body: Body, written_out: int = WRITTEN_OUT
    ) -> Sequence[Value]:
        """body(index, *carried) for each place of an axis."""
        if size.number is not None and size.number <= written_out:
            for i in range(size.number):
                carried = body(Index(integer(i)), *carried)
            return carried
        return self.looped(integer(0), size, 1, carried, lambda i, *now: body(Index(i), *now))

    def looped(
        self,
        start: Value,
        stop: Value,
        step: int,
        carried: Sequence[Value],
        body: Body,
        most: int | None = None,
        looks: bool = False,
    ) -> Sequence[Value]:
        """A loop; values that are loaded before it are guarded if it may have no steps."""
        with self.within(start, stop):
            return self.b.loop(start, stop, step, carried, body, most, looks)

    @contextmanager
    def within(self, start: Value, stop: Value) -> Iterator[None]:
        """A context in which values that are loaded before a loop are guarded: see `open`."""
        steps = self.b.sub(stop, start)
        may_be_empty = steps.number is None or steps.number <= 0
        if may_be_empty:
            self.open.append((self.b.level + 1, steps))
        yield
        if may_be_empty:
            self.open.pop()

    def everywhere(self, shape: Shape, body: Callable[[At, Value], None]) -> None:
        """body(index, mask) at all places of a shape, those of the last axis side by side."""

        def inner(index: At) -> Sequence[Value]:
            n = len(index)
            if n == len(shape):
                body(index, TRUE)
            elif n < len(shape) - 1:
                self.each(self.size(shape[n]), (), lambda i: inner((*index, i)))
            else:

                def last(i: Index, mask: Value) -> Sequence[Value]:
                    body((*index, i), mask)
                    return ()

                self.lanes(self.size(shape[n]), (), last)
            return ()

        inner(())


# ---- views


def expand(p: Places, node: Node, index: At, mask: Value) -> Value:
    axes = node.attrs["axes"]
    kept = tuple([i for axis, i in enumerate(index) if axis not in axes])
    return p.at(node.inputs[0], kept, mask)


def transpose(p: Places, node: Node, index: At, mask: Value) -> Value:
    perm = node.attrs["perm"]
    return p.at(node.inputs[0], tuple([index[perm.index(i)] for i in range(len(perm))]), mask)


def slice_(p: Places, node: Node, index: At, mask: Value) -> Value:
    ranges = zip(index, node.attrs["starts"], node.attrs["steps"], strict=True)
    at = [p.plus(p.times(i, integer(step)), p.size(start)) for i, start, step in ranges]
    return p.at(node.inputs[0], tuple(at), mask)


def ones_aside(shape: Shape) -> list[Size]:
    """A shape without its axes of size 1."""
    return [n for n in shape if n != 1]


def repeats_number(node: Node) -> bool:
    """Whether a node has the same number everywhere."""
    return node.op is t.expand and not node.inputs[0].type.shape


def counts_through(node: Node) -> bool:
    """Whether a reshape does more than add and remove axes of size 1."""
    if node.op not in (t.reshape, t.pack):
        return False
    return ones_aside(node.type.shape) != ones_aside(node.inputs[0].type.shape)


def reshape(p: Places, node: Node, index: At, mask: Value) -> Value:
    """Axes of size 1 come and go; equal axes in front stay; all else is counted through."""
    (x,), new = node.inputs, node.type.shape
    old = x.type.shape
    if len(index) == 1 < len(new):
        return p.at(x, index, mask)
    if not counts_through(node):
        rest = iter([i for i, n in zip(index, new, strict=True) if n != 1])
        return p.at(x, tuple([ZERO if n == 1 else next(rest) for n in old]), mask)
    sizes = [p.size(n) for n in new]
    if x in p.buffers and x not in p.numbers:
        buffer, k = p.buffers[x], p.buffers[x].skipped
        return p.load(buffer._replace(skipped=0), [p.place(index[k:], sizes[k:])], mask)
    same = 0
    while same < min(len(old), len(new)) - 1 and old[same] == new[same]:
        same += 1
    total = p.place(index[same:], sizes[same:])
    at: list[Index] = []
    for size in reversed(old[same + 1 :]):
        total, inner = p.divided(total, p.size(size))
        at.append(inner)
    return p.at(x, (*index[:same], total, *reversed(at)) if old else (), mask)


def of_windows(
    node: Node, index: Sequence[Position]
) -> tuple[list[Position], Iterable[tuple[int, Position, int, int]]]:
    """The index of a window, and for each of its axes the place in it, its stride and dilation."""
    attrs, at = node.attrs, list(index)
    first, several = attrs["axes"][0], len(attrs["axes"])
    inner = at[first : first + several]
    del at[first : first + several]
    return at, zip(attrs["axes"], inner, attrs["strides"], attrs["dilations"], strict=True)


def windows(p: Places, node: Node, index: At, mask: Value) -> Value:
    at, settings = of_windows(node, index)
    for axis, j, stride, dilation in settings:
        at[axis] = p.sum(p.times(at[axis], integer(stride)), p.times(j, integer(dilation)))
    return p.at(node.inputs[0], tuple(at), mask)


def gather(p: Places, node: Node, index: At, mask: Value) -> Value:
    return p.at(node.inputs[0], gathered(p, node, index, mask), mask)


def gathered(p: Places, node: Node, index: At, mask: Value) -> At:
    """The index in the first operand of what a gather has at an index.

    All positions have been checked before, but another thread may change an input's.
    """
    x, *indices = node.inputs
    axes, rank = node.attrs["axes"], indices[0].type.ndim
    rest = iter(index[rank:])
    at = [ZERO if axis in axes else next(rest) for axis in range(x.type.ndim)]
    for axis, positions in zip(axes, indices, strict=True):
        i, wrong = counted(p, position(p, positions, index[:rank], mask), x.type.shape[axis])
        at[axis] = index_of(p.b.select(wrong, integer(0), i))
    return tuple(at)


def position(p: Places, positions: Node, index: At, mask: Value) -> Value:
    """A position as it is given, as 64 bits, with or without a sign."""
    x = p.at(positions, index, mask)
    return cast(p.b, x, "u64" if x.kind[0] == "u" else "i64")


def counted(p: Places, at: Value, size: Size) -> tuple[Value, Value]:
    """A position counted from the start of an axis, and whether it is outside.

    Unsigned ones count from the start alone, even those that would be negative if they were signed.
    """
    b, n, i = p.b, p.size(size), at._replace(kind="i64")
    if at.kind == "i64":
        i = b.select(b.op("icmp slt", i, integer(0)), b.op("add", i, n), i)
    return i, b.op("icmp uge", i, n)


# ---- leaves


def full(p: Places, node: Node, index: At, mask: Value) -> Value:
    return literal(node.attrs["value"].item(), kind_of(node))


def iota(p: Places, node: Node, index: At, mask: Value) -> Value:
    return cast(p.b, p.spelled(index[0]), kind_of(node))


def extent(p: Places, node: Node, index: At, mask: Value) -> Value:
    return cast(p.b, p.size(node.attrs["size"]), kind_of(node))


PLACES: dict[Op, Rule] = {
    t.expand: expand,
    t.transpose: transpose,
    t.slice_: slice_,
    t.reshape: reshape,
    t.pack: reshape,
    t.windows: windows,
    t.gather: gather,
    leaf.full: full,
    leaf.iota: iota,
    leaf.extent: extent,
}
