"""How an op of one step works on all steps at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.ir.node import Attrs, Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import Size
from graphcore.ops import tensor
from graphcore.rewrites.plain import expand, reshape, transpose

Stacked = Callable[[Node, Sequence[Node], Sequence[bool], Size], Node]
"""(node, operands, which have a new first axis, its size) -> the node on all steps at once"""


def on_each(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """Operands that are the same at all steps are repeated."""
    return Node(node.op, tuple(repeated(xs, stacked, steps)), node.attrs)


def repeated(xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> list[Node]:
    """All operands with the new first axis."""
    return [
        x if own else expand(x, [0], (steps, *x.type.shape))
        for x, own in zip(xs, stacked, strict=True)
    ]


def axes_later(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """Axes stand one place later."""
    moved = {
        name: tuple(axis + 1 for axis in value) if isinstance(value, tuple) else value + 1
        for name, value in node.attrs.items()
        if name in ("axes", "axis")
    }
    return Node(node.op, tuple(repeated(xs, stacked, steps)), Attrs(node.attrs | moved))


def ranges_later(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """The whole of the new axis."""
    first = {"starts": 0, "steps": 1, "sizes": steps, "shape": steps}
    wider = {name: (first[name], *value) for name, value in node.attrs.items() if name in first}
    return Node(node.op, tuple(xs), Attrs(node.attrs | wider))


def einsum_letter(node: Node) -> int:
    """A letter that stands in none of its operands."""
    return 1 + max((i for letters in node.attrs["operands"] for i in letters), default=-1)


def stacked_einsum(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """A letter of its own for the steps."""
    new, pairs = einsum_letter(node), zip(node.attrs["operands"], stacked, strict=True)
    operands = tuple((new, *letters) if own else letters for letters, own in pairs)
    return tensor.einsum(*xs, operands=operands, result=(new, *node.attrs["result"]))


STACKED: dict[Op, Stacked] = {
    **dict.fromkeys(tensor.POINTWISE, on_each),
    **dict.fromkeys((tensor.sum_, tensor.max_, tensor.min_, tensor.any_, tensor.all_), axes_later),
    **dict.fromkeys((tensor.prod, tensor.cumsum, tensor.cumprod, tensor.concat), axes_later),
    **dict.fromkeys((tensor.softmax, tensor.log_softmax, tensor.logsumexp), axes_later),
    **dict.fromkeys((tensor.argmax, tensor.argmin, tensor.expand), axes_later),
    tensor.slice_: ranges_later,
    tensor.embed: ranges_later,
    tensor.einsum: stacked_einsum,
    tensor.reshape: lambda node, xs, stacked, steps: reshape(xs[0], (steps, *node.type.shape)),
    tensor.transpose: lambda node, xs, stacked, steps: transpose(
        xs[0], (0, *[axis + 1 for axis in node.attrs["perm"]])
    ),
}
"""How an op works on all steps at once. An op that is not here stays in its loop."""
