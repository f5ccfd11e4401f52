"""Loops that save only some of their carries: the same steps, in chunks of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from graphcore.ir import INT, Graph, Node, Shape, Size, TensorType, full_like
from graphcore.ir.names import apart
from graphcore.ir.sizes import maximum
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.ops.control import Carry, Loop, LoopOperand
from graphcore.ops.leaf import values

from .plain import number, reshape, take_range


def in_chunks(scan: Node) -> Node:
    """A call of loops in one another that take the steps of a loop with checkpoints.

    A pullback of a loop saves the carries that its steps start from, here chunks, and runs a chunk
    again where it needs the other carries. All chunks have room for equally many steps, and the
    last ones may have fewer: so there is one body, however many steps there are.
    """
    length, n = scan.attrs["length"], scan.attrs["carries"]
    sizes = chunk_sizes(length, scan.attrs["checkpoint"])
    room = prod(sizes)
    params = tuple(leaf.param(f"operand {i}", x.type) for i, x in enumerate(scan.inputs))
    loop = Loop.of(scan)
    given = loop.params.split(params)
    loop = loop._replace(
        settings={**loop.settings, "checkpoint": ()},
        carries=tuple(map(Carry, loop.params.carries, given.carries, loop.updates)),
        sequences=tuple(
            LoopOperand(p, extend(x, room))
            for p, x in zip(loop.params.sequences, given.sequences, strict=True)
        ),
        captured=tuple(map(LoopOperand, loop.params.captured, given.captured)),
    )
    if room != length:
        loop = while_steps_are_left(loop, length, room)
    sequences = [LoopOperand(p, reshape(x, (*sizes, *x.type.shape[1:]))) for p, x in loop.sequences]
    found = nested(loop._replace(sequences=tuple(sequences)), sizes)
    ys = [reshape(y, (room, *y.type.shape[len(sizes) :])) for y in found[n:]]
    ys = [y if room == length else take_range(y, 0, 0, length) for y in ys]
    ys = [reshape(y, type.shape) for y, type in zip(ys, scan.type.items[n:], strict=True)]
    return control.call(*scan.inputs, body=Graph(params, (*found[:n], *ys)))


def chunk_sizes(length: Size, checkpoint: Sequence[int]) -> Shape:
    """How many chunks there are on each level, in a chunk around them, and steps in the last.

    All are 1 or more: a loop without steps is one chunk in which a step is missing.
    """
    last, sizes = maximum(length - 1, 0), []
    for most in checkpoint:
        sizes.append(last // most + 1)
        last = last // sizes[-1]
    return (*sizes, last + 1)


def nested(loop: Loop, sizes: Shape) -> list[Node]:
    """The results of loops of some lengths, one in another; the innermost takes the steps."""
    some, *inner = sizes
    if not inner:
        return values(loop._replace(settings={**loop.settings, "length": some}).build())
    n = len(loop.carries)
    params = [
        leaf.param(p.attrs["name"], TensorType(x.type.dtype, x.type.shape[1:], None))
        for p, x in loop.sequences
    ]
    chunk = loop._replace(
        carries=tuple(x._replace(start=x.param) for x in loop.carries),
        sequences=tuple(map(LoopOperand, loop.params.sequences, params)),
        captured=tuple(LoopOperand(x, x) for x in loop.params.captured),
    )
    made = nested(chunk, tuple(inner))
    outer = loop._replace(
        settings={**loop.settings, "length": some},
        carries=tuple(x._replace(update=y) for x, y in zip(loop.carries, made, strict=False)),
        sequences=tuple(map(LoopOperand, params, loop.operands.sequences)),
        results=tuple(made[n:]),
    )
    return values(outer.build())


def while_steps_are_left(loop: Loop, length: Size, room: Size) -> Loop:
    """The loop whose steps from `length` on, up to `room`, change nothing."""
    params = loop.params
    step = Graph(params.all, loop.outputs)
    zeros = tuple(full_like(y, 0) for y in loop.results)
    keep = Graph(params.all, (*params.carries, *zeros))
    name = apart("step", {x.attrs["name"] for x in params.all})
    i = leaf.param(name, TensorType(INT, (), None))
    here = elementwise.cast(elementwise.less(i, number(length, INT)), dtype=INT)
    made = values(control.switch(here, *params.all, branches=(keep, step)))
    steps = LoopOperand(i, leaf.iota(size=room, dtype=INT, dims=None))
    return loop.with_roots(made)._replace(sequences=(*loop.sequences, steps))


def extend(x: Node, size: Size) -> Node:
    """`x`, and zeros after it up to `size` places along its first axis."""
    if x.type.shape[0] == size:
        return x
    axes = x.type.ndim
    shape = (size, *x.type.shape[1:])
    return tensor.embed(x, shape=shape, starts=(0,) * axes, steps=(1,) * axes)
