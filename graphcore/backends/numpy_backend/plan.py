"""Which result is written into which buffer: a linear scan over the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import Shape, Size
from graphcore.ir.types import DType
from graphcore.ops import elementwise, leaf, tensor

VIEWS = frozenset({tensor.expand, tensor.reshape, tensor.transpose, tensor.slice_})
"""Ops whose result may share memory with their operand."""

INPLACE = frozenset(elementwise.UFUNC)
"""Ops that may write over an operand of the same shape: place by place, each read before written."""

BUFFERED = INPLACE | {
    *(elementwise.cast, elementwise.real, elementwise.imag),
    *(tensor.sum_, tensor.prod, tensor.max_, tensor.min_, tensor.any_, tensor.all_),
    *(tensor.cumsum, tensor.cumprod, tensor.matmul, tensor.concat, tensor.embed),
}
"""Ops that can write their result where they are told."""


class Buffer(NamedTuple):
    """Room for one result, seen in one shape; buffers of the same `slot` share their memory."""

    slot: int
    dtype: DType
    shape: Shape
    count: Size


class Plan(NamedTuple):
    """The buffer of each result that has one, and what is last used at each step."""

    buffers: dict[Node, Buffer]
    last: dict[Node, int]


def plan(schedule: Sequence[Node], outputs: Sequence[Node]) -> Plan:
    """Buffers for all results that nobody outside will hold, shared where lives do not overlap."""
    root = roots(schedule)
    last = {root[x]: step for step, node in enumerate(schedule) for x in node.inputs}
    held = {root[x] for x in outputs}
    buffers: dict[Node, Buffer] = {}
    free: dict[tuple[DType, Size], list[int]] = {}
    slots = 0

    def release(x: Node) -> None:
        buffer = buffers[x]
        free.setdefault((buffer.dtype, buffer.count), []).append(buffer.slot)

    for step, node in enumerate(schedule):
        if node.op in VIEWS:
            continue
        dying = {r for x in node.inputs if last[r := root[x]] == step and r in buffers}
        if node.op in BUFFERED and node not in held:
            for x in list(dying):
                if can_overwrite(node, x, root):
                    dying.discard(x)
                    release(x)
            key = (node.type.dtype, node.type.count)
            if pool := free.get(key):
                slot = pool.pop()
            else:
                slot, slots = slots, slots + 1
            buffers[node] = Buffer(slot, node.type.dtype, node.type.shape, key[1])
            if node not in last:  # computed for nobody: free again at once
                dying.add(node)
        for x in dying:
            release(x)
    return Plan(buffers, last)


def roots(schedule: Sequence[Node]) -> dict[Node, Node]:
    """For each value the one whose memory it may be a view of."""
    root: dict[Node, Node] = {}
    for node in schedule:
        root[node] = root[node.inputs[0]] if node.op in VIEWS else node
    return root


def can_overwrite(node: Node, x: Node, root: dict[Node, Node]) -> bool:
    """Whether the result may take the place of operand `x`: read directly, by no view as well."""
    return (
        node.op in INPLACE
        and x.type is node.type
        and all(operand is x or root[operand] is not x for operand in node.inputs)
    )


def names_nothing(op: Op) -> bool:
    """Whether a node of this op needs no line: its value is written where it is used."""
    return op is leaf.full or op is leaf.constant or op is leaf.input_
