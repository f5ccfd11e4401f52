"""Seams: where a vectorised loop passes from one part of a concatenation to the next.

A tensor that is rolled or padded consists of one large part and of a few places at its ends. In a
loop over lanes each value of it would be chosen of those of all parts, lane by lane. So the loop is
split: its middle reads the large parts alone, as plain runs of memory, and the ends choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from graphcore.ir import Node, Size, reached
from graphcore.ir.sizes import evaluate, unknowns
from graphcore.ops import tensor as t

from .addressing import Index
from .arithmetic import SCALAR
from .builder import Value, integer
from .loop_axes import long_axes
from .nests import is_transposed, walked
from .places import Places, counts_through
from .rows import is_long

MOST_READINGS = 400
"""How many readings of values are followed from the roots of a nest."""
SAMPLE = 1000
"""The size for which the middle of a loop is compared with the whole; no result depends on it."""
LARGE_SHARE = 0.75
"""The least share of the places that is worth a loop of its own."""

Reading: TypeAlias = tuple[Node, int, Size]
"""A node, its axis that runs along the lanes, and the place on it that lane 0 reads."""


class Middle(NamedTuple):
    """The places of a loop from the largest of `starts` to the least of `stops`.

    There each of `parts` reads, along the lanes, the operand of that number alone.
    """

    starts: list[Size]
    stops: list[Size]
    parts: dict[Node, int]


def middle(p: Places, roots: Iterable[Node]) -> Middle | None:
    """The middle of the loop over the last long axis of roots; None if it is not worth a loop."""
    found = Middle([], [], {})
    size: Size = 0
    waiting: list[Reading] = []
    for root in roots:
        below = walked(root)
        axis = long_axes(below.type.shape)[-1]
        size = below.type.shape[axis]
        waiting.append((below, axis, 0))
        stored = root.attrs["perm"].index(axis) if is_transposed(root) else axis
        if stored < below.type.ndim - 1:  # runs of interleaved values end where the axis ends
            return None
    if not is_long(size):
        return None
    seen, unknown = set(waiting), set[Node]()
    while waiting:
        operands = followed(*waiting.pop(), found, unknown)
        fresh = [x for x in operands if x not in seen and not is_known(p, x[0])]
        seen.update(fresh)
        waiting += fresh
        if len(seen) > MOST_READINGS:
            return None
    for node in all_below(p, unknown):
        found.parts.pop(node, None)
    if not any(node.op is t.concat for node in found.parts):
        return None  # zeros around a tensor are a mask of its loads, which costs little
    whole = at_sample(size)
    start, stop = max(map(at_sample, found.starts)), min(map(at_sample, found.stops))
    return found if min(stop, whole) - max(start, 0) >= LARGE_SHARE * whole else None


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
    node: Node, axis: int, offset: Size, found: Middle, unknown: set[Node]
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
            bounded(found, node, 0, start - offset, size)
        return [(part, axis, offset - start), *((x, axis, offset) for x in inputs[:-1])]
    if node.op is t.concat:
        if axis != attrs["axis"]:
            return [(x, axis, offset) for x in inputs]
        sizes = [x.type.shape[axis] for x in inputs]
        large = max(range(len(sizes)), key=lambda k: at_sample(sizes[k]))
        start = sum(sizes[:large])
        bounded(found, node, large, start - offset, sizes[large])
        return [(inputs[large], axis, offset - start)]
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


def bounded(found: Middle, node: Node, part: int, start: Size, size: Size) -> None:
    """Note the places at which a reading of a node reads one of its parts."""
    found.parts[node] = part
    found.starts.append(start)
    found.stops.append(start + size)


def split(
    p: Places, size: Value, found: Middle, body: Callable[[Index, Value], Sequence[Value]]
) -> None:
    """body(index, mask) over an axis, side by side: its middle first, then both ends."""
    b, start, stop = p.b, integer(0), size
    for bound in dict.fromkeys(found.starts):
        start = b.call("smax", start, p.size(bound))
    for bound in dict.fromkeys(found.stops):
        stop = b.call("smin", stop, p.size(bound))
    start = b.call("smin", start, size)
    stop = b.call("smax", start, stop)
    with p.reading(found.parts):
        p.run(start, stop, (), body)

    def end(k: Value) -> Sequence[Value]:
        first = b.op("icmp eq", k, integer(0))
        ends = b.select(first, integer(0), stop), b.select(first, start, size)
        return p.run(*ends, (), body)

    p.looped(integer(0), integer(2), 1, (), end)
