"""Sums and extremes over leading axes, tile by tile, so that memory is read in its own order.

Adding up one column after the other would read the whole matrix again for each few columns. Here
some rows are added up for all columns, then the next rows, and so on; the result holds the totals
in between. The bits are the same as if each column were added up by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from graphcore.ir import Node, TensorType
from graphcore.ir.sizes import count
from graphcore.ops import tensor as t

from .addressing import BYTES, ZERO, Buffer, Index
from .batches import in_ranges
from .builder import TRUE, Value, integer
from .conversions import DTYPES
from .folds import Totals, Walk, blocks_of
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
IN_CACHE = 2**14
"""How many values are read from the fastest cache in any order."""


def in_tiles(w: Writer, roots: Sequence[Node], buffers: Homes, vectors: int) -> bool:
    """Compute reductions of equal axes tile by tile, unless there is no reason to."""
    if not all(folds(root) and root.op is not t.matmul for root in roots):
        return False
    x, shape = roots[0].inputs[0], roots[0].type.shape
    values = count(x.type.shape)
    few = isinstance(values, int) and values <= IN_CACHE
    if few or len(long_axes(shape)) < len(shape):
        return False
    sizes = [w.size(x.type.shape[axis]) for axis in reduced(roots[0])]
    blocks = blocks_of(sizes, 1, 1)
    if not any(blocks):
        return False
    Tiles(w, roots, buffers, sizes, blocks).written(vectors)
    return True


class Tiles:
    """Reductions of equal axes: `sizes` are those of the axes that vanish.

    The last of them that is cut into `blocks` is `cut`; those before it are walked place by place.
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
        self.buffers = buffers
        self.rows = {root: [w.new(root, row) for row in self.kept(root)] for root in roots}

    def kept(self, root: Node) -> list[TensorType]:
        """The types of what is kept of a row between tiles: totals, and what rounding has added."""
        shape = root.type.shape
        fold = FOLDS[root.op](self.w.places, root, (ZERO,) * len(shape), TRUE).fold
        kinds = [x.kind for x in fold.start] * (2 if fold.rounds else 1)
        return [TensorType(DTYPES[kind], shape[-1:]) for kind in kinds]

    def written(self, vectors: int) -> None:
        """Write the loops: over the axes that stay but the last, those that vanish, the last."""
        w, p = self.w, self.w.places
        *lead, last = map(w.size, self.roots[0].type.shape)

        def staying(at: At) -> Sequence[Value]:
            if len(at) < len(lead):
                return p.each(lead[len(at)], (), lambda i: staying((*at, i)), 0)
            self.columns(at, integer(0), last, vectors)
            return ()

        def rows() -> None:
            for root, taken in self.rows.items():
                kept = zip(taken, self.kept(root), strict=True)
                self.rows[root] = [w.own(buffer, row) for buffer, row in kept]
            staying(())

        def in_columns() -> Sequence[Value]:
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
        number = {buffer: k for k, buffer in enumerate(chain(*self.rows.values()))}
        memory = taken(b.mul(each, integer(len(number))))

        def places(first: Value, wanted: Sequence[tuple[Node, At]], walk: Walk) -> list[Value]:
            row, found = b.mul(b.op("sdiv", first, most), whole), list[Value]()
            for buffer, at in self.of_totals(wanted, walk)[0]:
                bytes = b.mul(b.add(row, at[-1].base), integer(BYTES[buffer.kind]))
                offset = b.add(bytes, b.mul(each, integer(number[buffer])))
                text = f"getelementptr i8, {memory.typed}, {offset.typed}"
                found.append(b.emit("ptr", 0, text, memory, offset))
            return found

        def rows(first: Value) -> Sequence[Value]:
            def block(mask: Value, *columns: Index) -> Sequence[Value]:
                wanted, _, walk = self.begun([(i,) for i in columns], mask)
                end = b.call("smin", b.add(first, most), n)
                parts = walk.block(0, (), first, end, self.most)
                for x, place in zip(parts, places(first, wanted, walk), strict=True):
                    b.do(f"store {x.typed}, {place.typed}, align 1", x, place)
                return ()

            side_by_side(p, many, vectors, block)
            return ()

        def joined(mask: Value, *columns: Index) -> Sequence[Value]:
            wanted, begun, walk = self.begun([(i,) for i in columns], mask)

            def join(first: Value, *now: Value) -> Sequence[Value]:
                parts = []
                for x, place in zip(walk.starts, places(first, wanted, walk), strict=True):
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

    def of_totals(
        self, wanted: Sequence[tuple[Node, At]], walk: Walk
    ) -> tuple[list[tuple[Buffer, At]], list[tuple[Buffer, At]]]:
        """Where the totals of some columns are kept, and what rounding has added to them."""
        totals, added = list[tuple[Buffer, At]](), list[tuple[Buffer, At]]()
        for (root, at), fold in zip(wanted, walk.folds, strict=True):
            rows, many = [(row, at[-1:]) for row in self.rows[root]], len(fold.start)
            totals, added = [*totals, *rows[:many]], [*added, *rows[many:]]
        return totals, added

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
        """The loops for some columns: over the axes that vanish, then over the columns."""
        p, b = self.w.places, self.w.b
        n = self.sizes[self.cut]
        # Few values are taken as one tile: they are in the fastest cache, and totals in registers.
        few = b.op("icmp sle", b.mul(n, many), integer(IN_CACHE))
        parts = b.op("sdiv", b.add(n, integer(self.most - 1)), integer(self.most))
        # An empty axis has one step, which begins and ends the totals of nothing.
        tiles = b.select(few, integer(1), b.call("smax", parts, integer(1)))

        def vanishing(inner: At) -> Sequence[Value]:
            if len(inner) == self.cut:
                return p.looped(integer(0), tiles, 1, (), lambda i: rows(inner, i))
            steps = b.call("smax", self.sizes[len(inner)], integer(1))
            return p.looped(integer(0), steps, 1, (), lambda i: vanishing((*inner, Index(i))))

        def rows(inner: At, i: Value) -> Sequence[Value]:
            first = b.mul(i, integer(self.most))
            end = b.select(few, n, b.call("smin", b.add(first, integer(self.most)), n))
            begins, ends = b.op("icmp eq", first, integer(0)), b.op("icmp eq", end, n)
            for i, size in zip([x.base for x in inner], self.sizes, strict=False):
                end = b.select(b.op("icmp sgt", size, integer(0)), end, integer(0))
                begins = b.both(begins, b.op("icmp eq", i, integer(0)))
                ends = b.both(ends, b.op("icmp sge", b.add(i, integer(1)), size))

            def tile(mask: Value, *columns: Index) -> Sequence[Value]:
                places = [(*at, p.plus(i, begin)) for i in columns]
                self.tile(places, mask, inner, first, end, begins, ends)
                return ()

            side_by_side(p, many, vectors, tile)
            return ()

        vanishing(())

    def tile(
        self,
        places: Sequence[At],
        mask: Value,
        inner: At,
        first: Value,
        end: Value,
        begins: Value,
        ends: Value,
    ) -> None:
        """Rows from `first` to `end`, added to the totals of some columns."""
        p, b, most = self.w.places, self.w.b, self.most
        wanted, begun, walk = self.begun(places, mask)
        kept = [*chain(*self.of_totals(wanted, walk))]

        def fresh() -> Sequence[Value]:
            return [*walk.starts, *walk.nothing_added(walk.starts)]

        def further() -> Sequence[Value]:
            return [p.load(changed(self.w, row), at, mask) for row, at in kept]

        def block(i: Value, *now: Value) -> Sequence[Value]:
            stop = b.call("smin", b.add(i, integer(most)), end)
            parts = walk.block(self.cut, inner, i, stop, most)
            return walk.exactly(now[: len(parts)], now[len(parts) :], parts)

        before = b.branch(begins, fresh, further)
        found = p.looped(first, end, most, before, block, looks=b.signals.in_nests)

        def finished() -> Sequence[Value]:
            self.give(wanted, begun, walk.of_each(found), mask)
            return ()

        def stays() -> Sequence[Value]:
            for (row, at), x in zip(kept, found, strict=True):
                p.store(row, at, mask, x)
            return ()

        b.branch(ends, finished, stays)
