"""Walks over the places of nests: side by side, in turn, or several rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from graphcore.ir.node import Node
from graphcore.ir.sizes import Shape

from .builder import TRUE, Value, integer
from .nests import flops, long_axes, space
from .places import At, Places
from .rooms import Index

ROWS = 4
"""How many rows are added up at once, so that none waits for the last addition."""
FEW = 2
"""How many reductions at most are computed in several rows at once: their sums are registers."""
LIGHT = 4
"""What a value may cost that is added up in several rows at once."""


def walk(
    p: Places, shapes: Sequence[Shape], place: Any, lanes_inside: bool = False, rows: int = 1
) -> None:
    """place(indices, mask) over spaces of equal long axes, the last of them side by side.

    `indices` has, for each shape, an index for each place of its short axes. With the lanes
    inside, it has them for so many `rows` at once: the last row is computed again where their
    number is no multiple of that.
    """
    sizes = space(shapes[0])

    def inner(at: At, mask: Value) -> Sequence[Value]:
        n = len(at)
        if n == len(sizes):
            place([written_out(shape, at) for shape in shapes], mask)
        elif n == len(sizes) - 1 and not lanes_inside:
            p.lanes(p.size(sizes[n]), (), lambda i, mask: inner((*at, i), mask))
        elif n == len(sizes) - 1 and rows > 1:
            several(
                p,
                p.size(sizes[n]),
                rows,
                lambda group: place(
                    [[x for i in group for x in written_out(shape, (*at, i))] for shape in shapes],
                    mask,
                ),
            )
        else:
            p.each(p.size(sizes[n]), (), lambda i: inner((*at, i), mask))
        return ()

    inner((), TRUE)


def several(p: Places, size: Value, rows: int, body: Callable[[Sequence[Index]], None]) -> None:
    """body(indices) for each group of rows; the last row may be in its group several times."""
    b, last = p.b, p.b.sub(size, integer(1))

    def group(i: Value) -> Sequence[Value]:
        places = [b.add(i, integer(k)) for k in range(rows)]
        if size.number is None or size.number % rows:
            places = [b.call("smin", x, last) if x.number is None else x for x in places]
        body([Index(x) for x in places])
        return ()

    if size.number is not None and size.number <= rows:
        body([Index(integer(i)) for i in range(size.number)])
    else:
        p.looped(integer(0), size, rows, (), group)


def every(roots: Sequence[Node], indices: Sequence[Sequence[At]]) -> list[tuple[Node, At]]:
    """Each root with each of its indices."""
    return [(root, at) for root, places in zip(roots, indices, strict=True) for at in places]


def at_once(p: Places, roots: Sequence[Node]) -> int:
    """How many rows of reductions are computed at once: several where each waits for its sum."""
    seen: set[Node] = set()
    waiting, cost = [*roots], 0
    while waiting:
        node = waiting.pop()
        if node in seen or node in p.rooms or node in p.numbers or not node.inputs:
            continue
        seen.add(node)
        cost += 0 if node in roots else flops(node)
        waiting += node.inputs
    return ROWS if cost <= LIGHT * len(roots) and len(roots) <= FEW else 1


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
