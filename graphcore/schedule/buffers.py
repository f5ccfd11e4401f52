"""Which result is written into which buffer: a linear scan over the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphcore.ir.node import Node
from graphcore.ir.op import Trait
from graphcore.ir.sizes import Size, unknowns
from graphcore.ir.types import DType, TensorType


class Buffer(NamedTuple):
    """Memory for results of one type; buffers of the same `slot` share it."""

    slot: tuple[int, int | str]
    type: TensorType


class Plan(NamedTuple):
    """Where results are written: in a buffer, or in the new array that becomes an output."""

    buffers: dict[Node, Buffer]
    outputs: dict[Node, Node]


def plan(
    nodes: Sequence[Node],
    outputs: Sequence[Node],
    kept: Sequence[Node],
    block: int,
    sizes: frozenset[str],
    writes: Callable[[Node], bool],
) -> Plan:
    """Buffers for all results but `outputs`, shared where lifetimes do not overlap.

    `kept` are read after the last step. Each block of a program has slots of its own. Only results
    sized by `sizes`, which are known at the call, have buffers, as these are kept between calls;
    and only where the backend `writes` the result of a node into memory that it is given.
    """
    root = roots(nodes)
    last = {root[x]: step for step, node in enumerate(nodes) for x in node.inputs}
    last |= {root[x]: len(nodes) for x in kept}
    held = {root[x] for x in outputs}
    buffers: dict[Node, Buffer] = {}
    replaced: dict[Node, Node] = {}
    slot_of: dict[Node, int] = {}
    known: dict[tuple[int, TensorType], Buffer] = {}
    free_by_type: dict[TensorType, list[int] | None] = {}
    free_by_size: dict[tuple[DType, Size], list[int]] = {}
    slots = 0

    def free_slots(type: TensorType) -> list[int] | None:
        """The slots that are free for results of a type; None if it has no buffers."""
        if not all(unknowns(size) <= sizes for size in type.shape):
            return None
        return free_by_size.setdefault((type.dtype, type.count), [])

    for step, node in enumerate(nodes):
        if Trait.VIEW in node.op.traits:
            continue
        type = node.type
        written = writes(node)
        dying = [r for x in node.inputs if last[r := root[x]] == step and r in buffers]
        for x in dying if written else ():
            if can_overwrite(node, x, root):
                replaced[node] = x
        if type not in free_by_type and written:
            free_by_type[type] = free_slots(type)
        if written and node not in held and (free := free_by_type[type]) is not None:
            if node in replaced:
                free.append(slot_of[replaced[node]])
                dying = [r for r in dying if r is not replaced[node]]
            if free:
                slot = free.pop()
            else:
                slot, slots = slots, slots + 1
            if (buffer := known.get((slot, type))) is None:
                buffer = known[slot, type] = Buffer((block, slot), type)
            buffers[node], slot_of[node] = buffer, slot
            if node not in last:  # no step reads it: its slot is free again at once
                dying.append(node)
        for x in dict.fromkeys(dying) if dying else ():
            known_free = free_by_type[x.type]
            assert known_free is not None
            known_free.append(slot_of[x])
    arrays: dict[Node, Node] = {}
    for node in held & replaced.keys():
        x = node
        while x in replaced:  # the output is written over these, so all lie in its array
            x = replaced[x]
            arrays[x] = node
            del buffers[x]
    return Plan(buffers, arrays)


def roots(nodes: Sequence[Node]) -> dict[Node, Node]:
    """For each value the one whose memory it may be a view of: of no op but those with `VIEW`.

    Backends keep to it: `tests/poison.py` checks each step as it runs.
    """
    root: dict[Node, Node] = {}
    for node in nodes:
        root[node] = root[node.inputs[0]] if Trait.VIEW in node.op.traits else node
    return root


def can_overwrite(node: Node, x: Node, root: dict[Node, Node]) -> bool:
    """Whether the result may be written over operand `x`: read directly, and by no view as well."""
    if x.type is not node.type:
        return False
    if Trait.UPDATES in node.op.traits:
        return x is node.inputs[0] and all(root[other] is not x for other in node.inputs[1:])
    views = [y for y in node.inputs if y is not x and root[y] is x]
    return not views and Trait.IN_PLACE in node.op.traits
