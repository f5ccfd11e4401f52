"""Which result is written into which buffer: a linear scan over the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, unknowns
from graphcore.ir.types import DType, TensorType
from graphcore.ops import control, elementwise, leaf, tensor

from .scalars import is_spelled

VIEWS = tensor.VIEWS | {leaf.project}
"""Ops whose result may share memory with their operand; the results of all others never do.

Everything that emits code keeps to it: `tests/poison.py` checks each line as it runs.
"""

INPLACE = frozenset({*elementwise.UFUNC, tensor.absorb})
"""Ops that may write over an operand: each place is read before it is written."""

RECEIVING = frozenset(
    {
        *(tensor.put, tensor.overwrite),
        *(tensor.scatter_add, tensor.scatter_max, tensor.scatter_min),
    }
)
"""Ops that may write over their first operand, but read the others when it is written."""

BUFFERED = frozenset(
    {
        *(*INPLACE, *RECEIVING),
        *(elementwise.cast, elementwise.real, elementwise.imag, elementwise.where),
        *(tensor.sum_, tensor.prod, tensor.max_, tensor.min_, tensor.any_, tensor.all_),
        tensor.norm,
        *(tensor.cumsum, tensor.cumprod, tensor.cummax, tensor.cummin, tensor.logcumsumexp),
        *(
            tensor.concat,
            tensor.embed,
            tensor.scatter,
            tensor.scatter_prod,
            tensor.overlap_add,
            tensor.pack,
            tensor.sort,
        ),
        *(tensor.matmul, tensor.matvec, tensor.vecdot, tensor.wins),
    }
)
"""Ops that can write their result where they are told."""


class Buffer(NamedTuple):
    """Room for results of one type; buffers of the same `slot` share their memory."""

    slot: tuple[int, int | str]
    type: TensorType


class Plan(NamedTuple):
    """Where results are written: in a buffer, or in the new array that becomes an output."""

    buffers: dict[Node, Buffer]
    outputs: dict[Node, Node]


def plan(
    schedule: Sequence[Node],
    outputs: Sequence[Node],
    kept: Sequence[Node],
    block: int,
    sizes: frozenset[str],
) -> Plan:
    """Buffers for all results that nobody outside will hold, shared where lives do not overlap.

    Those of `kept` are read when all is done. Each block of the function has slots of its own. Only
    what is sized by `sizes`, which are known at the call, can be kept between calls.
    """
    root = roots(schedule)
    last = {root[x]: step for step, node in enumerate(schedule) for x in node.inputs}
    last |= {root[x]: len(schedule) for x in kept}
    held = {root[x] for x in outputs}
    buffers: dict[Node, Buffer] = {}
    replaced: dict[Node, Node] = {}
    slot_of: dict[Node, int] = {}
    known: dict[tuple[int, TensorType], Buffer] = {}
    rooms: dict[TensorType, list[int]] = {}
    by_size: dict[tuple[DType, Size], list[int]] = {}
    slots = 0
    for step, node in enumerate(schedule):
        if node.op in VIEWS:
            continue
        type = node.type
        placed = node.op in BUFFERED and not is_spelled(node)
        dying = [r for x in node.inputs if last[r := root[x]] == step and r in buffers]
        for x in dying if placed else ():
            if can_overwrite(node, x, root):
                replaced[node] = x
        if placed and node not in held and all(unknowns(size) <= sizes for size in type.shape):
            if (free := rooms.get(type)) is None:
                free = rooms[type] = by_size.setdefault((type.dtype, type.count), [])
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
            if node not in last:  # computed for nobody: free again at once
                dying.append(node)
        for x in dict.fromkeys(dying):
            rooms[x.type].append(slot_of[x])
    homes: dict[Node, Node] = {}
    for node in held & replaced.keys():
        x = node
        while x in replaced:  # what the output is written over is worked out in its array as well
            x = replaced[x]
            homes[x] = node
            del buffers[x]
    return Plan(buffers, homes)


class InPlace(NamedTuple):
    """The order of a loop's body, and the carries whose new values are, or replace, the old."""

    schedule: Sequence[Node]
    carries: set[Node]


def in_place(body: Graph, carries: int) -> InPlace:
    """Updates of a carry come as late as they can: after all that reads what they write over."""
    new = dict(zip(body.params[:carries], body.outputs, strict=False))
    chains = {param: updates(y, param) for param, y in new.items()}
    schedule: Sequence[Node] = body.nodes()
    for chain in chains.values():
        for update in chain:
            late = {update}
            for node in schedule:
                if not late.isdisjoint(node.inputs):
                    late.add(node)
            schedule = sorted(schedule, key=late.__contains__)
    schedule = control.in_order(schedule)
    root, step = roots(schedule), {node: i for i, node in enumerate(schedule)}
    readers: dict[Node, list[Node]] = {}
    for node in schedule:
        for x in node.inputs if node.op not in VIEWS else ():
            readers.setdefault(root[x], []).append(node)
    held = {root[y] for y in body.outputs}
    kept = {param for param, y in new.items() if y is param}
    for param, chain in chains.items():
        alone = chain and all(
            old not in held
            and readers[old].count(update) == 1
            and all(step[reader] <= step[update] for reader in readers[old])
            for old, update in pairwise((param, *chain))
        )
        if alone:
            kept.add(param)
    return InPlace(schedule, kept)


def updates(y: Node, param: Node) -> list[Node]:
    """The updates that make `y` of a param, if it is made so, the first one first."""
    found: list[Node] = []
    while y.op in RECEIVING and y.type is param.type:
        found.append(y)
        y = y.inputs[0]
    return found[::-1] if y is param else []


def roots(schedule: Sequence[Node]) -> dict[Node, Node]:
    """For each value the one whose memory it may be a view of."""
    root: dict[Node, Node] = {}
    for node in schedule:
        root[node] = root[node.inputs[0]] if node.op in VIEWS else node
    return root


def can_overwrite(node: Node, x: Node, root: dict[Node, Node]) -> bool:
    """Whether the result may take the place of operand `x`: read directly, by no view as well."""
    if x.type is not node.type:
        return False
    if node.op in RECEIVING:
        return x is node.inputs[0] and all(root[other] is not x for other in node.inputs[1:])
    return node.op in INPLACE and all(y is x or root[y] is not x for y in node.inputs)
