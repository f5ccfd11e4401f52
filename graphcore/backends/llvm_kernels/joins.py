"""Rules of PLACES for tensors that are joined from parts: padded, overwritten, concatenated."""

from __future__ import annotations

from collections.abc import Iterable

from graphcore.ir import Node, Shape
from graphcore.ops import tensor as t

from .addressing import Index, index_of
from .arithmetic import kind_of, literal
from .builder import FALSE, TRUE, Value, integer
from .places import PLACES, At, Places

INSIDE, ELSEWHERE = 0, -1
"""Whether all lanes read the part that a node embeds or overwrites, or none does: see seams.py."""


def inside(
    p: Places,
    index: At,
    starts: Shape,
    sizes: Shape,
    steps: Iterable[int],
    whole: Shape,
    lanes: bool = False,
) -> tuple[At, Value]:
    """Where a place falls into a part of a tensor, and whether it does: all `lanes` may."""
    holds, at = TRUE, list[Index]()
    for i, start, size, step, full in zip(index, starts, sizes, steps, whole, strict=True):
        if start == 0 and step == 1 and size == full:
            at.append(i)
            continue
        j = p.plus(i, p.b.sub(integer(0), p.size(start)))
        if lanes and i.is_run:
            at.append(j)
            continue
        if step == -1:
            j = p.times(j, integer(-1))
        elif step != 1:
            v = p.spelled(j)
            fits = p.b.op("icmp eq", p.b.op("srem", v, integer(step)), integer(0))
            holds = p.b.both(holds, fits)
            j = index_of(p.b.op("sdiv", v, integer(step)))
        holds = p.b.both(holds, p.positive(j))
        holds = p.b.both(holds, p.below(j, p.size(size)))
        at.append(j)
    return tuple(at), holds


def inside_of(p: Places, node: Node, index: At) -> tuple[At, Value]:
    """Where a place falls into the part that a node embeds or overwrites, and whether it does."""
    attrs, part = node.attrs, node.inputs[-1].type.shape
    whole, lanes = node.type.shape, p.parts.get(node) == INSIDE
    if p.parts.get(node) == ELSEWHERE and any(i.is_run for i in index):
        return index, FALSE
    return inside(p, index, attrs["starts"], part, attrs["steps"], whole, lanes)


def embed(p: Places, node: Node, index: At, mask: Value) -> Value:
    (x,) = node.inputs
    at, holds = inside_of(p, node, index)
    zero = literal(0, kind_of(node))
    if holds.text == "false":
        return zero
    return p.b.select(holds, p.at(x, at, p.b.both(mask, holds)), zero)


def overwrite(p: Places, node: Node, index: At, mask: Value) -> Value:
    x, part = node.inputs
    at, holds = inside_of(p, node, index)
    if holds.text == "false":
        return p.at(x, index, mask)
    new = p.at(part, at, p.b.both(mask, holds))
    return new if holds.text == "true" else p.b.select(holds, new, p.at(x, index, mask))


def concat(p: Places, node: Node, index: At, mask: Value) -> Value:
    axis, end = node.attrs["axis"], integer(0)
    if index[axis].is_run and node in p.parts:
        return one_part(p, node, p.parts[node], index, mask)
    if not index[axis].is_wide and is_of_slices(node):
        return shifted(p, node, index, mask)
    parts: list[tuple[Value, Value]] = []
    for number, x in enumerate(node.inputs, 1):
        start, end = end, p.b.add(end, p.size(x.type.shape[axis]))
        below = TRUE if number == len(node.inputs) else p.below(index[axis], end)
        since = p.positive(p.plus(index[axis], p.b.sub(integer(0), start)))
        holds = p.b.both(below, since)
        if holds.text != "false":
            moved = p.plus(index[axis], p.b.sub(integer(0), start))
            at = (*index[:axis], moved, *index[axis + 1 :])
            parts.append((below, p.at(x, at, p.b.both(mask, holds))))
        if below.text == "true":
            break
    (_, found), *before = reversed(parts)
    for below, value in before:
        found = p.b.select(below, value, found)
    return found


def one_part(p: Places, node: Node, number: int, index: At, mask: Value) -> Value:
    """A place of a concatenation that lies in one part of it."""
    axis, at = node.attrs["axis"], list(index)
    for x in node.inputs[:number]:
        at[axis] = p.plus(at[axis], p.b.sub(integer(0), p.size(x.type.shape[axis])))
    return p.at(node.inputs[number], tuple(at), mask)


def is_of_slices(node: Node) -> bool:
    """Whether all parts of a concatenation are slices of one tensor, as those of `roll` are."""
    if node.op is not t.concat:
        return False
    axis, first = node.attrs["axis"], node.inputs[0]

    def elsewhere(x: Node) -> list[object]:
        ranges = zip(x.attrs["starts"], x.attrs["steps"], strict=True)
        return [step if k == axis else (at, step) for k, (at, step) in enumerate(ranges)]

    if first.op is not t.slice_ or first.attrs["steps"][axis] != 1:
        return False
    return all(
        x.op is t.slice_ and x.inputs == first.inputs and elsewhere(x) == elsewhere(first)
        for x in node.inputs[1:]
    )


def shifted(p: Places, node: Node, index: At, mask: Value) -> Value:
    """A place of a concatenation of slices: that of their tensor, so that one value is loaded."""
    axis, end, moves = node.attrs["axis"], integer(0), list[tuple[Value, Value]]()
    for x in node.inputs:
        move = p.b.sub(p.size(x.attrs["starts"][axis]), end)
        end = p.b.add(end, p.size(x.type.shape[axis]))
        moves.append((p.below(index[axis], end), move))
    (_, found), *before = reversed(moves)
    for below, move in before:
        found = p.b.select(below, move, found)
    attrs = node.inputs[0].attrs
    ranges = zip(index, attrs["starts"], attrs["steps"], strict=True)
    at = [p.plus(p.times(i, integer(step)), p.size(start)) for i, start, step in ranges]
    at[axis] = p.plus(index[axis], found)
    return p.at(node.inputs[0].inputs[0], tuple(at), mask)


PLACES.update({t.embed: embed, t.overwrite: overwrite, t.concat: concat})
