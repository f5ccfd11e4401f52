"""Updates of a tensor at positions, one after the other, so that positions may repeat.

To load a value that was just stored takes several times as long as to add to it. Where positions
mostly repeat the one before, as sorted ones do, values to be added to are kept in a register. Where
many floats are added, what rounding adds to each place is added up beside it, in double precision,
and subtracted in the end: no addition waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from graphcore.analysis.values import are_distinct
from graphcore.ir import Node, Op, TensorType, reached
from graphcore.ir.sizes import count
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .addressing import BYTES, ZERO, Buffer, Index
from .arena import LINE
from .arithmetic import SCALAR, cast, kind_of, literal, rule_of
from .batches import in_ranges
from .builder import FALSE, TRUE, WIDTH, Value, integer
from .conversions import DOUBLE, DTYPES
from .flops import COSTS
from .folds import across, error, if_finite
from .places import At, Places, counted, gathered, position
from .results import changed, finished
from .storing import reaches
from .writer import Homes, Writer

COMBINED: dict[Op, Op] = {
    t.scatter: e.add,
    t.scatter_add: e.add,
    t.scatter_prod: e.multiply,
    t.scatter_max: e.maximum,
    t.scatter_min: e.minimum,
}
"""How an update is combined with the value before; updates of other ops replace it."""
SAMPLE = 512
"""How many positions are compared with the next one to see how most of them follow each other."""
FEW_FLOATS = 48
"""How many floats are added without looking at what rounding adds."""
AHEAD = 8
"""So many updates before their turn rows of memory are asked for."""
LINES = 16
"""The most lines of the cache that are asked for at once; of longer rows the CPU asks for more."""
SOME_COLUMNS = 256
"""How many places of each row that is updated threads get at least."""
START = {t.scatter: 0, t.scatter_prod: 1}
"""The value of all places before the updates, unless the first operand has them."""


def received(w: Writer, node: Node, homes: Homes) -> None:
    """All positions are checked first; places along the last axis, if it has none, are lanes."""
    p, b, axes, kind = w.places, w.b, node.attrs["axes"], kind_of(node)
    buffer = w.home(node)
    w.check(node, node)

    def begin(index: At, mask: Value) -> None:
        if node.op in START:
            value = literal(START[node.op], kind)
        else:
            value = p.at(node.inputs[0], index, mask)
        p.store(buffer, index, mask, value)

    if not lies_there(w, node, homes):
        with w.vectorised(node):
            w.everywhere(node.type.shape, begin)
    side_by_side = node.type.ndim - 1 not in axes
    added = what_rounding_adds(w, node, node.inputs[-len(axes) :])

    write = Updates(w, node, [buffer, *added])
    with w.vectorised(node):
        if side_by_side:
            w.sharing.over(write.work, write.in_rows)
        elif write.gathers():
            b.branch(write.are_many(), write.of_stored_ones, write.in_order)
        else:
            w.sharing.over(write.work, write.in_places)
    for there in added:
        subtract(w, node, buffer, there)
    finished(w, node, homes, buffer)


class Range(NamedTuple):
    """Places of an axis."""

    begin: Value
    size: Value


class Updates:
    """The loops over updates of a buffer, and of that of what rounding adds."""

    def __init__(self, w: Writer, node: Node, buffers: Sequence[Buffer]) -> None:
        self.w, self.p, self.b, self.node, self.axes = w, w.places, w.b, node, node.attrs["axes"]
        self.updates, *self.indices = node.inputs[-len(self.axes) - 1 :]
        self.buffer, *self.added = buffers
        self.shape, self.rank = self.updates.type.shape, self.indices[0].type.ndim
        self.work = partial(w.program.count, self.shape)

    def in_rows(self) -> None:
        """Threads share the last axis, which has no positions, where it is long: lanes stand there.

        Else each has a range of the first axis with positions: to look at all of them takes less
        time than to read a part of each short row from memory.
        """
        columns, sharing = self.w.size(self.shape[-1]), self.w.sharing

        def by_columns() -> Sequence[Value]:
            some = lambda _, first, many: self.along_rows(first, many, None)
            in_ranges(self.w, (), columns, integer(SOME_COLUMNS), some)
            return ()

        def by_places() -> Sequence[Value]:
            along = partial(self.along_rows, integer(0), columns)
            self.by_ranges(sharing.threads(), along)
            return ()

        if sharing.waiting is None or not self.rank:
            by_columns()
        else:
            self.b.branch(reaches(self.b, columns, 2 * SOME_COLUMNS), by_columns, by_places)

    def along_rows(self, first: Value, many: Value, own: Range | None) -> None:
        """So many places of each row from a first one on, of all updates or those in a range."""
        p, b, n = self.p, self.b, len(self.shape) - 1

        def along(index: At) -> Sequence[Value]:
            row = lambda i, mask: self.put(self.place_of((*index, i)), (*index, i), mask)
            return p.run(first, b.add(first, many), (), row)

        def inner(index: At) -> Sequence[Value]:
            if len(index) == self.rank > 0:
                self.prefetch(index, first, many, own)
            if len(index) < n:
                further = lambda i: inner((*index, i))
                return p.each(self.w.size(self.shape[len(index)]), (), further)
            inside = self.is_inside(own, self.place_of((*index, ZERO)))
            return b.branch(inside, lambda: along(index))

        inner(())

    def prefetch(self, index: At, first: Value, many: Value, own: Range | None) -> None:
        """Have the rows that a later update reads and changes brought near: they lie anywhere.

        Where it is of another thread, the first row of all is asked for, which is there.
        """
        p, b = self.p, self.b
        last = b.sub(self.w.size(self.shape[self.rank - 1]), integer(1))
        later = Index(b.call("smin", b.add(p.spelled(index[-1]), integer(AHEAD)), last))
        zeros = (ZERO,) * (len(self.shape) - self.rank - 1)
        index = (*index[:-1], later, *zeros, Index(first))
        at = self.place_of(index)
        mine = self.is_inside(own, at)

        def row(buffer: Buffer, place: Callable[[], At]) -> Sequence[Value]:
            start = b.select(mine, p.place(place(), buffer.shape).base, integer(0))
            values = LINE // BYTES[buffer.kind]
            some = b.call("smin", many, integer(LINES * values))

            def line(i: Value) -> Sequence[Value]:
                p.prefetch(buffer, b.add(start, i), "i32 1, i32 3")
                return ()

            return p.looped(integer(0), some, values, (), line)

        for buffer in (self.buffer, *self.added):
            b.branch(self.is_far(self.node), partial(row, buffer, lambda: at))
        for gather in self.gathers_of_rows():
            x, place = gather.inputs[0], partial(gathered, p, gather, index, TRUE)
            b.branch(self.is_far(x), partial(row, p.buffers[x], place))

    def is_far(self, x: Node) -> Value:
        """Whether a value is too large for a cache of one core."""
        most = integer(COSTS.bytes_in_cache)
        return self.b.op("icmp sgt", self.w.program.bytes(x.type), most)

    def gathers_of_rows(self) -> list[Node]:
        """The gathers whose rows are read where those of updates are computed, from memory."""
        alike = lambda x: self.computed(y for y in x.inputs if x.op in SCALAR)
        found = reached(self.computed([self.updates]), alike)
        return [x for x in found if x.op is t.gather and x.inputs[0] in self.p.buffers]

    def is_inside(self, own: Range | None, at: At) -> Value:
        """Whether a place is in a range of the first axis that has positions."""
        if own is None:
            return TRUE
        away = self.b.op("sub", self.p.spelled(at[self.axes[0]]), own.begin)
        return self.b.op("icmp ult", away, own.size)

    def by_ranges(self, parts: Value, write: Callable[[Range], None]) -> None:
        """Threads share so many equal ranges of the first axis that has positions."""
        b, size = self.b, self.w.size(self.node.type.shape[self.axes[0]])

        def some(begin: Value, end: Value) -> None:
            first, last = [b.op("udiv", b.mul(size, x), parts) for x in (begin, end)]
            write(Range(first, b.sub(last, first)))

        self.w.sharing.steps(parts, some)

    def gathers(self) -> list[Node]:
        """The gathers that updates are computed by, of values at other positions."""
        found = reached(self.computed([self.updates]), lambda x: self.computed(x.inputs))
        return [x for x in found if x.op is t.gather]

    def computed(self, xs: Iterable[Node]) -> list[Node]:
        """Those of some values that are computed where they are read."""
        p = self.p
        return [x for x in xs if x.inputs and x not in p.buffers and x not in p.numbers]

    def of_several(self) -> list[Node]:
        """The operands of gathers that are computed of several tensors: each is read at random."""
        found = dict[Node, None]()
        for x in self.computed([gather.inputs[0] for gather in self.gathers()]):
            below = reached([x], lambda y: self.computed([y]) and y.inputs)
            if len([y for y in below if y in self.p.buffers and y.type.shape]) > 1:
                found[x] = None
        return [*found]

    def are_many(self) -> Value:
        """Whether updates that gather are stored first: if they are many.

        So are operands of gathers that are computed of several tensors, if they have no more places
        than there are updates.
        """
        number, least = self.work(), integer(COSTS.updates_stored)
        for x in self.of_several():
            least = self.b.call("smax", least, self.w.program.count(x.type.shape))
        if number.number is not None and least.number is not None:
            return TRUE if number.number >= least.number else FALSE
        return self.b.op("icmp sge", number, least)

    def of_stored_ones(self) -> Sequence[Value]:
        """The updates are computed by lanes and stored, before any is made."""
        stored = [*self.of_several(), self.updates]
        for x in stored:
            self.store(x)
        self.w.sharing.over(self.work, self.in_places, once=True)
        for x in stored:
            del self.p.buffers[x]
        return ()

    def store(self, x: Node) -> None:
        """Store a value, whose loops threads share, for as long as the updates are made."""
        w, p = self.w, self.p
        buffer, work = w.new(self.node, x.type), partial(w.program.count, x.type.shape)
        put = lambda index, mask: p.store(buffer, index, mask, p.at(x, index, mask))
        with w.vectorised(x):
            w.sharing.over(work, partial(p.everywhere, x.type.shape, put), once=True)
        p.buffers[x] = changed(w, buffer)

    def in_order(self) -> Sequence[Value]:
        """One thread makes all updates."""
        with self.w.sharing.in_order():
            self.in_turn(None)
        return ()

    def in_places(self) -> None:
        """Each thread makes the updates of its own range of the first axis that has positions.

        All look at all positions. Where these do not mostly ascend, a branch on whether one is in a
        range is predicted wrongly so often that nothing is gained: one thread makes all updates.
        """
        sharing = self.w.sharing
        if sharing.waiting is None or not self.rank:
            self.in_order()
            return
        with sharing.in_order():
            ascend = mostly(self.p, "icmp sle", self.indices[0])
        self.by_ranges(self.b.select(ascend, sharing.threads(), integer(1)), self.in_turn)

    def in_turn(self, own: Range | None) -> None:
        """All updates, or those in a range."""
        p, b, shape, node = self.p, self.b, self.shape, self.node

        def one(index: At, *before: Value) -> Sequence[Value]:
            at = self.place_of(index)
            update = partial(self.put, at, index, TRUE, *before)
            return b.branch(self.is_inside(own, at), update, lambda: before)

        def inner(index: At) -> Sequence[Value]:
            if len(index) == len(shape):
                return one(index)
            return p.each(self.w.size(shape[len(index)]), (), lambda i: inner((*index, i)))

        def in_register() -> Sequence[Value]:
            held = [literal(0, x.kind) for x in (self.buffer, *self.added)]
            each = lambda i, *now: one((i,), *now)
            p.each(self.w.size(shape[0]), [integer(-1), *held], each)
            return ()

        is_row = self.rank == len(shape) == len(self.axes) == 1
        if node.op in COMBINED and self.buffer.kind in ("f64", "f32") and is_row:
            b.branch(mostly(p, "icmp eq", self.indices[0]), in_register, lambda: inner(()))
        else:
            inner(())

    def place_of(self, index: At) -> At:
        """Where the update at an index goes."""
        p, b, node = self.p, self.b, self.node
        rest = iter(index[self.rank :])
        at = [ZERO if axis in self.axes else next(rest) for axis in range(node.type.ndim)]
        for axis, positions in zip(self.axes, self.indices, strict=True):
            given = position(p, positions, index[: self.rank], TRUE)
            i, wrong = counted(p, given, node.type.shape[axis])
            at[axis] = Index(b.select(wrong, integer(0), i))
        return tuple(at)

    def put(self, at: At, index: At, mask: Value, *before: Value) -> Sequence[Value]:
        """Update a place; `before` are the last one and its value, if these are known."""
        p, b, op, kind = self.p, self.b, self.node.op, self.buffer.kind
        value, place = p.at(self.updates, index, mask), p.place(at, self.buffer.shape).base
        if op in COMBINED:

            def load() -> Sequence[Value]:
                return [p.load(changed(self.w, x), at, mask) for x in (self.buffer, *self.added)]

            other = b.op("icmp ne", place, before[0]) if before else TRUE
            old, *lost = b.branch(other, load, lambda: before[1:])
            total = rule_of(COMBINED[op], kind)(b, old, value)
            for n, there in enumerate(self.added):
                more = cast(b, error(b, old, value, total), there.kind)
                lost[n] = rule_of(e.add, there.kind)(b, lost[n], more)
                p.store(there, at, mask, lost[n])
            value = total
            before = (place, value, *lost) if before else ()
        p.store(self.buffer, at, mask, value)
        return before


def put_singly(node: Node) -> Sequence[Node]:
    """What an update reads one place after the other, not by lanes."""
    axes = node.attrs["axes"]
    return node.inputs[-len(axes) - 1 :] if node.type.ndim - 1 in axes else ()


def subtract(w: Writer, node: Node, buffer: Buffer, added: Buffer) -> None:
    """Subtract what rounding has added to each place."""
    p, b = w.places, w.b

    def exactly(index: At, mask: Value) -> None:
        total, more = [p.load(changed(w, x), index, mask) for x in (buffer, added)]
        wide, minus = cast(b, total, added.kind), rule_of(e.subtract, added.kind)
        less = minus(b, wide, if_finite(b, more))
        p.store(buffer, index, mask, cast(b, less, buffer.kind))

    with w.vectorised(node):
        w.everywhere(node.type.shape, exactly)


def what_rounding_adds(w: Writer, node: Node, indices: Sequence[Node]) -> list[Buffer]:
    """The buffer of what rounding has added to each place; none if few floats are added."""
    many, kind = count(indices[0].type.shape), kind_of(node)
    few = are_distinct(indices) or (isinstance(many, int) and many <= FEW_FLOATS)
    if few or COMBINED.get(node.op) is not e.add or kind[0] not in "fc":
        return []
    wide = DOUBLE.get(kind, kind)
    buffer, zero = w.new(node, TensorType(DTYPES[wide], node.type.shape)), literal(0, wide)
    with w.vectorised(node):
        clear = lambda index, mask: w.places.store(buffer, index, mask, zero)
        w.everywhere(node.type.shape, clear)
    return [buffer]


def mostly(p: Places, compare: str, positions: Node) -> Value:
    """Whether of the first positions three in four, or more, compare so with the one after them.

    Where fewer do, wrong predictions of branches cost as much as is gained.
    """
    b, shape = p.b, positions.type.shape
    many, before = b.sub(p.size(shape[-1]), integer(1)), (ZERO,) * (len(shape) - 1)
    if many.number is not None and many.number < WIDTH:
        return FALSE
    stop = b.call("smin", many, integer(SAMPLE))

    def count(i: Index, mask: Value, *found: Value) -> Sequence[Value]:
        at = i, p.plus(i, integer(1))
        this, following = [position(p, positions, (*before, k), mask) for k in at]
        so = b.both(b.op(compare, this, following), mask)
        return [b.op("add", found[0], b.select(so, integer(1), integer(0)))]

    (lanes,) = p.run(integer(0), stop, [b.widen(integer(0))], count)
    (found,) = across(b, lambda x, y: [b.op("add", x[0], y[0])], [lanes])
    return b.op("icmp sgt", b.mul(found, integer(4)), b.mul(stop, integer(3)))


def lies_there(w: Writer, node: Node, homes: Homes) -> bool:
    """Whether the tensor that is updated lies where the result goes."""
    old, new = w.places.buffers.get(node.inputs[0]), homes.get(node)
    return old is not None and bool(new) and old.pointer == homes[node][0].pointer


def overwritten(w: Writer, node: Node, homes: Homes) -> None:
    """A part of a carry written over the one of the step before."""
    p, part, (buffer, *_) = w.places, node.inputs[1], homes[node]
    starts, steps = node.attrs["starts"], node.attrs["steps"]

    def put(index: At, mask: Value) -> None:
        ranges = zip(index, starts, steps, strict=True)
        at = [p.plus(p.times(i, integer(step)), w.size(start)) for i, start, step in ranges]
        p.store(buffer, at, mask, p.at(part, index, mask))

    assert lies_there(w, node, homes)
    with w.vectorised(part):
        w.everywhere(part.type.shape, put)
    finished(w, node, homes, buffer)


def by_parts(w: Writer, roots: Sequence[Node], homes: Homes) -> None:
    """A concatenation along its first axis, each part of it in loops of its own."""
    (root,), start = roots, integer(0)
    buffers, one = (
        homes.get(root) or [w.new(root)],
        TensorType(root.type.dtype, root.type.shape[1:]),
    )
    for x in root.inputs:
        w.store(
            x, [buffer._replace(pointer=w.row(buffer.pointer, one, start)) for buffer in buffers]
        )
        start = w.b.add(start, w.size(x.type.shape[0]))
    w.places.buffers[root] = buffers[0]._replace(level=w.b.level)


RECEIVING = dict.fromkeys([*COMBINED, t.put], received)
