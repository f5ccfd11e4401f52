"""Loops over the elements of nests: in vector lanes, one by one, or several rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import prod
from typing import Any

from graphcore.ir import Node, Shape, reached
from graphcore.ir.sizes import count
from graphcore.ops import tensor as t

from .addressing import ZERO, Buffer, Index
from .arithmetic import kind_of
from .builder import PARTS, TRUE, WIDTH, Builder, Value, integer
from .flops import COSTS, flops
from .loop_axes import UNROLLED, long_axes, space
from .nests import is_transposed
from .places import WRITTEN_OUT, At, Places
from .reductions import REDUCTIONS, totals
from .rows import is_long
from .seams import Middle, Pieces
from .squares import transposed

ROWS = 4
"""How many rows are added up at once, so that none waits for the last addition; how many vectors of
columns, so that each page of memory is read in longer pieces."""
FEW_REDUCTIONS = 2
"""The most reductions that are computed in several rows at once: their sums are registers."""
INTERLEAVED = 8
"""The most values that are interleaved to be stored as runs."""
MOST_WRITTEN_OUT = 2 * UNROLLED
"""The most places of short axes and of those in front that are written out, together."""
SUMS = 8
"""The most sums of several rows, at the places of their short axes: they are registers as well."""


def walk(
    p: Places,
    shapes: Sequence[Shape],
    place: Any,
    lanes_inside: bool = False,
    rows: int = 1,
    axis: int = -1,
    vectors: int = 1,
    seams: Middle | Pieces | None = None,
) -> Sequence[Value]:
    """place(indices, mask) over spaces of equal long axes, the last of them side by side.

    `indices` has, for each shape, an index for each place of its short axes, for so many `rows`
    along a long axis at once: the last row is computed again where their number is no multiple of
    that. With `lanes_inside` no axis is side by side; else so many `vectors` of the last axis are
    done at once, where it is long enough. With `seams` the last axis is split into
    loops of their own. Axes in front are written out as well where they have few places.
    """
    sizes = space(shapes[0])
    short = max([len(written_out(shape, (ZERO,) * len(sizes))) for shape in shapes])
    few = written_out_in_front(sizes, MOST_WRITTEN_OUT // max(short, 1))
    grouped = axis % len(sizes) if rows > 1 else -1

    def inner(group: Sequence[At], mask: Value) -> Sequence[Value]:
        n = len(group[0])

        def further(*indices: Index) -> Sequence[Value]:
            return inner([(*at, i) for at in group for i in indices], mask)

        if n == len(sizes):
            place([[x for at in group for x in written_out(shape, at)] for shape in shapes], mask)
        elif n == grouped:
            several(p, integer(0), p.size(sizes[n]), rows, further)
        elif n == len(sizes) - 1 and not lanes_inside:

            def lanes(mask: Value, *indices: Index) -> Sequence[Value]:
                return inner([(*at, i) for at in group for i in indices], mask)

            if seams is not None:
                seams.split(p, p.size(sizes[n]), lambda i, mask: lanes(mask, i))
            else:
                side_by_side(p, p.size(sizes[n]), vectors, lanes)
        else:
            p.each(p.size(sizes[n]), (), further, few[n])
        return ()

    return inner([()], TRUE)


def written_out_in_front(sizes: Shape, most: int) -> list[int]:
    """How many places of each axis are written out, so that these are not too many together."""
    found = []
    for n in sizes:
        found.append(min(most, WRITTEN_OUT))
        if isinstance(n, int) and 0 < n <= found[-1]:
            most //= n
    return found


def side_by_side(
    p: Places, size: Value, vectors: int, body: Callable[..., Sequence[Value]]
) -> None:
    """body(mask, *indices) for whole groups of so many vectors of an axis, then for each left.

    The number of vectors is a power of two.
    """
    b, step = p.b, vectors * p.b.width
    assert step & (step - 1) == 0
    whole = integer(0)

    def group(i: Value) -> Sequence[Value]:
        starts = range(0, step, b.width)
        return body(TRUE, *[Index(b.add(i, integer(k)), integer(1)) for k in starts])

    if vectors > 1:
        known = size.number
        whole = b.op("and", size, integer(-step)) if known is None else integer(known & -step)
        p.looped(integer(0), whole, step, (), group)
    rest = lambda i, mask: body(mask, p.plus(i, whole))
    p.run(integer(0), b.sub(size, whole), (), rest, step if vectors > 1 else None)


def several(
    p: Places, start: Value, stop: Value, rows: int, body: Callable[..., Sequence[Value]]
) -> None:
    """body(*indices) for each group of rows; the last row may be in its group several times."""
    b, size, last = p.b, p.b.sub(stop, start), p.b.sub(stop, integer(1))

    def group(i: Value) -> Sequence[Value]:
        places = [b.add(i, integer(k)) for k in range(rows)]
        if size.number is None or size.number % rows:
            places = [b.call("smin", x, last) if x.number is None else x for x in places]
        return body(*map(Index, places))

    first, known = start.number, size.number
    if first is not None and known is not None and known <= rows:
        if known:
            body(*[Index(integer(first + i)) for i in range(known)])
    else:
        p.looped(start, stop, rows, (), group)


def every(roots: Sequence[Node], indices: Sequence[Sequence[At]]) -> list[tuple[Node, At]]:
    """Each root with each of its indices."""
    return [(root, at) for root, places in zip(roots, indices, strict=True) for at in places]


def at_once(p: Places, roots: Sequence[Node]) -> int:
    """How many rows of reductions are computed at once: several where each waits for its sum."""
    if len(roots) > FEW_REDUCTIONS or cost(p, roots) > COSTS.additions_again * len(roots):
        return 1
    shapes = [root.type.shape for root in roots]
    places = sum(len(written_out(shape, (ZERO,) * len(space(shape)))) for shape in shapes)
    return max(min(ROWS, SUMS // max(places, 1)) // max(map(totals, roots)), 1)


def cost(p: Places, roots: Sequence[Node]) -> int:
    """The approximate cost of a place of all values that are computed for some roots."""

    def computed(xs: Iterable[Node]) -> list[Node]:
        return [x for x in xs if x.inputs and x not in p.buffers and x not in p.numbers]

    found = reached(computed(roots), lambda x: computed(x.inputs))
    return sum(flops(x) for x in found if x not in roots)


def work(p: Places, roots: Sequence[Node]) -> Value:
    """About how much it is to compute values of equal places, in simple values."""
    root = roots[0]
    shape = root.inputs[0].type.shape if root.op in REDUCTIONS else root.type.shape
    if root.op is t.matmul:
        shape = (*root.type.shape, shape[-1])
    each = cost(p, roots) + sum(map(flops, roots))
    return p.b.mul(p.size(count(shape)), integer(max(1, each // COSTS.additions_again)))


def transposed_along(p: Places, roots: Sequence[Node]) -> int | None:
    """The long axis that comes last where some roots are stored, if tiles of it are worth it.

    Lanes along another axis would be scattered: a tile of so many rows is transposed instead.
    """
    found: set[int] = set()
    for root in (root for root in roots if is_transposed(root)):
        shape, last = root.inputs[0].type.shape, root.attrs["perm"][-1]
        long = long_axes(shape)
        if len(long) < len(shape) or last == len(shape) - 1 or not is_long(shape[last]):
            return None
        found.add(last)
    simple = not any(kind_of(root) in PARTS for root in roots) and p.b.width == WIDTH
    if not simple or len(found) != 1 or len(roots) > FEW_REDUCTIONS:
        return None
    if cost(p, roots) > COSTS.additions_again:
        return None
    return found.pop()


def are_long(p: Places, shape: Shape, axis: int) -> Value:
    """Whether an axis and the last one have places for a tile."""
    sizes = [p.size(shape[axis]), p.size(shape[-1])]
    first, last = [p.b.op("icmp sge", n, integer(WIDTH)) for n in sizes]
    return p.b.both(first, last)


def written_out(shape: Shape, at: At) -> list[At]:
    """The indices of all places of the short axes, at one place of the long ones."""
    long = dict(zip(long_axes(shape), at, strict=True))
    runs: list[list[Index]] = []
    for axis, n in enumerate(shape):
        if axis in long:
            runs.append([long[axis]])
        else:
            assert isinstance(n, int)
            runs.append([Index(integer(i)) for i in range(n)])
    return list(product(*runs))


def store_all(p: Places, buffer: Buffer, values: Sequence[tuple[At, Value]], mask: Value) -> None:
    """Put values into a buffer at their places, where the mask of the lanes holds.

    Values of a few places that follow each other in memory are interleaved, so that lanes that lie
    apart become runs.
    """
    if not values:
        return
    first = values[0][0]
    axis = next((k for k, i in enumerate(first) if i.is_run), len(first))
    many = buffer.shape[axis + 1 - buffer.skipped :]
    places = prod([n.number or 0 for n in many])
    simple = buffer.kind not in PARTS and buffer.kind != "i1" and buffer.skipped <= axis
    short = all(i.base.number is not None and not i.is_wide for i in first[axis + 1 :])
    groups: dict[At, dict[int | None, Value]] = {}
    if simple and short and axis < len(first) - 1 and 1 < places <= INTERLEAVED:
        for at, value in values:
            number = p.place(at[axis + 1 :], many).base.number
            groups.setdefault(at[: axis + 1], {})[number] = p.b.widen(value)
    if not groups or any(len(group) < places for group in groups.values()):
        for at, value in values:  # a loop around may take some of the places in turn
            p.store(buffer, at, mask, value)
        return
    for at, group in groups.items():
        run = [group[n] for n in range(places)]
        store_interleaved(p, buffer, at, run, mask)


def store_interleaved(
    p: Places, buffer: Buffer, at: At, values: Sequence[Value], mask: Value
) -> None:
    """Put the values of all places behind lanes at `at` into a buffer, as runs."""
    b, several = p.b, integer(len(values))
    index, sizes = at[buffer.skipped :], buffer.shape[: len(at) - buffer.skipped]
    start = p.place([Index(i.base) for i in index], sizes).base
    first, stop = (b.mul(x, several) for x in (start, b.sub(sizes[-1], index[-1].base)))
    for j in range(len(values)):
        offset = integer(j * b.width)
        flat = Index(b.add(first, offset), integer(1))
        run = interleaved(b, values, j * b.width)
        p.store(buffer, (*at[: buffer.skipped], flat), mask, run, b.sub(stop, offset))


def interleaved(b: Builder, values: Sequence[Value], start: int) -> Value:
    """Lanes of vectors in turn: the first of each, the second of each, ...; from `start` on."""
    wanted = [divmod(start + k, len(values)) for k in range(b.width)]
    found, taken = None, set[int]()
    for n in dict.fromkeys(n for _, n in wanted):
        if found is None:
            found, from_found = values[n], [lane if m == n else -1 for lane, m in wanted]
        else:
            own = [b.width + lane if m == n else -1 for lane, m in wanted]
            both = [x if y < 0 else y for x, y in zip(from_found, own, strict=True)]
            found = b.shuffle(found, both, values[n])
            from_found = [k if m in taken or m == n else -1 for k, (_, m) in enumerate(wanted)]
        taken.add(n)
    assert found is not None
    return found


def store_transposed(
    p: Places, buffer: Buffer, tiles: Sequence[tuple[At, Value]], mask: Value
) -> None:
    """Put the transpose of rows that are side by side along another axis than the last one.

    The rows follow each other along the last axis. Those that are there twice are not written.
    """
    b, first = p.b, tiles[0][0]
    axis = next(k for k, i in enumerate(first) if i.is_run)
    across, along = buffer.shape[axis - buffer.skipped], buffer.shape[-1]
    inside = p.left(along, first[-1].base)
    for j, column in enumerate(transposed(b, [b.widen(value) for _, value in tiles])):
        i = b.add(first[axis].base, integer(j))
        holds = TRUE if mask.text == "true" else b.op("icmp slt", i, across)
        at = [*first[:-1], Index(first[-1].base, integer(1))]
        at[axis] = Index(i)

        def stored(at: At = tuple(at), column: Value = column) -> Sequence[Value]:
            p.store(buffer, at, inside, column)
            return ()

        b.branch(holds, stored)
