"""Loops whose steps compute each element of their carries from the same element alone.

    for each step: for each element: carry = f(carry)
        = for each element: for each step: carry = f(carry)

All steps of an element are made with its carries in registers: memory is read before the first one
and written after the last one. Several vectors of elements take each step together, as every step
waits for the one before. Numbers that a loop carries, such as a counter, are the same for all
elements: they are computed by themselves first, which also tells how many steps there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from graphcore.ir import Node, toposort
from graphcore.ir.op import may_raise
from graphcore.ops import control, leaf
from graphcore.ops import tensor as t
from graphcore.ops.control import Loop
from graphcore.ops.leaf import values

from .addressing import BYTES, Buffer, Index
from .arena import LINE
from .arithmetic import SCALAR, kind_of
from .builder import WIDTH, Value, integer
from .places import At, Body, Places, is_register
from .results import changed
from .walks import side_by_side
from .writer import Writer

CHUNK = 256
"""How many steps are made between two looks for signals."""
MOST = 4
"""The most vectors of elements that take each step together."""
REGISTERS = 6
"""How many vectors of carries and of what steps read are to be in registers."""
OPS = 32
"""So many ops of a step keep the CPU busy while one of them waits for another."""


def is_pointwise(loop: Loop) -> bool:
    """Whether steps compute elements of arrays of one shape from the same elements alone.

    They may read captured arrays of fewer axes; lanes then stand along the last, a long one.
    """
    shapes = {x.type.shape for x in loop.params.carries} - {()}
    if len(shapes) != 1 or loop.results:
        return False
    (shape,) = shapes
    nodes = toposort(loop.roots)
    last, same = shape[-1] if spread(nodes) else None, the_same_in_all_steps(loop, nodes)
    return (
        not any(x.type.shape and is_register(x.type) for x in loop.params.carries)
        and not (isinstance(last, int) and last < WIDTH)
        and not any(x.type.shape for x in loop.params.sequences)
        and all(is_simple(x) for x in nodes)
        and all(x in same or x.type.shape in ((), shape) for x in nodes)
        and all(x.inputs[0] in same or not x.inputs[0].type.shape for x in expands(nodes))
    )


def is_simple(node: Node) -> bool:
    """Whether an op computes each element from one of each operand, and refuses no value."""
    if not node.inputs:
        return node.op in (leaf.input_, leaf.full)
    return node.op is t.expand or (node.op in SCALAR and not may_raise(node))


def the_same_in_all_steps(loop: Loop, nodes: Sequence[Node]) -> set[Node]:
    """Those of the nodes of a body in order that are computed from captured values alone."""
    found = set(loop.params.captured)
    for x in nodes:
        if x.op is leaf.full or (x.inputs and found.issuperset(x.inputs)):
            found.add(x)
    return found


def expands(nodes: Sequence[Node]) -> list[Node]:
    """Those of some nodes that are the same along some axes."""
    return [x for x in nodes if x.op is t.expand]


def spread(nodes: Sequence[Node]) -> bool:
    """Whether some nodes read arrays of fewer axes than they have."""
    return any(x.inputs[0].type.shape for x in expands(nodes))


class PointwiseLoop:
    """A loop of such steps; a step computes about as many values as `work` says."""

    def __init__(self, w: Writer, node: Node, work: Value) -> None:
        self.w, self.b, self.node, self.work = w, w.b, node, work
        self.loop = loop = Loop.of(node)
        self.numbers = [x for x in loop.carries if not x.param.type.shape]
        self.arrays = [x for x in loop.carries if x.param.type.shape]
        self.shape = self.arrays[0].param.type.shape
        sequences = loop.operands.sequences
        self.sequences = [None if control.is_counter(x) else w.lying(x) for x in sequences]
        self.captured = [w.given(x) for x in loop.operands.captured]
        self.nodes = toposort(loop.roots)
        self.ops = len(self.nodes)

    def written(self) -> None:
        """Write the loop, and make its last carries known."""
        w, b = self.w, self.b
        of = dict(zip(self.loop.params.carries, values(self.node), strict=False))
        results = [of[x.param] for x in self.arrays]
        starts = [w.number(x.start) for x in self.numbers]
        many, *ends = self.steps(starts)
        buffers = [w.home(y) for y in results]

        flat = [w.program.count(self.shape)]
        *lead, last = map(w.size, self.shape) if spread(self.nodes) else flat

        def elements(at: At) -> Sequence[Value]:
            if len(at) < len(lead):
                return w.places.each(lead[len(at)], (), lambda i: elements((*at, i)), 0)

            def some(mask: Value, *indices: Index) -> Sequence[Value]:
                self.of_elements([(*at, i) for i in indices], mask, many, starts, buffers)
                return ()

            side_by_side(w.places, last, self.vectors(), some)
            return ()

        with w.vectorised(*[y for x in self.arrays for y in (x.param, x.update)]):
            w.sharing.over(lambda: b.mul(many, self.work), lambda: elements(()))
        w.know(results, [changed(w, buffer) for buffer in buffers])
        w.know([of[x.param] for x in self.numbers], ends)

    def steps(self, starts: Sequence[Value]) -> Sequence[Value]:
        """How many steps there are, and the last numbers."""
        b, condition = self.b, self.loop.condition
        if condition is None:
            length = self.w.size(self.loop.settings["length"])
            return [length, *self.repeated(length, starts, self.new_numbers)]

        def goes_on(i: Value, *now: Value) -> Value:
            return self.inside(i, now).at(condition, ())

        def step(i: Value, *now: Value) -> Sequence[Value]:
            b.spend(integer(self.ops))
            return [b.add(i, integer(1)), *self.new_numbers(i, *now)]

        with b.signals.step(looks=True):
            return b.repeat([integer(0), *starts], goes_on, step)

    def new_numbers(self, i: Value, *now: Value) -> Sequence[Value]:
        """The numbers after step i."""
        places = self.inside(i, now)
        return [places.at(x.update, ()) for x in self.numbers]

    def inside(self, i: Value, numbers: Sequence[Value]) -> Places:
        """The values in step i but those of arrays that the loop carries."""
        inner, params = self.w.inside(), self.loop.params
        if self.loop.settings.get("reverse"):
            length = self.w.size(self.loop.settings["length"])
            i = self.b.sub(self.b.sub(length, integer(1)), i)
        inner.know(params.captured, self.captured)
        for param, x in zip(params.sequences, self.sequences, strict=True):
            inner.know([param], [i if x is None else self.number(x, i)])
        inner.know([x.param for x in self.numbers], numbers)
        return inner.places

    def number(self, x: Buffer, i: Value) -> Value:
        """An element of a sequence of numbers."""
        return self.w.load(x._replace(shape=(), pointer=self.w.places.moved(x, i, ()).pointer))

    def repeated(self, many: Value, carried: Sequence[Value], step: Body) -> Sequence[Value]:
        """step(i, *carried) so many times; after some steps a look for signals may be due."""
        p, b = self.w.places, self.b

        def chunk(first: Value, *now: Value) -> Sequence[Value]:
            stop = b.call("smin", b.add(first, integer(CHUNK)), many)
            found = p.looped(first, stop, 1, now, step, CHUNK)
            b.spend(b.mul(b.sub(stop, first), integer(self.ops)))
            return found

        return p.looped(integer(0), many, CHUNK, carried, chunk, looks=True) if carried else ()

    def vectors(self) -> int:
        """How many vectors of elements take each step together: a power of two."""
        bytes = [BYTES[kind_of(x)] * self.b.width for x in self.loop.params.all if x.type.shape]
        most = max(min(REGISTERS * LINE // sum(bytes), OPS // self.ops, MOST), 1)
        return 1 << (most.bit_length() - 1)

    def of_elements(
        self,
        places: Sequence[At],
        mask: Value,
        many: Value,
        numbers: Sequence[Value],
        buffers: Sequence[Buffer],
    ) -> None:
        """All steps of some vectors of elements."""
        p, every = self.w.places, [*product(places, self.arrays)]
        updates = toposort([x.update for x in self.arrays])
        in_order = [y for y in updates if y.inputs and y.type.shape == self.shape]
        starts = [self.as_wide(p.at(x.start, at, mask), at) for at, x in every]

        def step(i: Value, *now: Value) -> Sequence[Value]:
            before, arrays = now[: len(numbers)], now[len(numbers) :]
            inside = self.inside(i, before)
            for (at, x), value in zip(every, arrays, strict=True):
                inside.remember(x.param, at, mask, value)
            for y in in_order:  # so that no value asks for long chains of others
                for at in places:
                    inside.at(y, at, mask)
            new = [self.as_wide(inside.at(x.update, at, mask), at) for at, x in every]
            return [*[inside.at(x.update, ()) for x in self.numbers], *new]

        last = self.repeated(many, [*numbers, *starts], step)[len(numbers) :]
        for (at, buffer), x in zip(product(places, buffers), last, strict=True):
            p.store(buffer, at, mask, x)

    def as_wide(self, x: Value, at: At) -> Value:
        """A value in as many lanes as an index has."""
        return self.b.widen(x) if at[-1].is_wide else x
