"""Writes the nests that rows.py plans: a row, or a block of rows, goes through all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce

from graphcore.ir import Node, TensorType

from .addressing import Buffer, Index
from .builder import TRUE, Value, integer
from .nests import reduces, runs_along_memory
from .places import At
from .reductions import together
from .results import changed
from .rows import Rows
from .walks import at_once, every, several, store_all, walk, work
from .writer import Homes, Writer

BLOCK = 32
"""How many rows are read several times while they are in the cache."""


def row_by_row(w: Writer, step: Rows, homes: Homes) -> None:
    """Nests row by row; values that only they read are stored one row at a time.

    Where no row is stored, some rows are taken through all nests together.
    """
    buffers = buffers_of(w, step, homes)
    *outer, last = map(w.size, step.axes)

    def rows() -> None:
        own = own_buffers(w, buffers, one_row_of(step))
        each_of(w, outer, lambda at: some_rows(w, step, at, integer(0), last, own))

    w.sharing.over(partial(work_of, w, step.nests), rows)
    for root in step.made:
        w.places.buffers[root] = buffers[root][0]._replace(level=w.b.level)


def buffers_of(w: Writer, step: Rows, homes: Homes) -> Homes:
    """Buffers for the values of rows: of one row, or of all."""
    buffers, rows = dict[Node, list[Buffer]](), one_row_of(step)
    for root in step.made:
        if root in rows:
            buffers[root] = [w.new(root, rows[root])._replace(skipped=len(step.axes))]
        else:
            buffers[root] = homes.get(root) or [w.new(root)]
    return buffers


def one_row_of(step: Rows) -> dict[Node, TensorType]:
    """The values that only nests of these rows read, and the type of one row of each."""
    k = len(step.axes)
    own = [root for root in step.made if root in step.own and root.type.ndim > k]
    return {root: TensorType(root.type.dtype, root.type.shape[k:]) for root in own}


def own_buffers(w: Writer, buffers: Homes, types: Mapping[Node, TensorType]) -> Homes:
    """The buffers; where the next loop is shared, each thread has its own ones of some types."""
    own = {x: [w.own(buffers[x][0], type)] for x, type in types.items()}
    return buffers | own


def work_of(w: Writer, nests: Iterable[Sequence[Node]]) -> Value:
    """About how much some nests compute together."""
    return reduce(w.b.add, [work(w.places, roots) for roots in nests])


def each_of(w: Writer, sizes: Sequence[Value], body: Callable[[At], None], at: At = ()) -> None:
    """body(at) for each place of axes."""

    def inner(i: Index) -> Sequence[Value]:
        each_of(w, sizes, body, (*at, i))
        return ()

    if len(at) == len(sizes):
        body(at)
    else:
        w.places.each(sizes[len(at)], (), inner, 0)


def some_rows(w: Writer, step: Rows, at: At, begin: Value, stop: Value, buffers: Homes) -> None:
    """The rows from `begin` to `stop` at the places `at` of the other axes."""

    def row(i: Value) -> Sequence[Value]:
        for roots in step.nests:
            one_row(w, roots, (*at, Index(i)), buffers)
        return ()

    if step.stores_whole:
        w.places.looped(begin, stop, 1, (), row)
    else:
        in_blocks(w, step, at, begin, stop, buffers)


def in_blocks(w: Writer, step: Rows, at: At, begin: Value, stop: Value, buffers: Homes) -> None:
    """Nests of one value a row, for the rows from `begin` to `stop`."""
    p, b = w.places, w.b

    def one_nest(roots: Sequence[Node], first: Value, end: Value) -> None:
        def rows(*indices: Index) -> Sequence[Value]:
            put(w, roots, [[(*at, i) for i in indices] for _ in roots], TRUE, buffers)
            return ()

        def side_by_side(i: Index, mask: Value) -> Sequence[Value]:
            put(w, roots, [[(*at, i)] for _ in roots], mask, buffers)
            return ()

        with w.vectorised(*roots):
            if reduces(roots[0]):
                several(p, first, end, at_once(p, roots), rows)
            else:
                p.run(first, end, (), side_by_side, BLOCK)
        for root in roots:
            p.buffers[root] = changed(w, buffers[root][0])

    def block(first: Value) -> Sequence[Value]:
        end = b.call("smin", b.add(first, integer(BLOCK)), stop)
        for roots in step.nests:
            one_nest(roots, first, end)
        return ()

    p.looped(begin, stop, BLOCK, (), block)


def one_row(w: Writer, roots: Sequence[Node], at: At, buffers: Homes) -> None:
    """The places of one row of a nest."""
    p, k = w.places, len(at)

    def place(indices: Sequence[Sequence[At]], mask: Value) -> None:
        put(w, roots, [[(*at, *rest) for rest in places] for places in indices], mask, buffers)

    inside = runs_along_memory(roots[0])
    with w.vectorised(*roots), p.at_once(at_once(p, roots) if inside else 1):
        walk(p, [root.type.shape[k:] for root in roots], place, inside)
    for root in roots:
        p.buffers[root] = changed(w, buffers[root][0])


def put(
    w: Writer, roots: Sequence[Node], indices: Sequence[Sequence[At]], mask: Value, buffers: Homes
) -> None:
    """Compute values at their places, and store them."""
    p = w.places
    with p.stores.together():
        together(p, every(roots, indices), mask)
        for places, root in zip(indices, roots, strict=True):
            values = [(each, p.at(root, each, mask, stored=False)) for each in places]
            for buffer in buffers[root]:
                store_all(p, buffer, values, mask)
