"""The table of lowering rules, and helpers that they share."""

from __future__ import annotations

from collections.abc import Callable

from graphcore.ir import Node, Op, TensorType
from graphcore.ir.node import OPS
from graphcore.rewrites.engine import Conversion
from graphcore.rewrites.plain import expand, transpose

LOWER: dict[Op, Conversion] = {}


def lower(*ops: Op) -> Callable[[Conversion], Conversion]:
    """Enter a rule into the table."""

    def register(rule: Conversion) -> Conversion:
        LOWER.update(dict.fromkeys(ops, rule))
        return rule

    return register


def plain(node: Node) -> Op:
    """The op on positions that has the name of a node's op on dims."""
    return OPS[f"tensor.{node.op.name}"]


def axes(node: Node, dims: tuple[str, ...] | None = None, operand: int = 0) -> tuple[int, ...]:
    """The positions, in an operand, of the dims that a node names."""
    have = node.inputs[operand].type.dims
    return tuple(have.index(dim) for dim in (node.attrs["dims"] if dims is None else dims))


def align(x: Node, dims: tuple[str, ...], target: TensorType) -> Node:
    """`x`, whose axes are `dims`, with those of `target`: permuted, and repeated along new ones."""
    wanted = target.dims or ()
    if dims == wanted:
        return x
    ordered = transpose(x, [dims.index(dim) for dim in wanted if dim in dims])
    new = [axis for axis, dim in enumerate(wanted) if dim not in dims]
    return expand(ordered, new, target.shape)
