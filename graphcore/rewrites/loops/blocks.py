"""A loop over independent members is a loop over blocks of members, each a loop that ends early.

    while any(going): carry = where(going, step(carry), carry)
        = for each block: while any(going of the block): carry of the block = ...

A batched `while_loop` takes as many steps for all members as the slowest needs. In blocks only the
members of its own block wait for it. The loops of its derivatives go into the same blocks, with all
that lies between, so that what they read of the steps is held for one block at a time.

The last block may have room for more members. The last ones of all fill it a second time: so none
takes more steps than others, and no step has to ask who is there. Sums leave them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphcore.analysis.batch_axes import sources_of
from graphcore.ir import (
    BOOL,
    INT,
    Graph,
    Node,
    Rule,
    Shape,
    Size,
    TensorType,
    full_like,
    toposort,
)
from graphcore.ir.axes import Source
from graphcore.ir.names import apart
from graphcore.ir.node import Attrs
from graphcore.ir.provenance import inheriting
from graphcore.ir.sizes import count, maximum, minimum
from graphcore.ir.transform import transform
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.ops.control import LOOPS, Carry, Loop, LoopOperand
from graphcore.ops.leaf import values
from graphcore.rewrites.plain import (
    expand,
    number,
    refill,
    reshape,
    take_range,
    transpose,
    where,
)

from .members import Region, region_of

LANES = 8
"""The members of a block are a multiple of so many, which fill a vector register."""

FEWEST = 4
"""Fewer blocks would save little where members differ, and cost a tenth where they do not."""


def loops_in_blocks(graph: Graph, elements: int) -> Graph:
    """The graph whose batched loops run block by block, where members do not mix.

    A block has about so many elements of a carry.
    """
    tried: set[Node] = set()
    while left := [x for x in graph.nodes() if x.op is control.while_loop and x not in tried]:
        tried.add(left[0])
        region = region_of(left[0], graph)
        if region is not None and (blocks := blocks_of(region, elements)).many != 1:
            with inheriting(left[0]):
                graph = replaced(graph, results_by_blocks(region, blocks))
    return graph


def replaced(graph: Graph, new: dict[Node, Node]) -> Graph:
    """The graph with other nodes in place of some."""

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        return (loops_in_blocks, new[node]) if node in new else None

    return transform(graph, visit)


class Blocks(NamedTuple):
    """How many blocks there are, and how many of the `size` members each has room for."""

    many: Size
    room: Size
    size: Size

    @property
    def has_more_room(self) -> bool:
        """Whether the last block may have room for more members than there are."""
        return self.many * self.room != self.size

    def shape(self, type: TensorType, axis: int | None) -> Shape:
        """The shape of a value for the members of one block."""
        return tuple(self.room if i == axis else n for i, n in enumerate(type.shape))

    def split(self, x: Node, axis: int) -> Node:
        """A value of each block; those of the last members stand twice where there is more room."""
        shape = x.type.shape
        before, after = shape[:axis], shape[axis + 1 :]
        if self.has_more_room:
            more = self.many * self.room - self.size
            x = tensor.concat(x, take_range(x, axis, self.size - more, more), axis=axis)
        parts = reshape(x, (*before, self.many, self.room, *after))
        return transpose(parts, (axis, *(i for i in range(parts.type.ndim) if i != axis)))

    def join(self, y: Node, axis: int) -> Node:
        """The value of all members, of one of each block."""
        first, *others = range(y.type.ndim)
        parts = transpose(y, (*others[:axis], first, *others[axis:]))
        shape = parts.type.shape
        merge = tensor.pack if axis else tensor.reshape
        whole = merge(parts, shape=(*shape[:axis], self.many * self.room, *shape[axis + 2 :]))
        return (
            whole if whole.type.shape[axis] == self.size else take_range(whole, axis, 0, self.size)
        )


def blocks_of(region: Region, elements: int) -> Blocks:
    """Blocks of about so many elements of a carry, all of about the same size."""
    each: Size = 1
    for x in Loop.of(region.loop).params.carries:
        axis = region.axis(x, region.loop)
        each = maximum(each, count(n for i, n in enumerate(x.type.shape) if i != axis))
    n, most = region.size, maximum(elements // (LANES * each), 1) * LANES
    enough = n // (FEWEST * most) * n  # 0 for few members, which are one block
    many = maximum(minimum((n + most - 1) // most, enough), 1)
    room = (n + LANES * many - 1) // (LANES * many) * LANES
    return Blocks(many, minimum(room, n), n)


def results_by_blocks(region: Region, blocks: Blocks) -> dict[Node, Node]:
    """What the results of a region become: those of a loop over blocks of its members."""
    step = Step(region, blocks)
    for node in region.nodes:
        with inheriting(node):
            step.take(node)
    axes = {y: axis for y in region.outputs if (axis := region.axis(y)) is not None}
    scan = Loop(
        control.scan,
        {"length": blocks.many, "reverse": False, "dim": None, "checkpoint": ()},
        tuple(step.totals.values()),
        tuple(step.sequences),
        tuple(step.captured),
        tuple(step.new[y] for y in axes),
    ).build()
    totals, parts = values(scan)[: len(step.totals)], values(scan)[len(step.totals) :]
    whole = map(blocks.join, parts, axes.values())
    return dict(zip((*step.totals, *axes), (*totals, *whole), strict=True))


class Step:
    """The body of the loop over blocks, while it is built: the nodes of a region for one block."""

    def __init__(self, region: Region, blocks: Blocks) -> None:
        self.region, self.blocks = region, blocks
        self.new: dict[Node, Node] = {}
        self.names: set[str] = set()
        self.totals: dict[Node, Carry] = {}
        self.sequences: list[LoopOperand] = []
        self.captured: list[LoopOperand] = []
        self.there: Node | None = None
        if blocks.has_more_room and any(sums_of(x, region) for x in region.nodes):
            whole = blocks.many * blocks.room
            places = leaf.iota(size=whole, dtype=INT, dims=None)
            given = elementwise.less(places, number(blocks.size, INT, (whole,)))
            self.there = self.param("there", TensorType(BOOL, (blocks.room,)))
            parts = reshape(given, (blocks.many, blocks.room))
            self.sequences.append(LoopOperand(self.there, parts))

    def param(self, name: str, type: TensorType) -> Node:
        """A new param."""
        name = apart(name, self.names)
        self.names.add(name)
        return leaf.param(name, type)

    def take(self, node: Node) -> None:
        """Compute a node of the region for the block."""
        if node.op in LOOPS:
            self.new[node] = self.loop(node)
        elif node.op is leaf.project:
            self.new[node] = self.new[node.inputs[0]][node.attrs["index"]]
        else:
            inputs = [self.outer(x, self.region.axis(x)) for x in node.inputs]
            if self.region.is_sum(node):
                inputs = self.once(node, inputs, None, self.there)
            self.new[node] = y = self.of_size(node, inputs, None)
            if self.region.is_sum(node):
                total = self.param("total", y.type)
                self.totals[node] = Carry(total, full_like(y, 0), elementwise.add(total, y))

    def outer(self, x: Node, axis: int | None) -> Node:
        """What stands in the block for a value outside of loops, whose members lie along `axis`."""
        if x.op is leaf.full:
            return refill(x, self.blocks.shape(x.type, axis))
        if x not in self.new:
            type = TensorType(x.type.dtype, self.blocks.shape(x.type, axis))
            param = self.param(x.attrs.get("name", x.op.name), type).label(x.labels)
            self.new[x] = param
            if axis is None:
                self.captured.append(LoopOperand(param, x))
            else:
                self.sequences.append(LoopOperand(param, self.blocks.split(x, axis)))
        return self.new[x]

    def of_size(self, node: Node, inputs: Sequence[Node], place: Node | None) -> Node:
        """A node for the members of one block."""
        axis = self.region.axis(node, place)
        if axis is None:
            return Node(node.op, tuple(inputs), node.attrs)
        attrs, shape = dict(node.attrs), self.blocks.shape(node.type, axis)
        if node.op is tensor.expand:
            attrs["sizes"] = tuple(shape[i] for i in attrs["axes"])
        else:
            attrs.update({name: shape for name in ("shape", "sizes") if name in attrs})
        if inputs:
            pairs = zip(inputs, sources_of(node), strict=True)
            inputs = [self.refilled(x, sources[axis]) for x, sources in pairs]
        return Node(node.op, tuple(inputs), Attrs(attrs))

    def refilled(self, x: Node, source: Source | None) -> Node:
        """An operand; one value in all places is in as many as there are members in the block."""
        if x.op is not leaf.full or source is None:
            return x
        return refill(x, self.blocks.shape(x.type, source.axes[0]))

    def loop(self, node: Node) -> Node:
        """A loop of the region for the members of one block."""
        loop, new = Loop.of(node), dict[Node, Node]()
        axes = {x: self.region.axis(x, node) for x in loop.params.all}
        for x, axis in axes.items():
            type = TensorType(x.type.dtype, self.blocks.shape(x.type, axis))
            new[x] = leaf.param(x.attrs["name"], type).label(x.labels)
        captured = [LoopOperand(new[x], self.outer(value, axes[x])) for x, value in loop.captured]
        there, sums = None, sums_of(node, self.region)
        if sums and self.there is not None:
            name = apart("there", {x.attrs["name"] for x in loop.params.all})
            there = leaf.param(name, self.there.type)
            captured.append(LoopOperand(there, self.there))
        for y in toposort(loop.roots):
            if y not in new:
                inputs = [new[x] for x in y.inputs]
                with inheriting(y):
                    if y in sums:
                        inputs = self.once(y, inputs, node, there)
                    new[y] = self.of_size(y, inputs, node)
        starts, n = [], len(self.totals)
        for i, carry in enumerate(loop.carries):
            if (axis := axes[carry.param]) is not None:
                starts.append(self.outer(carry.start, axis))
            else:
                starts.append(self.param("total", carry.param.type))
                self.totals[node[i]] = Carry(starts[-1], carry.start, carry.start)
        sequences = [
            LoopOperand(new[x], self.outer(value, None if (axis := axes[x]) is None else axis + 1))
            for x, value in loop.sequences
        ]
        carries = [
            Carry(new[x.param], start, new[x.update])
            for x, start in zip(loop.carries, starts, strict=True)
        ]
        of_block = loop._replace(
            carries=tuple(carries), sequences=tuple(sequences), captured=tuple(captured)
        )
        made = of_block.with_roots(new[y] for y in loop.roots).build()
        for y, total in list(self.totals.items())[n:]:
            self.totals[y] = total._replace(update=made[y.attrs["index"]])
        return made

    def once(
        self, node: Node, inputs: list[Node], place: Node | None, there: Node | None
    ) -> list[Node]:
        """The operand of a sum over members, without those that stand in the block once more."""
        if there is None:
            return inputs
        (x,), (given,) = inputs, node.inputs
        axis, shape = self.region.axis(given, place), x.type.shape
        return [where(expand(there, [i for i in range(len(shape)) if i != axis], shape), x, 0)]


def sums_of(node: Node, region: Region) -> list[Node]:
    """The sums over members that a node of a region is, or that the body of a loop has."""
    if node.op not in LOOPS:
        return [node] if region.is_sum(node) else []
    return [y for y in toposort(Loop.of(node).roots) if region.is_sum(y, node)]
