"""Seams: where a vectorised loop passes from one part of a concatenation to the next.

A tensor that is rolled or padded consists of one large part and of a few places at its ends. In a
loop over lanes each value of it would be chosen of those of all parts, lane by lane. So the loop is
split: its middle reads the large parts alone, as plain runs of memory, and the ends choose. Where
all sizes are known, as in the gradient by a vector of several parameters, it is cut at each seam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from graphcore.ir import Node, Size, reached
from graphcore.ir.sizes import evaluate, unknowns
from graphcore.ops import tensor as t

from .addressing import Index
from .arithmetic import SCALAR
from .builder import TRUE, Value, integer
from .joins import ELSEWHERE, INSIDE
from .loop_axes import long_axes
from .nests import is_transposed, walked
from .places import Places, counts_through
from .rows import is_long

MOST_READINGS = 400
"""How many readings of values are followed from the roots of a nest."""
MOST_PIECES = 16
"""The most pieces that a loop is cut into: the code of all is written."""
SAMPLE = 1000
"""The size for which the middle of a loop is compared with the whole; no result depends on it."""
LARGE_SHARE = 0.75
"""The least share of the places that is worth a loop of its own."""

Reading: TypeAlias = tuple[Node, int, Size]
"""A node, its axis that runs along the lanes, and the place on it that lane 0 reads."""
Borders: TypeAlias = dict[Node, list[list["Stretch"]]]
"""For each node with seams, and each place of it that lane 0 reads, its parts."""
Body: TypeAlias = Callable[[Index, Value], Sequence[Value]]
"""Writes what a loop computes at an index, where a mask holds."""


class Stretch(NamedTuple):
    """The number of an operand, and the places of the loop where lanes read it."""

    number: int
    start: Size
    stop: Size


class Middle(NamedTuple):
    """The places of a loop from the largest of `starts` to the least of `stops`.

    There each of `parts` reads, along the lanes, the operand of that number alone.
    """

    starts: list[Size]
    stops: list[Size]
    parts: dict[Node, int]

    def split(self, p: Places, size: Value, body: Body) -> None:
        """body(index, mask) over an axis, side by side: its middle first, then both ends."""
        b, start, stop = p.b, integer(0), size
        for bound in dict.fromkeys(self.starts):
            start = b.call("smax", start, p.size(bound))
        for bound in dict.fromkeys(self.stops):
            stop = b.call("smin", stop, p.size(bound))
        start = b.call("smin", start, size)
        stop = b.call("smax", start, stop)
        with p.reading(self.parts):
            p.run(start, stop, (), body)

        def end(k: Value) -> Sequence[Value]:
            first = b.op("icmp eq", k, integer(0))
            ends = b.select(first, integer(0), stop), b.select(first, start, size)
            return p.run(*ends, (), body)

        p.looped(integer(0), integer(2), 1, (), end)


class Pieces(NamedTuple):
    """The known places at which a loop is cut, and what each piece reads of its nodes."""

    cuts: list[int]
    parts: list[dict[Node, int]]

    def split(self, p: Places, size: Value, body: Body) -> None:
        """body(index, mask) over an axis, piece after piece, each side by side."""
        for (start, stop), parts in zip(pairwise(self.cuts), self.parts, strict=True):
            if stop - start == 1:
                body(Index(integer(start)), TRUE)
                continue
            with p.reading(parts):
                p.run(integer(start), integer(stop), (), body)


def seams(p: Places, roots: Sequence[Node]) -> Middle | Pieces | None:
    """How the loop over the last long axis of roots is split; None if it is not worth it."""
    for root in roots:
        axis = long_axes(walked(root).type.shape)[-1]
        stored = root.attrs["perm"].index(axis) if is_transposed(root) else axis
        if stored < walked(root).type.ndim - 1:  # runs of interleaved values end with the axis
            return None
    below = walked(roots[0])
    size = below.type.shape[long_axes(below.type.shape)[-1]]
    return (middle(p, roots, size) or pieces(p, roots, size)) if is_long(size) else None


def middle(p: Places, roots: Iterable[Node], size: Size) -> Middle | None:
    """The middle of a loop; None if it is not worth a loop."""
    borders = borders_of(p, roots, largest) or {}
    if not any(node.op is t.concat for node in borders):
        return None  # zeros around a tensor are a mask of its loads, which costs little
    inside = {node: [parts[0] for parts in all_parts] for node, all_parts in borders.items()}
    bounds = [part for each in inside.values() for part in each]
    start = max([at_sample(part.start) for part in bounds])
    stop = min([at_sample(part.stop) for part in bounds])
    whole = at_sample(size)
    if min(stop, whole) - max(start, 0) < LARGE_SHARE * whole:
        return None
    numbers = {node: each[0].number for node, each in inside.items()}
    return Middle([part.start for part in bounds], [part.stop for part in bounds], numbers)


def pieces(p: Places, roots: Iterable[Node], size: Size) -> Pieces | None:
    """The pieces of a loop whose seams are all known; None if they are too many."""
    if not isinstance(size, int) or (borders := borders_of(p, roots, every_part)) is None:
        return None
    parts = [part for all_parts in borders.values() for each in all_parts for part in each]
    bounds = {bound for part in parts for bound in (part.start, part.stop)}
    known = [bound for bound in bounds if isinstance(bound, int)]
    if len(known) < len(bounds):
        return None
    cuts = sorted({0, size, *[bound for bound in known if 0 < bound < size]})
    if len(cuts) - 1 > MOST_PIECES:
        return None
    return Pieces(cuts, [read_at(borders, start) for start in cuts[:-1]])


def read_at(borders: Borders, place: int) -> dict[Node, int]:
    """The operand that each node reads in the piece which begins at a place, if it is one."""
    found = {}
    for node, all_parts in borders.items():
        numbers = {number_at(parts, place) for parts in all_parts}
        if len(numbers) == 1:
            found[node] = numbers.pop()
    return found


def number_at(parts: Iterable[Stretch], place: int) -> int:
    """The operand that is read at a place."""
    holds = [part for part in parts if evaluate(part.start, {}) <= place < evaluate(part.stop, {})]
    return holds[0].number if holds else ELSEWHERE


def borders_of(
    p: Places, roots: Iterable[Node], chosen: Callable[[list[Size]], Iterable[int]]
) -> Borders | None:
    """The parts of nodes below roots, of concatenations the chosen ones; None without any."""
    waiting: list[Reading] = []
    for root in roots:
        below = walked(root)
        waiting.append((below, long_axes(below.type.shape)[-1], 0))
    found: Borders = {}
    seen, unknown = set(waiting), set[Node]()
    while waiting:
        operands = followed(*waiting.pop(), found, unknown, chosen)
        fresh = [x for x in operands if x not in seen and not is_known(p, x[0])]
        seen.update(fresh)
        waiting += fresh
        if len(seen) > MOST_READINGS:
            return None
    for node in all_below(p, unknown):
        found.pop(node, None)
    return found or None


def largest(sizes: list[Size]) -> Iterable[int]:
    """The number of the largest part."""
    return [max(range(len(sizes)), key=lambda k: at_sample(sizes[k]))]


def every_part(sizes: list[Size]) -> Iterable[int]:
    """The numbers of all parts."""
    return range(len(sizes))


def is_known(p: Places, node: Node) -> bool:
    """Whether a value is read from memory or a register."""
    return node in p.buffers or node in p.numbers or not node.inputs


def all_below(p: Places, nodes: Iterable[Node]) -> Iterable[Node]:
    """These nodes and all that are computed for them."""
    return reached(nodes, lambda node: [x for x in node.inputs if not is_known(p, x)])


def at_sample(size: Size) -> int:
    """A size where all unknown sizes are large; 0 if it divides by zero there."""
    try:
        return evaluate(size, dict.fromkeys(unknowns(size), SAMPLE))
    except ValueError:
        return 0


def followed(
    node: Node,
    axis: int,
    offset: Size,
    found: Borders,
    unknown: set[Node],
    chosen: Callable[[list[Size]], Iterable[int]],
) -> list[Reading]:
    """The readings of operands; those that lanes do not take in turn make a node `unknown`."""
    attrs, inputs = node.attrs, node.inputs
    if node.op in SCALAR:
        return [(x, axis, offset) for x in inputs]
    if node.op is t.transpose:
        return [(inputs[0], attrs["perm"][axis], offset)]
    if node.op is t.expand:
        if axis in attrs["axes"]:
            return []
        return [(inputs[0], axis - sum(a < axis for a in attrs["axes"]), offset)]
    if node.op is t.slice_ and attrs["steps"][axis] == 1:
        return [(inputs[0], axis, offset + attrs["starts"][axis])]
    if node.op in (t.reshape, t.pack) and not counts_through(node):
        return through_reshape(node, axis, offset)
    if node.op in (t.embed, t.overwrite) and attrs["steps"][axis] == 1:
        part, start = inputs[-1], attrs["starts"][axis]
        size = part.type.shape[axis]
        if start != 0 or size != node.type.shape[axis]:
            place = start - offset
            found.setdefault(node, []).append([Stretch(INSIDE, place, place + size)])
        return [(part, axis, offset - start), *((x, axis, offset) for x in inputs[:-1])]
    if node.op is t.concat:
        if axis != attrs["axis"]:
            return [(x, axis, offset) for x in inputs]
        sizes = [x.type.shape[axis] for x in inputs]
        starts = [sum(sizes[:k]) - offset for k in range(len(sizes))]
        numbers = [*chosen(sizes)]
        parts = [Stretch(k, starts[k], starts[k] + sizes[k]) for k in numbers]
        found.setdefault(node, []).append(parts)
        return [(inputs[k], axis, 0 - starts[k]) for k in numbers]
    unknown.add(node)
    return []


def through_reshape(node: Node, axis: int, offset: Size) -> list[Reading]:
    """The reading of an operand that has other axes of size 1."""
    (x,) = node.inputs
    if node.type.shape[axis] == 1:
        return []
    number = sum(n != 1 for n in node.type.shape[:axis])
    kept = [axis for axis, n in enumerate(x.type.shape) if n != 1]
    return [(x, kept[number], offset)]
