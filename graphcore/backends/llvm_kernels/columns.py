"""Sums and extremes over leading axes, tile by tile, so that memory is read in its own order.

Adding up one column after the other would read the whole matrix again for each few columns. Here
a few rows are added up for a strip of columns, then the next rows, and so on; the running totals of
the strip lie in the fastest cache. The bits are the same as if each column were added up by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from graphcore.ir import Node, TensorType
from graphcore.ir.sizes import minimum
from graphcore.ops import tensor as t

from .addressing import BYTES, ZERO, Buffer, Index
from .batches import in_ranges
from .builder import TRUE, Value, integer
from .conversions import DTYPES
from .flops import COSTS
from .folds import Fold, Totals, Walk, blocks_of
from .loop_axes import long_axes
from .nests import folds, reduced
from .places import At
from .reductions import FOLDS, Folding
from .results import changed
from .storing import reaches
from .walks import side_by_side, work
from .writer import Homes, Writer

COLUMNS = 256
"""How many columns threads get at least."""
LARGEST = max(BYTES.values())
"""How many bytes a total takes at most."""
FEW = 2**14
"""How many values of an operand that lies in no cache of one core are read at once."""
STRIP = 1024
"""How many columns are added up at once: their running totals are to stay in the fastest cache."""
ROWS = 8
"""How many rows are read at once: processors read ahead in about so many places of memory."""


def in_tiles(w: Writer, roots: Sequence[Node], buffers: Homes, vectors: int) -> bool:
    """Compute reductions of equal axes tile by tile, unless there is no reason to."""
    if not all(folds(root) and root.op is not t.matmul for root in roots):
        return False
    x, shape = roots[0].inputs[0], roots[0].type.shape
    values = w.program.bytes(x.type).number
    few = values is not None and values <= COSTS.bytes_in_cache
    if few or len(long_axes(shape)) < len(shape):
        return False
    sizes = [w.size(x.type.shape[axis]) for axis in reduced(roots[0])]
    blocks = blocks_of(sizes, 1, 1)
    if not any(blocks):
        return False
    Tiles(w, roots, buffers, sizes, blocks).written(vectors)
    return True


T = TypeVar("T")


class Kept(NamedTuple, Generic[T]):
    """The running totals of the columns of a strip, or the memory they are in between tiles."""

    totals: Sequence[T]
    added: Sequence[T]
    """What rounding has added to the totals."""
    parts: Sequence[T]
    """The totals of blocks of rows that are not complete."""


class Tiles:
    """Reductions of equal axes: `sizes` are those of the axes that vanish.

    The last of them that is cut into `blocks` is `cut`; those before it are walked place by place.
    A tile is `height` rows of a block, or all of a block of few.
    """

    def __init__(
        self,
        w: Writer,
        roots: Sequence[Node],
        buffers: Homes,
        sizes: Sequence[Value],
        blocks: Sequence[int],
    ) -> None:
        self.w, self.roots, self.sizes = w, roots, sizes
        self.cut = max(n for n, most in enumerate(blocks) if most)
        self.most = blocks[self.cut]
        self.height = self.most if self.most % ROWS else ROWS
        self.buffers = buffers
        folds = [self.fold(root) for root in roots]
        self.exact = all(fold.is_exact for fold in folds)
        self.in_parts = self.height < self.most and not self.exact
        self.memory = {
            root: self.memory_of(root, fold) for root, fold in zip(roots, folds, strict=True)
        }

    def fold(self, root: Node) -> Fold:
        """The fold of one of the columns."""
        return FOLDS[root.op](self.w.places, root, (ZERO,) * root.type.ndim, TRUE).fold

    def memory_of(self, root: Node, fold: Fold) -> Kept[Buffer]:
        """New memory for the running totals of a strip."""
        shape = (minimum(root.type.shape[-1], STRIP),)
        types = [TensorType(DTYPES[x.kind], shape) for x in fold.start]
        wanted = True, fold.rounds, self.in_parts
        return Kept(*[[self.w.new(root, type) for type in types if one] for one in wanted])

    def written(self, vectors: int) -> None:
        """Write the loops: over the axes that stay but the last, those that vanish, the last."""
        w, p = self.w, self.w.places
        *lead, last = map(w.size, self.roots[0].type.shape)

        def staying(at: At) -> Sequence[Value]:
            if len(at) < len(lead):
                return p.each(lead[len(at)], (), lambda i: staying((*at, i)), 0)
            self.columns(at, integer(0), last, vectors)
            return ()

        def own() -> None:
            self.memory = {
                root: Kept(*[[*map(w.own, buffers)] for buffers in kept])
                for root, kept in self.memory.items()
            }

        def rows() -> None:
            own()
            staying(())

        def in_columns() -> Sequence[Value]:
            own()
            some = lambda _, first, many: self.columns((), first, many, vectors)
            in_ranges(w, (), last, integer(COLUMNS), some)
            return ()

        def ranges() -> None:
            if p.shared is None or w.sharing.waiting is None or self.cut:
                in_columns()
            else:
                in_rows = partial(self.in_blocks, last, vectors, p.shared.memory)
                w.b.branch(reaches(w.b, last, 2 * COLUMNS), in_columns, in_rows)

        w.sharing.over(partial(work, p, self.roots), rows if lead else ranges)

    def in_blocks(
        self, many: Value, vectors: int, taken: Callable[[Value], Value]
    ) -> Sequence[Value]:
        """The sums of all blocks of rows, put into memory that is taken, then joined in order."""
        p, b, n, most = self.w.places, self.w.b, self.sizes[0], integer(self.most)
        whole = b.op("and", b.add(many, integer(b.width - 1)), integer(-b.width))
        blocks = b.op("sdiv", b.add(n, b.sub(most, integer(1))), most)
        each = b.mul(b.mul(blocks, whole), integer(LARGEST))
        totals = chain(*[kept.totals for kept in self.memory.values()])
        number = {buffer: k for k, buffer in enumerate(totals)}
        memory = taken(b.mul(each, integer(len(number))))

        def places(first: Value, columns: Sequence[Index]) -> list[Value]:
            row, found = b.mul(b.op("sdiv", first, most), whole), list[Value]()
            for buffer, i in self.of_columns(columns).totals:
                bytes = b.mul(b.add(row, i.base), integer(BYTES[buffer.kind]))
                offset = b.add(bytes, b.mul(each, integer(number[buffer])))
                text = f"getelementptr i8, {memory.typed}, {offset.typed}"
                found.append(b.emit("ptr", 0, text, memory, offset))
            return found

        def rows(first: Value) -> Sequence[Value]:
            def block(mask: Value, *columns: Index) -> Sequence[Value]:
                *_, walk = self.begun([(i,) for i in columns], mask)
                end = b.call("smin", b.add(first, most), n)
                parts = walk.block(0, (), first, end, self.most)
                for x, place in zip(parts, places(first, columns), strict=True):
                    b.do(f"store {x.typed}, {place.typed}, align 1", x, place)
                return ()

            side_by_side(p, many, vectors, block)
            return ()

        def joined(mask: Value, *columns: Index) -> Sequence[Value]:
            wanted, begun, walk = self.begun([(i,) for i in columns], mask)

            def join(first: Value, *now: Value) -> Sequence[Value]:
                parts = []
                for x, place in zip(walk.starts, places(first, columns), strict=True):
                    text = f"load {x.type}, {place.typed}, align 1"
                    parts.append(b.now(x.kind, text, x.wide, place))
                return walk.exactly(now[: len(parts)], now[len(parts) :], parts)

            start = [*walk.starts, *walk.nothing_added(walk.starts)]
            totals = p.looped(integer(0), n, self.most, start, join)
            self.give(wanted, begun, walk.of_each(totals), mask)
            return ()

        p.looped(integer(0), n, self.most, (), rows)
        side_by_side(p, many, vectors, joined)
        return ()

    def begun(
        self, places: Sequence[At], mask: Value
    ) -> tuple[list[tuple[Node, At]], list[Folding], Walk]:
        """The totals of some columns: which they are, how they begin and end, their loops."""
        p, wanted = self.w.places, [(root, at) for root in self.roots for at in places]
        begun = [FOLDS[root.op](p, root, at, mask) for root, at in wanted]
        return wanted, begun, Walk(p, [each.fold for each in begun], self.sizes)

    def of_columns(self, columns: Sequence[Index]) -> Kept[tuple[Buffer, Index]]:
        """The memory of the running totals of some columns: each buffer with an index."""
        every = [(kept, i) for kept in self.memory.values() for i in columns]
        return Kept(*[[(row, i) for kept, i in every for row in kept[k]] for k in range(3)])

    def give(
        self,
        wanted: Sequence[tuple[Node, At]],
        begun: Sequence[Folding],
        totals: Sequence[Totals],
        mask: Value,
    ) -> None:
        """Store results."""
        for (root, at), each, total in zip(wanted, begun, totals, strict=True):
            for buffer in self.buffers[root]:
                self.w.places.store(buffer, at, mask, each.finish(total))

    def columns(self, at: At, begin: Value, many: Value, vectors: int) -> None:
        """The loops for some columns, strip by strip."""
        b = self.w.b
        # Few values are taken as one tile, whose totals are in registers.
        bytes = self.w.program.bytes(self.roots[0].inputs[0].type)
        few = b.op("icmp sle", b.mul(self.sizes[self.cut], many), integer(FEW))
        one = b.op("or", few, b.op("icmp sle", bytes, integer(COSTS.bytes_in_cache)))

        def strip(i: Value) -> Sequence[Value]:
            size = b.call("smin", b.sub(many, i), integer(STRIP))
            self.strip(at, b.add(begin, i), size, one, vectors)
            return ()

        self.w.places.looped(integer(0), many, STRIP, (), strip)

    def strip(self, at: At, begin: Value, many: Value, one: Value, vectors: int) -> None:
        """The loops for a strip of columns: over the axes that vanish, then over the columns.

        `one` says whether all rows are one tile.
        """
        p, b = self.w.places, self.w.b
        n = self.sizes[self.cut]
        parts = b.op("sdiv", b.add(n, integer(self.height - 1)), integer(self.height))
        # An empty axis has one step, which begins and ends the totals of nothing.
        tiles = b.select(one, integer(1), b.call("smax", parts, integer(1)))

        def vanishing(inner: At) -> Sequence[Value]:
            if len(inner) == self.cut:
                return p.looped(integer(0), tiles, 1, (), lambda i: rows(inner, i))
            steps = b.call("smax", self.sizes[len(inner)], integer(1))
            return p.looped(integer(0), steps, 1, (), lambda i: vanishing((*inner, Index(i))))

        def rows(inner: At, i: Value) -> Sequence[Value]:
            first = b.mul(i, integer(self.height))
            end = b.select(one, n, b.call("smin", b.add(first, integer(self.height)), n))
            begins, ends = b.op("icmp eq", first, integer(0)), b.op("icmp eq", end, n)
            for i, size in zip([x.base for x in inner], self.sizes, strict=False):
                end = b.select(b.op("icmp sgt", size, integer(0)), end, integer(0))
                begins = b.both(begins, b.op("icmp eq", i, integer(0)))
                ends = b.both(ends, b.op("icmp sge", b.add(i, integer(1)), size))

            def tile(mask: Value, *columns: Index) -> Sequence[Value]:
                places = [(*at, p.plus(i, begin)) for i in columns]
                self.tile(places, columns, mask, inner, first, end, begins, ends)
                return ()

            side_by_side(p, many, vectors, tile)
            return ()

        vanishing(())

    def tile(
        self,
        places: Sequence[At],
        columns: Sequence[Index],
        mask: Value,
        inner: At,
        first: Value,
        end: Value,
        begins: Value,
        ends: Value,
    ) -> None:
        """Rows from `first` to `end`, added to the running totals of some columns of a strip."""
        p, b = self.w.places, self.w.b
        wanted, begun, walk = self.begun(places, mask)
        kept = [*chain(*self.of_columns(columns))]

        def fresh() -> Sequence[Value]:
            parts = walk.starts if self.in_parts else ()
            return [*walk.starts, *walk.nothing_added(walk.starts), *parts]

        def further() -> Sequence[Value]:
            return [p.load(changed(self.w, row), (i,), mask) for row, i in kept]

        def block(i: Value, *now: Value) -> Sequence[Value]:
            stop = b.call("smin", b.add(i, integer(self.most)), end)
            return self.with_rows(walk, inner, i, stop, now)

        before = b.branch(begins, fresh, further)
        found = p.looped(first, end, self.most, before, block, looks=b.signals.in_nests)

        def finished() -> Sequence[Value]:
            self.give(wanted, begun, walk.of_each(found), mask)
            return ()

        def stays() -> Sequence[Value]:
            for (row, i), x in zip(kept, found, strict=True):
                p.store(row, (i,), mask, x)
            return ()

        b.branch(ends, finished, stays)

    def with_rows(
        self, walk: Walk, inner: At, first: Value, end: Value, now: Sequence[Value]
    ) -> Sequence[Value]:
        """The running totals of some columns, with some rows of a block."""
        b, block = self.w.b, partial(walk.block, self.cut, inner, first, end, self.most)
        several = len(walk.starts)
        totals, added = now[:several], now[several : several + len(walk.sums)]
        if self.exact:
            return block(totals)
        if not self.in_parts:
            return walk.exactly(totals, added, block())
        part = block(now[several + len(walk.sums) :])
        most = integer(self.most)
        complete = b.op("icmp eq", b.op("srem", end, most), integer(0))
        complete = b.op("or", complete, b.op("icmp eq", end, self.sizes[self.cut]))
        return b.branch(
            complete,
            lambda: [*walk.exactly(totals, added, part), *walk.starts],
            lambda: [*totals, *added, *part],
        )
