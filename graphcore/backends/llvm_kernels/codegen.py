"""A graph as one function of machine code: nests in order, loops and branches as themselves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from graphcore.ir import Graph, Node, Shape
from graphcore.ir.provenance import setting
from graphcore.ir.sizes import count
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from . import nests, sharing
from .arithmetic import SCALAR
from .builder import TRUE, WIDTH, Value
from .chainwise import some_rows_at_a_time
from .columns import in_tiles
from .entrance import Growing
from .loop_axes import is_by_parts
from .loops import CONTROL
from .overwriting import in_results, overwriting
from .places import At, SharedBlocks, counts_through, is_register
from .planning import best_plan
from .receiving import by_parts, overwritten
from .reductions import together
from .routines import ALONE
from .rows import Chain, Pair, Rows
from .rowwise import row_by_row
from .seams import seams
from .strips import product_by_routine, products_in_one_walk
from .transposing import transposed_by_routine
from .walks import (
    are_long,
    at_once,
    every,
    store_all,
    store_transposed,
    transposed_along,
    walk,
    work,
)
from .writer import Homes, Order, Writer


class GraphWriter(Writer):
    """A writer that knows the rules of all steps."""

    # ---- graphs

    def graph(
        self, graph: Graph, homes: Homes, keep: bool = False, order: Order | None = None
    ) -> None:
        """All steps of a graph whose params are known; results go to their homes too.

        Values that are known already are not computed again: `keep` lets the next graph find them.
        """
        self.homes, p = homes, self.places
        for x in graph.nodes():
            if x.op is leaf.constant and x not in p.buffers and x not in p.numbers:
                buffer = self.buffer(x.type, self.program.constant(x))._replace(level=0)
                if is_register(x.type):
                    p.numbers[x] = self.load(buffer)
                else:
                    p.buffers[x] = buffer
        known = p.numbers.keys() | p.buffers.keys()
        planned = best_plan(graph, known, order)
        if not keep:
            self.over = overwriting(planned, known)
            self.homes = homes = in_results(self.over, homes, self.buffer)
        for at, step in enumerate(planned.steps):
            before = self.b.note
            if self.b.note_of is not None:
                self.b.note = self.b.note_of(nests.first_of(step))
            self.sharing.step = nests.values_of(step)
            self.step(step, homes)
            self.b.note = before
            if not keep:
                self.release([x for x in self.taken if planned.last.get(x, at) <= at])
        for y in dict.fromkeys(graph.outputs):
            if y not in planned.computed:
                here = p.buffers.get(y)
                away = [x for x in homes.get(y, ()) if not (here and here.pointer == x.pointer)]
                self.copy(y, away)
        if not keep:
            self.release([*self.taken])
            self.program.sizes = self.around  # sizes that loops find are unknown around a body

    def step(self, step: nests.Step, homes: Homes) -> None:
        """One step of a graph."""
        if isinstance(step, nests.Check):
            self.check(step.node, step.node.inputs[0])
        elif isinstance(step, nests.Nest):
            if is_by_parts(step.roots[0]):
                by_parts(self, step.roots, homes)
            else:
                self.nest(step.roots, homes)
        elif isinstance(step, Pair):
            products_in_one_walk(self, step, homes)
        elif isinstance(step, Rows):
            row_by_row(self, step, homes)
        elif isinstance(step, Chain):
            some_rows_at_a_time(self, step, homes)
        elif step.op in CONTROL:
            CONTROL[step.op](self, step)
        else:
            (ALONE.get(step.op) or overwritten)(self, step, homes)

    # ---- nests

    def nest(self, roots: Sequence[Node], homes: Homes) -> None:
        """Values of equal long axes, at each place in turn: in registers, or in buffers."""
        if product_by_routine(self, roots, homes):
            return
        with self.blocks_in_memory(roots), setting(self.sharing, step=roots):
            self.nest_of(roots, homes)

    def nest_of(self, roots: Sequence[Node], homes: Homes) -> None:
        """The loops of a nest."""
        p, rest = self.places, []
        numbers = [root for root in roots if not root.type.shape]
        with self.vectorised(*numbers):
            together(p, [(root, ()) for root in numbers], TRUE)
        for root in [root for root in roots if root not in p.numbers]:
            if is_register(root.type) and not (nests.runs_along_memory(root) and root.type.shape):
                with self.vectorised(root) if nests.reduces(root) else nullcontext():
                    p.numbers[root] = self.number(root)
                self.copy(root, homes.get(root, ()))
            else:
                rest.append(root)
        buffers = {root: homes.get(root) or [self.home_of_root(root)] for root in rest}
        if not (rest := transposed_by_routine(self, rest, buffers)):
            return

        def place(indices: Sequence[Sequence[At]], mask: Value, tiled: bool = False) -> None:
            with p.stores.together():
                put(indices, mask, tiled)

        def put(indices: Sequence[Sequence[At]], mask: Value, tiled: bool) -> None:
            together(p, every(rest, indices), mask)
            for places, root in zip(indices, rest, strict=True):
                below = nests.walked(root)
                transposed, counted = nests.is_transposed(root), below is not root
                shape = tuple([p.size(n) for n in below.type.shape])
                values: list[tuple[At, Value]] = []
                for index in places:
                    value = p.at(below, index, mask, stored=counted)
                    at = tuple([index[i] for i in root.attrs["perm"]]) if transposed else index
                    values.append((at, value))
                    if transposed or not counted:
                        p.remember(root, at, mask, value)
                for buffer in buffers[root]:
                    into = buffer if transposed or not counted else buffer._replace(shape=shape)
                    if transposed and tiled:
                        store_transposed(p, into, values, mask)
                    else:
                        store_all(p, into, values, mask)

        shapes = [nests.walked(root).type.shape for root in rest]
        counts: list[Shape] = [(count(shape),) for shape in shapes]
        if len(set(counts)) == 1 and all(map(self.is_flat, rest)):
            shapes = counts
        with self.vectorised(*rest):
            inside, tiled = nests.runs_along_memory(rest[0]), transposed_along(p, rest)
            if tiled is None:
                several = at_once(p, rest) if all(map(nests.reduces, rest)) else 1
                alone = self.b.level == 0  # within loops, what is read is mostly in cache
                rows, vectors = (several, 1) if inside else (1, several if alone else 1)
                if inside or not alone or not in_tiles(self, rest, buffers, vectors):
                    walked = partial(
                        walk, p, shapes, place, inside, rows, -1, vectors, seams(p, rest)
                    )
                    self.sharing.over(partial(work, p, rest), walked)
            else:  # tiles of a short axis would be computed for nothing
                in_order = partial(walk, p, shapes, place, inside)
                in_squares = partial(
                    walk, p, shapes, partial(place, tiled=True), inside, WIDTH, tiled
                )
                long = are_long(p, shapes[0], tiled)
                both = partial(self.b.branch, long, in_squares, in_order)
                self.sharing.over(partial(work, p, rest), both)
        p.buffers |= {root: buffers[root][0]._replace(level=self.b.level) for root in rest}

    def blocks_in_memory(self, roots: Sequence[Node]) -> AbstractContextManager[None]:
        """A context in which blocks of long sums may be added up by several threads."""
        long = [root for root in roots if nests.reduces(root) and is_large(root)]
        if not long:
            return nullcontext()
        if "blocks" not in self.program.places:
            self.program.reserve("blocks", Growing())

        def memory(bytes: Value) -> Value:
            place = self.program.entry(self.program.places["blocks"])
            return self.program.enlarge(self.b.now("ptr", f"load ptr, {place.typed}"), place, bytes)

        return setting(self.places, shared=SharedBlocks(memory, self.sharing.where_long))

    def is_flat(self, root: Node) -> bool:
        """Whether a root is computed in one loop over all places, whatever its axes."""
        if root.op is t.transpose or root.type.ndim < 2:
            return False
        if counts_through(root):
            return self.places.is_flat(root.inputs[0])
        return all(map(self.places.is_flat, root.inputs)) and root.op in SCALAR


def is_large(root: Node) -> bool:
    """Whether the operand of a reduction has, or may have, enough values for several threads."""
    values = count(root.inputs[0].type.shape)
    return not isinstance(values, int) or values >= sharing.LEAST
