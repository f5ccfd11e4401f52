"""Ops of one step that work on all steps at once: by their kind of axes, with a new first axis.

Operands that are the same at all steps are repeated, unless the op can work without that.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.ir import INT, Node, Size, TensorType, Trait
from graphcore.ir.axes import Derives, Indexes, Matrices, Opaque, Picks, Receives
from graphcore.ir.node import Attrs
from graphcore.ops import leaf, tensor
from graphcore.rewrites.plain import Axes, expand, transpose


def works_on_all_steps(node: Node) -> bool:
    """Whether an op works on all steps at once; any other stays in its loop."""
    one_value = isinstance(node.type, TensorType)
    return one_value and not isinstance(node.op.axes, (Opaque, Picks, Derives))


def on_all_steps(node: Node, xs: Sequence[Node], own: Sequence[bool], steps: Size) -> Node:
    """`node` for operands some of which, marked in `own`, have a new first axis of size `steps`."""
    kind = node.op.axes
    if Trait.PRODUCT in node.op.traits:
        return contraction(node, xs, own)
    if isinstance(kind, Indexes) and not any(own[1:]):
        return gather_steps(node, xs)
    if isinstance(kind, Receives) or (isinstance(kind, Indexes) and own[0]):
        return at_each_step(node, repeat(xs, own, steps), steps)
    if isinstance(kind, Indexes):
        return Node(node.op, (xs[0], *repeat(xs[1:], own[1:], steps)), node.attrs)
    return Node(node.op, tuple(repeat(xs, own, steps)), Attrs(kind.in_front(node, steps)))


def repeat(xs: Sequence[Node], own: Sequence[bool], steps: Size) -> list[Node]:
    """All operands with the new first axis."""
    return [
        x if yes else expand(x, [0], (steps, *x.type.shape)) for x, yes in zip(xs, own, strict=True)
    ]


def letters(node: Node) -> tuple[tuple[Axes, ...], Axes]:
    """A letter for each axis of each operand of a contraction, and for those of its result."""
    kind = node.op.axes
    if not isinstance(kind, Matrices):
        return node.attrs["operands"], node.attrs["result"]
    (made,) = kind.made
    batch = tuple(range(node.type.ndim - len(made)))
    every = dict.fromkeys(letter for own in kind.given for letter in own)
    number = {letter: i for i, letter in enumerate(every, len(batch))}
    operands = tuple((*batch, *map(number.__getitem__, own)) for own in kind.given)
    return operands, (*batch, *map(number.__getitem__, made))


def contraction(
    node: Node, xs: Sequence[Node], own: Sequence[bool], *, over_steps: bool = False
) -> Node:
    """A contraction with a letter of its own for the steps, or summed over them."""
    operands, result = letters(node)
    new = 1 + max((i for some in operands for i in some), default=-1)
    wide = tuple((new, *some) if yes else some for some, yes in zip(operands, own, strict=True))
    return tensor.einsum(*xs, operands=wide, result=result if over_steps else (new, *result))


def gather_steps(node: Node, xs: Sequence[Node]) -> Node:
    """The same positions at all steps."""
    x, *indices = xs
    axes, places = node.attrs["axes"], indices[0].type.ndim
    found = tensor.gather(x, *indices, axes=tuple(axis + 1 for axis in axes))
    order = (places, *range(places), *range(places + 1, found.type.ndim))
    return transpose(found, order)


def at_each_step(node: Node, xs: Sequence[Node], steps: Size) -> Node:
    """Positions along some axes, and of the steps along the first."""
    before = len(xs) - len(node.attrs["axes"])
    values, indices = xs[:before], xs[before:]
    step = leaf.iota(size=steps, dtype=INT, dims=None)
    shape = indices[0].type.shape
    first = expand(step, range(1, len(shape)), shape)
    later = {"axes": (0, *[axis + 1 for axis in node.attrs["axes"]])}
    if "shape" in node.attrs:
        later["shape"] = (steps, *node.attrs["shape"])
    return Node(node.op, (*values, first, *indices), Attrs({**node.attrs, **later}))
