"""Which result is written into which buffer: a linear scan over the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphcore.ir import DType, Node, Size, TensorType, Trait
from graphcore.ir.sizes import unknowns
from graphcore.ops import leaf
from graphcore.ops.schedule import kernel
from graphcore.schedule.buffers import can_overwrite, roots


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
        if type not in free_by_type:
            has = all(unknowns(size) <= sizes for size in type.shape)
            free_by_type[type] = (
                free_by_size.setdefault((type.dtype, type.count), []) if has else None
            )
        return free_by_type[type]

    def take(node: Node, free: list[int]) -> None:
        """A buffer for a result, in a slot that is free, or new."""
        nonlocal slots
        if free:
            slot = free.pop()
        else:
            slot, slots = slots, slots + 1
        if (buffer := known.get((slot, node.type))) is None:
            buffer = known[slot, node.type] = Buffer((block, slot), node.type)
        buffers[node], slot_of[node] = buffer, slot

    for step, node in enumerate(nodes):
        if Trait.VIEW in node.op.traits:
            continue
        dying = [r for x in node.inputs if last[r := root[x]] == step and r in buffers]
        made = leaf.values(node) if node.op is kernel else [node] if writes(node) else []
        for y in made:
            for x in dying:
                if can_overwrite(y, x, root):
                    replaced[y] = x
            if y in held or (free := free_slots(y.type)) is None:
                continue
            if y in replaced:
                free.append(slot_of[replaced[y]])
                dying = [r for r in dying if r is not replaced[y]]
            take(y, free)
        dying += [y for y in made if y in buffers and y not in last]  # no step reads these
        for x in dict.fromkeys(dying) if dying else ():
            known_free = free_slots(x.type)
            assert known_free is not None
            known_free.append(slot_of[x])
    arrays: dict[Node, Node] = {}
    for node in [x for x in replaced if x in held]:
        x = node
        while x in replaced:  # the output is written over these, so all lie in its array
            x = replaced[x]
            arrays[x] = node
            del buffers[x]
    return Plan(buffers, arrays)
